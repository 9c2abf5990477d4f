"""Taking audits in: one at a time, or a batch of any size that is stored whole or not at all."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import CursorResult, insert, text
from sqlalchemy.orm import Session

from db.documents import document_digest, find_or_store_document
from db.driver import driver_connection
from db.models import Audit, Batch
from db.policies import get_policy, list_policies, unknown_policy
from db.webhooks import expect_deliveries
from halldetect.errors import InputError
from halldetect.record import Record

if TYPE_CHECKING:
    from psycopg import Copy

# Digests of sources that this upload has staged lately, whose text need not be sent again.
_REMEMBERED_SOURCES = 4096

_STAGING_TABLE = text(
    """
    CREATE TEMPORARY TABLE staged_audits (
        line integer NOT NULL, custom_id text, sha256 bytea NOT NULL, source text,
        characters integer NOT NULL, response text NOT NULL, context text,
        metadata jsonb NOT NULL, policy text NOT NULL, priority smallint NOT NULL
    ) ON COMMIT DROP
    """
)
_COPY = (
    "COPY staged_audits (line, custom_id, sha256, source, characters, response, context,"
    " metadata, policy, priority) FROM STDIN"
)
_REPEATED_CUSTOM_IDS = text(
    """
    SELECT line, custom_id, first_line FROM (
        SELECT line, custom_id, min(line) OVER (PARTITION BY custom_id) AS first_line
        FROM staged_audits WHERE custom_id IS NOT NULL
    ) AS numbered WHERE line > first_line ORDER BY line
    """
)
_UNKNOWN_POLICIES = text(
    """
    SELECT line, policy FROM staged_audits
    WHERE policy NOT IN (SELECT name FROM halldetect.policies) ORDER BY line
    """
)
# In the order of the digests, so that two uploads never wait for each other in a circle.
_STORE_DOCUMENTS = text(
    """
    INSERT INTO halldetect.documents (sha256, text, characters)
    SELECT DISTINCT ON (sha256) sha256, source, characters FROM staged_audits
    WHERE source IS NOT NULL ORDER BY sha256
    ON CONFLICT DO NOTHING
    """
)
_LOCK_DOCUMENTS = text(
    """
    SELECT count(*) = (SELECT count(DISTINCT sha256) FROM staged_audits) FROM (
        SELECT id FROM halldetect.documents
        WHERE sha256 IN (SELECT sha256 FROM staged_audits) FOR KEY SHARE
    ) AS locked
    """
)
_STORE_AUDITS = text(
    """
    INSERT INTO halldetect.audits (batch_id, line, custom_id, document_id, policy_id, response,
        context, metadata, priority, api_key_id)
    SELECT :batch_id, s.line, s.custom_id, d.id, p.id, s.response, s.context, s.metadata,
        s.priority, CAST(:api_key_id AS bigint)
    FROM staged_audits AS s
    JOIN halldetect.documents AS d USING (sha256)
    JOIN (
        SELECT DISTINCT ON (name) name, id FROM halldetect.policies ORDER BY name, id DESC
    ) AS p ON p.name = s.policy
    ORDER BY s.line
    """
)


@dataclass(frozen=True, slots=True)
class LineError:
    """What is wrong with one line of an upload."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class BatchAccepted:
    """A stored batch."""

    batch_id: int
    total: int


@dataclass(frozen=True, slots=True)
class BatchRefused:
    """Why nothing was stored: the first faulty lines, and how many there are in all."""

    errors: list[LineError]
    total_errors: int


