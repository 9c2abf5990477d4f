"""The views say what the trail says."""

from __future__ import annotations

from datetime import date

import psycopg
import pytest
from psycopg.rows import dict_row

from db.audits import get_audit
from db.batches import batch_state
from db.models import PolicyVersion, Review, Scoring
from db.partitions import ensure_partitions
from db.policies import get_policy
from db.progress import fail_audit
from halldetect.scoring.policy import PAPER
from halldetect.scoring.verdict import Label, Verdict
from halldetect.sources import prepare_source
from halldetect.verification import hypotheses_of

SOURCE = "The mill opened in 1900. 🦆 It closed in 1950. It was empty. 東京は日本の首都。"
RESPONSE = "The mill 🦆 opened in 1900. It closed in 1940. Could you say more?"


@pytest.fixture
def connection(database):
    with psycopg.connect(database, row_factory=dict_row) as connection:
        yield connection


@pytest.fixture
def rows(connection):
    """Return a function: a query on the views to its rows."""
    return lambda query, *values: connection.execute(query, values).fetchall()


@pytest.fixture
def row(rows):
    def one(query, *values):
        [found] = rows(query, *values)
        return found

    return one


def evidence_of(claim, kind):
    return {
        key: claim[f"{kind}{suffix}"]
        for key, suffix in {
            "probability": "",
            "chunk": "_chunk",
            "start": "_start",
            "end": "_end",
            "text": "_text",
        }.items()
    }


@pytest.mark.parametrize("preselected", [None, 2])
def test_claims_and_their_evidence_are_those_of_the_trail(service, sessions, rows, preselected):
    service.submit(RESPONSE, source=SOURCE, metadata={"k": 1})
    service.run(preselected_spans=preselected)
    with sessions.begin() as session:
        trail = get_audit(session, 1)
    claims = rows("SELECT * FROM trail.claims ORDER BY position")
    assert len(claims) == len(trail.claims) == 2
    for claim, expected in zip(claims, trail.claims, strict=True):
        for field in ("text", "verified_text", "verdict", "score", "origin", "checked_spans"):
            assert claim[field] == getattr(expected, field)
        for kind in ("entailment", "contradiction"):
            found = getattr(expected, kind)
            assert evidence_of(claim, kind) == {
                "probability": pytest.approx(found.probability),
                "chunk": found.chunk,
                "start": found.span.start,
                "end": found.span.end,
                "text": found.text,
            }
            assert SOURCE[claim[f"{kind}_start"] : claim[f"{kind}_end"]] == found.text
        assert claim["response_text"] == RESPONSE[expected.span.start : expected.span.end]
        assert claim["metadata"] == {"k": 1}
    assert [claim["response_text"] for claim in claims] == [
        "The mill 🦆 opened in 1900.",
        "It closed in 1940.",
    ]


@pytest.mark.parametrize("preselected", [None, 3])
def test_chunk_probabilities_are_the_best_of_their_spans(
    service, sessions, nli, rows, random_matrix, preselected
):
    source = " ".join(f"In the year {1000 + n} the mill made {n} sacks of rye." for n in range(60))
    service.submit("The mill made flour. The mill made 7 sacks.", source=source)
    service.extract(service.claim_extraction()[0])
    [claimed] = service.claim_verification()
    read = prepare_source(source, nli, 50_000)
    hypotheses = hypotheses_of(claimed.claims, claimed.response, nli)
    matrix = random_matrix(len(claimed.claims), len(read.library.spans))
    if preselected is not None:
        for cells in (matrix.entailment, matrix.neutral, matrix.contradiction):
            cells[:, preselected:] = float("nan")
    service.save(claimed, read, hypotheses, matrix, preselected)
    with sessions.begin() as session:
        trail = get_audit(session, 1, with_matrix=True).matrix

    found = rows(
        "SELECT * FROM trail.chunk_probabilities ORDER BY position, granularity, chunk_index"
    )
    windowed = skipped = 0
    expected = [
        (position, chunk) for position in range(len(claimed.claims)) for chunk in trail.chunks
    ]
    for row, (position, chunk) in zip(found, expected, strict=True):
        assert row["position"] == position
        assert row["chunk"] == f"{chunk.granularity}/{chunk.index}"
        assert row["spans"] == len(chunk.spans)
        for kind in ("entailment", "contradiction"):
            cells = [getattr(trail, kind)[position][span] for span in chunk.spans]
            scored = [cell for cell in cells if cell is not None]
            assert row[kind] == (pytest.approx(max(scored)) if scored else None)
            skipped += not scored
        neutral = trail.neutral[position][chunk.spans[0]]
        is_one = len(chunk.spans) == 1
        assert row["neutral"] == (pytest.approx(neutral) if is_one and neutral else None)
        windowed += not is_one
        covered = [trail.spans[span] for span in chunk.spans]
        assert row["source_start"] == min(span.start for span in covered)
        assert row["source_end"] == max(span.end for span in covered)
        assert row["text"] == source[row["source_start"] : row["source_end"]]
    assert windowed > 0, "the source is too long for one span"
    assert (skipped > 0) == (preselected is not None)


