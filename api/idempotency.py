"""Requests that are sent twice: what counts as the same one, and how the first is replayed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from fastapi import Request, Response
from pydantic import BaseModel
from sqlalchemy.orm import Session

from db.idempotency import begin, remember
from db.ownership import Caller

_ACCEPTED = 202


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A request that stores something, and may be sent again.

    Parameters
    ----------
    key : str or None
        The client's Idempotency-Key; without one every repetition is a request of its own.
    digest : bytes
        What tells the request from others.
    api_key_id : int or None
        Whose it is: what it stores, and its Idempotency-Key too.
    """

    key: str | None
    digest: bytes
    api_key_id: int | None

    @classmethod
    def of(
        cls, request: Request, key: str | None, body_sha256: bytes, caller: Caller
    ) -> Repeatable:
        """Describe a request by its method, path, query and body, and by who sends it."""
        line = f"{request.method} {request.url.path}?{request.url.query}\n"
        digest = hashlib.sha256(line.encode() + body_sha256).digest()
        return cls(key, digest, caller.api_key_id)

    def first_answer(self, session: Session) -> Response | None:
        """Take the key for the rest of the transaction, or return the answer it already has.

        Raises
        ------
        KeyInProgress
            When the first request with this key is still running.
        KeyReused
            When the key belongs to another request.
        """
        if self.key is None:
            return None
        replay = begin(session, self.key, self.digest, self.api_key_id)
        if replay is None:
            return None
        headers = {**replay.headers, "Idempotency-Replayed": "true"}
        return Response(replay.body, replay.status, headers)

    def accepted(self, session: Session, location: str, answer: BaseModel) -> Response:
        """Return the answer, kept in the transaction that stores what it speaks of."""
        headers = {"Content-Type": "application/json", "Location": location}
        body = answer.model_dump_json().encode()
        if self.key is not None:
            remember(session, self.key, self.digest, _ACCEPTED, headers, body, self.api_key_id)
        return Response(body, _ACCEPTED, headers)
