"""What one audit costs in Postgres, by table: a source of 350 words, a response of 50.

    python benchmarks/storage.py [--audits 1000] [--audits-per-source 1] [--json OUT.json]

A server of its own starts in a temporary folder. Audits go in by the functions that API and workers
call, one transaction each, so that rows are updated as often as in service; claims and spans are
real, and only the encoder's probabilities are drawn, which Postgres cannot compress either way.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from history_sources import Fact, facts, source_text
from sqlalchemy.orm import Session, sessionmaker

from cli.stack.postgres import PostgresServer
from db.claiming import ClaimedAudit, claim_extraction, claim_verification
from db.engine import make_engine, session_factory
from db.extractions import save_extraction
from db.migrate import upgrade
from db.models import ModelKind
from db.partitions import ensure_current_partitions
from db.policies import seed_builtin_policies
from db.provenances import model_id
from db.spans import SpanKey
from db.submission import BatchUpload
from db.verifications import save_verification
from halldetect.auditor import Auditor, decompose_response, encoder_identity
from halldetect.model_loading import load_auditor
from halldetect.record import Record, make_record
from halldetect.results import score_claims, warnings_of
from halldetect.scoring.matrix import ProbabilityMatrix
from halldetect.settings import Settings
from halldetect.sources import prepare_source
from halldetect.text.sentences import SPLITTER
from halldetect.verification import hypotheses_of

SOURCE_SENTENCES = 15
CLAIMS = 4
SEED = 7
_AT_A_TIME = 100
_SIZES = """
    SELECT CASE WHEN c.relispartition THEN 'probabilities' ELSE c.relname END,
        sum(pg_relation_size(c.oid)), sum(coalesce(pg_total_relation_size(c.reltoastrelid), 0)),
        sum(pg_indexes_size(c.oid)), sum(c.reltuples)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = 'halldetect' AND c.relkind = 'r'
    GROUP BY 1 HAVING sum(c.reltuples) > 20 ORDER BY sum(pg_total_relation_size(c.oid)) DESC
"""


@dataclass(frozen=True, slots=True)
class TableSize:
    """Bytes an audit, in one table."""

    table: str
    rows: float
    heap: float
    toast: float
    indexes: float

    @property
    def total(self) -> float:
        """All three."""
        return self.heap + self.toast + self.indexes


def main() -> None:
    """Store, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--audits-per-source", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    records = list(_records(arguments.audits, arguments.audits_per_source))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # run by root, the server belongs to nobody
        server = PostgresServer(Path(folder) / "postgres", durable=False)
        server.start()
        try:
            _fill(server.url, records)
            sizes = list(_measured(server.url, len(records)))
        finally:
            server.stop()
    _print(records, sizes)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(size) for size in sizes], indent=1))


def _records(count: int, per_source: int) -> Iterator[Record]:
    random = np.random.default_rng(SEED)
    known = facts()
    for number in range(count):
        if number % per_source == 0:
            chosen = random.choice(len(known), SOURCE_SENTENCES, replace=False)
            source, _, _ = source_text(number, chosen)
        said: list[Fact] = [known[fact] for fact in random.choice(chosen, CLAIMS, replace=False)]
        kinds = random.integers(0, 3, CLAIMS)
        yield make_record(
            custom_id=f"evening-run-{number:06}",
            source=source,
            response=" ".join(fact.claims[kind] for fact, kind in zip(said, kinds, strict=True)),
            context="What happened in the district?",
            metadata={"model": f"writer-{number % 3}", "run": "2026-03-01"},
        )


def _fill(url: str, records: list[Record]) -> None:
    upgrade(url)
    engine = make_engine(url)
    sessions = session_factory(engine)
    with sessions.begin() as session:
        seed_builtin_policies(session)
        ensure_current_partitions(session)
    with (
        sessions.begin() as session,
        BatchUpload(session, default_policy="embedded", max_errors=1) as upload,
    ):
        for line, record in enumerate(records, start=1):
            upload.add(line, record)
        upload.finish()
    auditor = load_auditor(Settings(extractor="sentences"))
    with sessions.begin() as session:
        extractor = model_id(session, ModelKind.EXTRACTOR, auditor.extractor.provenance.to_json())
        nli = model_id(session, ModelKind.NLI, encoder_identity(auditor.nli))
    random = np.random.default_rng(SEED)
    while _extract_some(sessions, auditor, extractor):
        pass
    while claimed := _claimed(sessions):
        for audit in claimed:
            _verify(sessions, auditor, audit, nli, random)
    engine.dispose()


def _extract_some(sessions: sessionmaker[Session], auditor: Auditor, extractor: int) -> int:
    with sessions.begin() as session:
        claimed = claim_extraction(session, "worker", lease_seconds=600, max_audits=_AT_A_TIME)
    for audit in claimed:
        decomposition = decompose_response(
            audit.response, auditor.extractor, auditor.nli.tokenizer, auditor.options
        )
        with sessions.begin() as session:
            save_extraction(
                session,
                audit.lease,
                decomposition,
                response=audit.response,
                mode=auditor.options.mode,
                model_id=extractor,
            )
    return len(claimed)


def _claimed(sessions: sessionmaker[Session]) -> list[ClaimedAudit]:
    with sessions.begin() as session:
        return claim_verification(
            session, "worker", lease_seconds=600, max_audits=_AT_A_TIME, token_budget=10**9
        )


def _verify(
    sessions: sessionmaker[Session],
    auditor: Auditor,
    audit: ClaimedAudit,
    nli: int,
    random: np.random.Generator,
) -> None:
    source = prepare_source(audit.source, auditor.nli, auditor.options.max_sentences)
    hypotheses = hypotheses_of(audit.claims, audit.response, auditor.nli)
    shape = (len(audit.claims), len(source.library.spans))
    triples = random.dirichlet((0.3, 1.0, 0.3), shape).astype(np.float32)
    matrix = ProbabilityMatrix(*np.ascontiguousarray(np.moveaxis(triples, 2, 0)))
    with sessions.begin() as session:
        save_verification(
            session,
            audit.lease,
            document_id=audit.document_id,
            source=source,
            span_key=SpanKey(SPLITTER, auditor.nli.tokenizer.digest, auditor.nli.max_tokens),
            hypotheses=hypotheses,
            matrix=matrix,
            score=score_claims(audit.claims, source.library, matrix, audit.policy),
            warnings=warnings_of(source, hypotheses),
            model_id=nli,
            preselected_spans=None,
        )


def _measured(url: str, audits: int) -> Iterator[TableSize]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        for table, heap, toast, indexes, rows in connection.execute(_SIZES).fetchall():
            counts = (rows, heap, toast, indexes)
            yield TableSize(table, *(float(count) / audits for count in counts))


def _print(records: list[Record], sizes: list[TableSize]) -> None:
    words = [
        np.mean([len(text.split()) for text in texts])
        for texts in (
            [record.source for record in records],
            [record.response for record in records],
        )
    ]
    print(f"{len(records):,} audits; sources of {words[0]:.0f} words, responses of {words[1]:.0f}")
    print(f"{'bytes an audit':<18}{'rows':>8}{'heap':>9}{'toast':>9}{'indexes':>9}{'all':>9}")
    for size in sizes:
        parts = f"{size.heap:>9,.0f}{size.toast:>9,.0f}{size.indexes:>9,.0f}{size.total:>9,.0f}"
        print(f"{size.table:<18}{size.rows:>8.2f}{parts}")
    print(f"{'all':<18}{sum(size.total for size in sizes):>44,.0f}")


if __name__ == "__main__":
    main()