def test_an_audit_shows_its_models_times_and_counts(service, sessions, row, nli):
    service.submit(RESPONSE, source=SOURCE, context="When?", metadata={"team": "legal"})
    service.run()
    audit = row("SELECT * FROM trail.audits")
    with sessions.begin() as session:
        trail = get_audit(session, 1)
    assert audit["score"] == trail.fedscore
    assert (audit["label"], audit["policy"]) == (trail.label, "embedded")
    assert audit["policy_version"] == trail.policy.version
    counts = {name: audit[name] for name in type(trail.counts).model_fields}
    assert counts == trail.counts.model_dump()
    assert audit["claims"] == len(trail.claims)
    assert audit["extractor_provenance"] == trail.models["extractor"]
    assert audit["nli_provenance"] == trail.models["nli"]
    assert audit["nli_model"] == nli.provenance.name
    assert audit["metadata"] == {"team": "legal"}
    assert (audit["context"], audit["response"]) == ("When?", RESPONSE)
    assert (audit["prompt_tokens"], audit["output_tokens"]) == (0, 0)
    stages = ("queue", "extraction", "verification_queue", "verification")
    seconds = [audit[f"{stage}_seconds"] for stage in stages]
    assert min(seconds) >= 0
    assert sum(seconds) == pytest.approx(audit["total_seconds"], abs=1e-4)
    reading = row("SELECT * FROM trail.document_readings")
    assert reading["reading_id"] == audit["reading_id"]
    assert reading["unknown_tokens"] == trail.document.unknown_tokens > 0
    assert row("SELECT * FROM trail.documents")["sha256"] == trail.document.sha256


def test_what_is_not_there_yet_is_null(service, rows, row):
    service.submit("The mill opened in 1900.")
    audit = row("SELECT * FROM trail.audits")
    assert audit["status"] == "queued"
    assert {
        audit[name] for name in ("score", "claims", "unaudited", "nli_model", "output_tokens")
    } == {None}
    service.extract(service.claim_extraction()[0])
    claim = row("SELECT * FROM trail.claims")
    assert claim["text"] == claim["response_text"] == "The mill opened in 1900."
    assert {
        claim[name] for name in ("verdict", "score", "entailment_text", "entailment_chunk")
    } == {None}
    assert rows("SELECT * FROM trail.scorings") == []
    assert rows("SELECT * FROM trail.claim_scorings") == []


def test_batches_count_as_the_api_does(service, sessions, row):
    service.submit(RESPONSE, "Thanks!", "It burned.", "It opened.", source=SOURCE)
    service.run()
    service.submit("The mill opened in 1900.", "It closed.")
    [claimed, _] = service.claim_extraction()
    with sessions.begin() as session:
        fail_audit(session, claimed.lease, "no reason")
    for batch_id in (1, 2):
        with sessions.begin() as session:
            state = batch_state(session, batch_id)
        batch = row("SELECT * FROM trail.batches WHERE batch_id = %s", batch_id)
        assert batch["status"] == state.status
        for name in batch.keys() - {"batch_id", "status", "flag_rate", "mean_score"}:
            assert batch[name] == getattr(state, name), name
    assert batch["flag_rate"] is None


def test_rates_are_over_scored_audits_with_the_others_beside(service, rows, row):
    service.submit(RESPONSE, "The mill opened in 1900.", "Thanks!", "", source=SOURCE)
    service.run()
    day = row("SELECT * FROM trail.daily_rates")
    scores = rows("SELECT score FROM trail.audits WHERE outcome = 'scored'")
    assert (day["audits"], day["scored"], day["no_checkable_claims"]) == (4, 2, 2)
    assert day["flag_rate"] == day["hallucinated"] / 2 == 0.5
    assert day["mean_score"] == pytest.approx(sum(one["score"] for one in scores) / 2)


@pytest.fixture
def rescored(service, sessions):
    """Audits that are scored under `paper` too, with values that are easy to tell apart."""
    service.submit(RESPONSE, "Thanks!", source=SOURCE)
    service.run()
    with sessions.begin() as session:
        policy_id = get_policy(session, PAPER.name).id
        session.add_all(
            [
                Scoring(
                    audit_id=1,
                    policy_id=policy_id,
                    response_score=0.25,
                    label=Label.FAITHFUL,
                    deciding_claim=1,
                    claim_values=[0.5, -0.5],
                    verdicts=["supported", "contradicted"],
                ),
                Scoring(audit_id=2, policy_id=policy_id, claim_values=[], verdicts=[]),
            ]
        )


