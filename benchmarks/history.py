"""Fill a database with a history of audits, shaped like a real one, and scored by the real rules.

    python benchmarks/history.py postgresql://... --claims 1000000

About five claims an audit, sources of 350 words with 15 to 31 spans, several months, models and
policies, batches and single audits, failures, pre-selection, re-scorings and reviews. Every score
and verdict is what `halldetect.scoring` makes of the probabilities that are stored. The database
must hold no audit, and the user must be a superuser: foreign keys are not checked.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
from history_audits import make_portion
from history_chance import AUDITS_PER_SOURCE, Documents, Plan, Policies
from history_rows import Rows, array
from history_sources import SENTENCE_COUNTS, SENTENCE_SHARES, facts, source_text, structure_of
from sqlalchemy.engine import make_url
from sqlalchemy.orm import Session

from db.engine import make_engine, session_factory
from db.migrate import upgrade
from db.models import ModelKind
from db.partitions import ensure_partitions
from db.policies import get_policy, seed_builtin_policies
from db.provenances import model_id
from halldetect.scoring.policy import EMBEDDED, PAPER

SEED = 20
CLAIMS_PER_AUDIT = 5
PORTION_AUDITS = 2000

NLI_MODELS = (
    ("minilm-nli-3way", "onnx", "sha256:" + "1a" * 32, "float32", "cpu"),
    ("minilm-nli-3way", "onnx", "sha256:" + "2b" * 32, "float32", "cpu"),
    ("DeBERTa-v3-large-mnli-fever-anli-ling-wanli", "torch", "b5113eb38ab6", "float16", "cuda:0"),
)
EXTRACTORS = (
    ("SmolLM2-135M-Instruct.Q4_1.gguf", "llama", "sha256:" + "3c" * 32, "Q4_1", "cpu"),
    ("sentences", "sentences", "", "none", "cpu"),
)
_SEQUENCES = ("documents", "span_tables", "batches", "audits", "claims")


@dataclass(frozen=True, slots=True)
class HistorySize:
    """What was stored.

    Parameters
    ----------
    documents, audits, claims : int
        Rows.
    cells : int
        Probabilities of a span and a claim, each three numbers.
    seconds : float
        How long it took.
    """

    documents: int
    audits: int
    claims: int
    cells: int
    seconds: float


def generate(
    url: str,
    *,
    claims: int = 1_000_000,
    months: int = 6,
    rescored: bool = True,
) -> HistorySize:
    """Migrate the database and fill it.

    Parameters
    ----------
    url : str
        ``postgresql://...``, of a superuser.
    claims : int
        About how many to store.
    months : int
        How many the audits are spread over; this month is the last.
    rescored : bool
        Whether audits under the policy ``embedded`` have a scoring under ``paper`` too.

    Raises
    ------
    ValueError
        When the database holds audits, or what they refer to; nothing was written.
    """
    started = time.perf_counter()
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    _check_empty(address)
    upgrade(url)
    random = np.random.default_rng(SEED)
    audits = max(1, round(claims / CLAIMS_PER_AUDIT))
    plan = _plan(url, random, audits, months)
    stored_claims = cells = 0
    # The server stores one portion while the next is made.
    with psycopg.connect(address) as connection, ThreadPoolExecutor(1) as sender:
        _prepare(connection)
        _store_batches(connection, plan)
        _store_documents(connection, plan.documents, plan.submitted[0])
        sent: Future[None] | None = None
        for first in range(0, audits, PORTION_AUDITS):
            last = min(first + PORTION_AUDITS, audits)
            portion = make_portion(plan, random, first, last, stored_claims, rescored=rescored)
            stored_claims += portion.claims
            cells += portion.cells
            if sent is not None:
                sent.result()
            sent = sender.submit(portion.rows.send, connection)
        if sent is not None:
            sent.result()
        _finish(connection)
    seconds = time.perf_counter() - started
    return HistorySize(len(plan.documents), audits, stored_claims, cells, seconds)


def _plan(url: str, random: np.random.Generator, audits: int, months: int) -> Plan:
    """Decide who submits what when, and store what audits refer to by name."""
    now = datetime.now(UTC)
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(months - 1):
        first = (first - timedelta(days=1)).replace(day=1)
    engine = make_engine(url)
    with session_factory(engine).begin() as session:
        seed_builtin_policies(session)
        ensure_partitions(session, first.date(), months)
        policies = Policies(
            embedded=get_policy(session, EMBEDDED.name), paper=get_policy(session, PAPER.name)
        )
        encoders = [_model(session, ModelKind.NLI, model) for model in NLI_MODELS]
        extractors = [_model(session, ModelKind.EXTRACTOR, model) for model in EXTRACTORS]
    engine.dispose()
    offsets = np.sort(random.random(audits)) * (now - first).total_seconds() * 1e6
    submitted = np.datetime64(first.replace(tzinfo=None), "us") + offsets.astype("timedelta64[us]")
    batch, line = _batches(random, audits)
    # A batch is submitted at once.
    opening = np.maximum.accumulate(np.where(line > 1, 0, np.arange(audits)))
    return Plan(
        policies=policies,
        encoders=encoders,
        extractors=extractors,
        submitted=submitted[opening],
        batch=batch,
        line=line,
        documents=_documents(random, audits),
    )


def _model(session: Session, kind: ModelKind, values: tuple[str, ...]) -> int:
    provenance = dict(zip(("name", "backend", "revision", "dtype", "device"), values, strict=True))
    return model_id(session, kind, {**provenance, "libraries": {"numpy": np.__version__}})


def _batches(
    random: np.random.Generator, audits: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Give every audit a batch and its line there, or 0 and 0: a fifth come one by one."""
    largest = min(max(2, audits // 40), 5000)
    batch = np.zeros(audits, dtype=np.int64)
    line = np.zeros(audits, dtype=np.int64)
    at, number = 0, 0
    while at < audits:
        number += 1
        size = min(int(random.integers(1, largest + 1)), audits - at)
        batch[at : at + size] = number
        line[at : at + size] = np.arange(1, size + 1)
        at += size + max(1, size // 4)
    return batch, line


def _documents(random: np.random.Generator, audits: int) -> Documents:
    count = max(1, audits // AUDITS_PER_SOURCE)
    sentences = random.choice(SENTENCE_COUNTS, size=count, p=SENTENCE_SHARES)
    chosen = random.integers(len(facts()), size=(count, max(SENTENCE_COUNTS)))
    return Documents(sentences, chosen)


def _check_empty(address: str) -> None:
    """Refuse a database with rows in the tables that get numbers from 1."""
    with psycopg.connect(address) as connection:
        for table in _SEQUENCES:
            name = f"halldetect.{table}"
            if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,):
                continue
            if connection.execute(f"SELECT EXISTS (SELECT FROM {name})").fetchone() == (True,):
                raise ValueError(f"the database holds {table}: give the address of an empty one")


def _prepare(connection: psycopg.Connection) -> None:
    connection.execute("SET session_replication_role = replica")
    connection.execute("SET timezone = 'UTC'")


def _store_batches(connection: psycopg.Connection, plan: Plan) -> None:
    rows = Rows()
    opening = np.flatnonzero(plan.line == 1)
    totals = np.bincount(plan.batch)[1:]
    for at, total in zip(opening, totals, strict=True):
        rows.add("batches", plan.batch[at], total, plan.submitted[at])
    rows.send(connection)


def _store_documents(
    connection: psycopg.Connection, documents: Documents, created: np.datetime64
) -> None:
    rows = Rows()
    for number in range(len(documents)):
        structure = structure_of(int(documents.sentences[number]))
        text, starts, ends = source_text(number, documents.facts_of(number))
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        # Row numbers of a document and of its span table agree.
        rows.add("documents", number + 1, rf"\\x{sha256}", text, len(text), created)
        rows.add(
            "span_tables",
            number + 1,
            number + 1,
            "punkt-en",
            "bert-uncased",
            512,
            array([starts[first] for first, _ in structure.spans]),
            array([ends[last - 1] for _, last in structure.spans]),
            array(structure.chunks.granularity),
            array(structure.chunks.offsets),
            array(structure.chunks.indices),
            structure.sentences,
            0,
            len(text) // 4,
            3 if number % 100 == 0 else 0,  # characters that the encoder does not know
            structure.windowed_chunks,
        )
        if number % PORTION_AUDITS == PORTION_AUDITS - 1:
            rows.send(connection)
    rows.send(connection)


def _finish(connection: psycopg.Connection) -> None:
    """Let identities go on after what was stored, and bring the planner up to date."""
    for table in _SEQUENCES:
        connection.execute(
            f"SELECT setval(pg_get_serial_sequence('halldetect.{table}', 'id'), max(id))"
            f" FROM halldetect.{table}"
        )
    connection.commit()
    connection.autocommit = True
    connection.execute("VACUUM (ANALYZE)")


def main() -> None:
    """Read the command line, generate, say what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="postgresql://user:password@host:port/name")
    parser.add_argument("--claims", type=int, default=1_000_000, help="default: %(default)s")
    parser.add_argument("--months", type=int, default=6, help="default: %(default)s")
    parser.add_argument("--not-rescored", dest="rescored", action="store_false")
    arguments = parser.parse_args()
    size = generate(
        arguments.url,
        claims=arguments.claims,
        months=arguments.months,
        rescored=arguments.rescored,
    )
    print(
        f"{size.documents:,} sources, {size.audits:,} audits, {size.claims:,} claims,"
        f" {size.cells:,} cells in {size.seconds:.0f} s"
    )


if __name__ == "__main__":
    main()