class BatchUpload:
    """One batch on its way into the database; memory does not grow with it.

    Use it as a context manager inside a transaction: call `add` or `refuse` for each line, then
    `finish` within the block. Lines go into a temporary table by COPY; unless `finish` accepts
    the batch, no permanent row is written.

    Parameters
    ----------
    session : Session
        Its transaction is used for nothing else.
    default_policy : str
        For records that name none.
    max_errors : int
        Most errors that are remembered with their message.
    api_key_id : int, optional
        The API key that the batch belongs to; None for nobody's.
    """

    def __init__(
        self,
        session: Session,
        *,
        default_policy: str,
        max_errors: int,
        api_key_id: int | None = None,
    ) -> None:
        self._session = session
        self._api_key_id = api_key_id
        self._default_policy = default_policy
        self._max_errors = max_errors
        self._errors: list[LineError] = []
        self._total_errors = 0
        self._total = 0
        self._staged_sources: OrderedDict[bytes, None] = OrderedDict()
        self._copy_context: Any = None
        self._copy: Copy | None = None

    def __enter__(self) -> Self:
        self._session.execute(_STAGING_TABLE)
        self._copy_context = driver_connection(self._session).cursor().copy(_COPY)
        self._copy = self._copy_context.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._copy is not None:
            self._copy = None
            self._copy_context.__exit__(kind, error, trace)

    def add(self, line: int, record: Record) -> None:
        """Stage the record that stands in physical line `line`."""
        if self._copy is None:
            raise RuntimeError("the upload is finished")
        self._total += 1
        digest = document_digest(record.source)
        self._copy.write_row(
            (
                line,
                record.custom_id,
                digest,
                None if self._is_staged(digest) else record.source,
                len(record.source),
                record.response,
                record.context,
                json.dumps(record.metadata, ensure_ascii=False, allow_nan=False),
                record.policy or self._default_policy,
                record.priority,
            )
        )

    def refuse(self, line: int, message: str) -> None:
        """Note what is wrong with a line; the batch will not be accepted."""
        self._note(LineError(line, message))

    def finish(self) -> BatchAccepted | BatchRefused:
        """Store the batch, or say why not.

        Raises
        ------
        InputError
            When the upload held no record at all.
        """
        self.__exit__(None, None, None)
        self._check_across_lines()
        if self._total_errors:
            self._errors.sort(key=lambda fault: fault.line)
            return BatchRefused(self._errors[: self._max_errors], self._total_errors)
        if not self._total:
            raise InputError("the batch holds no record: send one JSON object a line")
        while True:
            self._session.execute(_STORE_DOCUMENTS)
            if self._session.scalar(_LOCK_DOCUMENTS):
                break
        batch_id = self._session.scalars(
            insert(Batch).values(total=self._total, api_key_id=self._api_key_id).returning(Batch.id)
        ).one()
        stored = self._session.execute(
            _STORE_AUDITS, {"batch_id": batch_id, "api_key_id": self._api_key_id}
        )
        if not isinstance(stored, CursorResult) or stored.rowcount != self._total:
            raise RuntimeError(f"{self._total} lines were staged and others stored")
        expect_deliveries(self._session, batch_id, self._api_key_id)
        return BatchAccepted(batch_id, self._total)

    def _check_across_lines(self) -> None:
        for line, custom_id, first in self._session.execute(_REPEATED_CUSTOM_IDS):
            self._note(LineError(line, f"custom_id {custom_id!r} is that of line {first} already"))
        known = [stored.policy.name for stored in list_policies(self._session)]
        for line, name in self._session.execute(_UNKNOWN_POLICIES):
            self._note(LineError(line, f"field policy: {unknown_policy(name, known)}"))

    def _note(self, fault: LineError) -> None:
        self._total_errors += 1
        if len(self._errors) < self._max_errors:
            self._errors.append(fault)

    def _is_staged(self, digest: bytes) -> bool:
        if digest in self._staged_sources:
            self._staged_sources.move_to_end(digest)
            return True
        self._staged_sources[digest] = None
        if len(self._staged_sources) > _REMEMBERED_SOURCES:
            self._staged_sources.popitem(last=False)
        return False


def submit_audit(
    session: Session, record: Record, default_policy: str, api_key_id: int | None = None
) -> int:
    """Store one audit outside any batch and return its id; it belongs to the key, if there is one.

    Raises
    ------
    PolicyError
        When there is no policy of that name.
    """
    policy = get_policy(session, record.policy or default_policy)
    return session.scalars(
        insert(Audit)
        .values(
            custom_id=record.custom_id,
            document_id=find_or_store_document(session, record.source),
            policy_id=policy.id,
            response=record.response,
            context=record.context,
            caller_metadata=record.metadata,
            priority=record.priority,
            api_key_id=api_key_id,
        )
        .returning(Audit.id)
    ).one()