def test_scorings_stand_beside_the_score_under_the_audits_own_policy(rescored, rows):
    found = rows("SELECT * FROM trail.scorings ORDER BY audit_id, is_default DESC")
    assert [(s["audit_id"], s["policy"], s["is_default"]) for s in found] == [
        (1, "embedded", True),
        (1, "paper", False),
        (2, "embedded", True),
        (2, "paper", False),
    ]
    own, other, silent, also_silent = found
    audit = rows("SELECT * FROM trail.audits ORDER BY audit_id")[0]
    counts = ("supported", "contradicted", "unsupported")
    for name in ("score", "label", "deciding_claim", "policy_version", *counts):
        assert own[name] == audit[name]
    assert [other[name] for name in ("score", "label", *counts)] == [0.25, "faithful", 1, 1, 0]
    for nothing in (silent, also_silent):
        assert [nothing[name] for name in ("score", "label", *counts)] == [None, None, 0, 0, 0]


def test_claim_scorings_give_each_claim_its_own_value(rescored, rows):
    found = rows(
        "SELECT c.claim_id, c.score AS own, s.score, s.verdict, s.text = c.text AS same"
        " FROM trail.claims AS c JOIN trail.claim_scorings AS s USING (claim_id)"
        " WHERE s.policy = 'paper' ORDER BY c.position"
    )
    assert [(one["score"], one["verdict"], one["same"]) for one in found] == [
        (0.5, "supported", True),
        (-0.5, "contradicted", True),
    ]
    own = rows("SELECT * FROM trail.claim_scorings WHERE is_default")
    stored = rows("SELECT claim_id, score, verdict FROM trail.claims ORDER BY claim_id")
    assert [{name: one[name] for name in stored[0]} for one in own] == stored


def test_policies_say_which_version_new_audits_get(sessions, rows):
    rules = PAPER.model_copy(update={"granularities": (1, 4)})
    with sessions.begin() as session:
        content = rules.model_dump(mode="json", exclude={"name"})
        session.add(PolicyVersion(name="paper", version=rules.version, rules=content))
    old, new = rows("SELECT * FROM trail.policies WHERE policy = 'paper' ORDER BY policy_id")
    assert (old["is_newest"], new["is_newest"]) == (False, True)
    assert (old["granularities"], new["granularities"]) == (None, [1, 4])
    assert new["claim_value"] == "contrastive"
    assert (new["margin"], new["response_threshold"]) == (0, 0.5)


def test_the_latest_review_of_each_reviewer_counts(sessions, row, rows):
    said = [
        (1, "ada", "supported"),
        (1, "ada", "contradicted"),
        (1, "grace", "contradicted"),
        (1, "edsger", "supported"),
        (2, "ada", "supported"),
        (2, "grace", "unsupported"),
    ]
    with sessions.begin() as session:
        for claim_id, reviewer, verdict in said:
            session.add(
                Review(
                    claim_id=claim_id,
                    audit_id=9,
                    claim_text="It closed.",
                    verdict=Verdict.CONTRADICTED,
                    reviewer=reviewer,
                    reviewer_verdict=verdict,
                )
            )
            session.flush()
    reviews = rows("SELECT agrees, is_latest FROM trail.reviews ORDER BY review_id")
    assert [one["is_latest"] for one in reviews] == [False, True, True, True, True, True]
    assert [one["agrees"] for one in reviews] == [False, True, True, False, False, False]
    first = row("SELECT * FROM trail.reviewed_claims WHERE claim_id = 1")
    assert (first["reviewers"], first["agreeing"]) == (3, 2)
    assert (first["supported_votes"], first["contradicted_votes"]) == (1, 2)
    assert first["majority_verdict"] == "contradicted"
    tied = row("SELECT * FROM trail.reviewed_claims WHERE claim_id = 2")
    assert tied["majority_verdict"] is None


def test_a_query_about_one_audit_reads_one_partition(service, sessions, connection):
    with sessions.begin() as session:
        ensure_partitions(session, date(2020, 1, 1), 12)
    service.submit("The mill opened in 1900.")
    service.run()
    plan = connection.execute(
        "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM trail.chunk_probabilities WHERE audit_id = 1"
    ).fetchone()["QUERY PLAN"][0]["Plan"]
    assert len([name for name in scanned(plan) if name.startswith("probabilities_")]) == 1


def scanned(node):
    if node.get("Actual Loops", 1) and "Relation Name" in node:
        yield node["Relation Name"]
    for child in node.get("Plans", []):
        yield from scanned(child)
