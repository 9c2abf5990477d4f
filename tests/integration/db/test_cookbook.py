"""Every query of docs/sql.md runs on audits that the real encoder made, and finds something."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from stored_audits import complete_waiting, submit_batch

from db.audits import stream_results
from db.claiming import claim_extraction
from db.engine import make_engine, session_factory
from db.models import PolicyVersion, Review, Scoring
from db.policies import get_policy
from db.progress import fail_audit
from db.submission import submit_audit
from halldetect.auditor import AuditOptions, Auditor
from halldetect.claims.extractor import Extraction
from halldetect.claims.model import ExtractionMode, FinishReason
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.provenance import ModelProvenance
from halldetect.record import make_record
from halldetect.rescoring import rescore
from halldetect.scoring.policy import EMBEDDED, PAPER
from halldetect.scoring.verdict import Verdict

DOCUMENT = Path(__file__).parents[3] / "docs" / "sql.md"
COOKBOOK = DOCUMENT.read_text(encoding="utf-8").partition("\n## Cookbook\n")[2]
QUESTIONS = {
    section.partition("\n")[0]: re.findall(r"^```sql\n(.*?)^```$", section, re.M | re.S)
    for section in re.split(r"^### ", COOKBOOK, flags=re.M)[1:]
}

SOURCE = (
    "The mill opened in 1900. It was built by Anna Berg. The mill burned down in 1950. Nobody was "
    "hurt in the fire. The town paid 400 pounds for the ruin in 1951. A museum opened there in "
    "1987. It has 12 rooms. The museum is free on Sundays. 🦆🦆 東京."
)
RESPONSES = [
    "The mill opened in 1900. The mill burned down in 1950.",
    "The mill opened in 1910. The museum has 15 rooms.",
    "The museum is free on Mondays. Nobody was hurt.",
    "Thanks!",
    "The mill was built by Anna Berg. The museum sells 30 kinds of tea.",
    "The town paid 900 pounds for the ruin in 1951. A museum opened there in 1987.",
    "Several people were hurt in the fire.",
    "The museum was opened in 1987 by the king.",
]
STRICT = EMBEDDED.model_copy(update={"name": "strict", "response_threshold": 0.97})


class Inventor:
    """An extractor that copies the first sentence, leaves out the others, and adds one."""

    provenance = ModelProvenance(
        name="inventor", backend="llama", revision="sha256:00", dtype="Q4_1", device="cpu"
    )

    def extract(self, text, max_claims, ends_at):
        first = text.partition(". ")[0]
        return Extraction(
            output=f"{first}.\nThe owner was a dragon.",
            finish=FinishReason.STOP,
            prompt_tokens=100,
            output_tokens=20,
        )


@pytest.fixture(scope="module")
def history(module_database, nli):
    """The address of a database with a history that holds an answer to every question."""
    engine = make_engine(module_database)
    fill(session_factory(engine), nli)
    engine.dispose()
    return module_database


def fill(sessions, nli):
    plain = Auditor(SentenceExtractor(), nli, EMBEDDED)
    batch = submit_batch(sessions, *RESPONSES, source=SOURCE, metadata={"model": "assistant-1"})
    submit_batch(sessions, *RESPONSES[::2], source=SOURCE, metadata={"model": "assistant-2"})
    submit_batch(sessions, *RESPONSES, source=SOURCE, policy="paper")
    with sessions.begin() as session:
        rules = STRICT.model_dump(mode="json", exclude={"name"})
        session.add(PolicyVersion(name=STRICT.name, version=STRICT.version, rules=rules))
    submit_batch(sessions, RESPONSES[4], source=SOURCE, policy="strict")
    complete_waiting(sessions, plain)
    for mode in ExtractionMode:
        submit_batch(sessions, *RESPONSES[:2], source=SOURCE)
        complete_waiting(sessions, Auditor(Inventor(), nli, EMBEDDED, AuditOptions(mode=mode)))
    fail_one(sessions)
    score_under_paper(sessions, batch)
    review(sessions)
    with sessions.begin() as session:
        session.execute(text("ANALYZE"))


def fail_one(sessions):
    with sessions.begin() as session:
        submit_audit(session, make_record(source=SOURCE, response="It failed."), "embedded")
        [claimed] = claim_extraction(session, "w", lease_seconds=60, max_audits=1)
        fail_audit(session, claimed.lease, "the response has 120,400 characters; at most 9 may be")


def score_under_paper(sessions, batch):
    with sessions.begin() as session:
        trails = list(stream_results(session, batch, with_matrix=True))
        paper = get_policy(session, "paper")
        for trail in trails:
            score = rescore(trail, PAPER)
            session.add(
                Scoring(
                    audit_id=int(trail.id),
                    policy_id=paper.id,
                    response_score=score.response_score,
                    label=score.label,
                    deciding_claim=score.deciding_claim,
                    claim_values=score.values.tolist(),
                    verdicts=[verdict.value for verdict in score.verdicts],
                )
            )


def review(sessions):
    """Let two reviewers read every flagged claim: one agrees always, one with every other."""
    flagged = text(
        "SELECT id, audit_id, text, verdict FROM halldetect.claims WHERE verdict <> 'supported'"
    )
    with sessions.begin() as session:
        for claim in session.execute(flagged):
            verdict = Verdict(claim.verdict)
            other = verdict if claim.id % 2 else Verdict.SUPPORTED
            session.add_all(
                Review(
                    claim_id=claim.id,
                    audit_id=claim.audit_id,
                    claim_text=claim.text,
                    verdict=verdict,
                    reviewer=reviewer,
                    reviewer_verdict=said,
                )
                for reviewer, said in (("ada", verdict), ("grace", other))
            )


@pytest.fixture
def analyst(history):
    """A connection that may do what an analyst may."""
    with psycopg.connect(history, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute("SET ROLE halldetect_reader")
        yield connection


def ask(analyst, title):
    return analyst.execute(QUESTIONS[title][0]).fetchall()


def test_there_are_enough_questions_each_with_one_query():
    assert len(QUESTIONS) >= 14
    assert {title: len(queries) for title, queries in QUESTIONS.items() if len(queries) != 1} == {}


@pytest.mark.parametrize("title", QUESTIONS)
def test_the_query_finds_something(analyst, title):
    rows = ask(analyst, title)
    assert rows, "the history holds an answer"
    for column in rows[0]:
        assert any(row[column] is not None for row in rows), f"{column} is always NULL"


def test_rates_are_over_the_audits_that_have_a_score(analyst):
    weeks = ask(analyst, "How often are answers flagged, week by week?")
    # 12 by sentences, of which one says thanks, and 4 by the inventor.
    assert sum(week["audits"] for week in weeks) == 16
    assert sum(week["no_checkable_claims"] for week in weeks) == 1
    for week in weeks:
        scored = week["audits"] - week["no_checkable_claims"]
        assert float(week["flag_rate"]) == pytest.approx(float(week["hallucinated"] / scored))


def test_flips_are_counted_and_listed_alike(analyst):
    counted = ask(analyst, "How many labels flip between two policies, and which way?")
    listed = ask(analyst, "Which audits are those?")
    flips = {
        (row["under_embedded"], row["under_paper"]): row["audits"]
        for row in counted
        if row["under_embedded"] != row["under_paper"]
    }
    assert sum(flips.values()) == len(listed) > 0
    assert all((row["under_embedded"] < 0.25) != (row["under_paper"] < 0.5) for row in listed)


def test_precision_is_the_share_of_flags_that_a_majority_confirms(analyst):
    for row in ask(analyst, "How often are flags right?"):
        # Where the second reviewer disagrees, there is no majority: the claim does not count.
        assert 0 < row["right"] <= row["reviewed"]
        assert row["precision"] == 1
    agreement = {
        row["reviewer"]: row["agreement"]
        for row in ask(analyst, "How far does each reviewer agree with the verdicts?")
    }
    assert agreement["ada"] == 1
    assert 0 < agreement["grace"] < 1


def test_a_claim_is_listed_with_the_number_that_contradicts_it(analyst):
    found = {
        row["text"]: row["contradiction_text"]
        for row in ask(analyst, "Which numbers does the source contradict?")
    }
    assert "400 pounds" in found["The town paid 900 pounds for the ruin in 1951."]


def test_what_the_paper_leaves_out_and_what_an_extractor_invents(analyst):
    left_out = ask(analyst, "What does the mode `paper` leave unaudited?")
    assert "The museum has 15 rooms." in {row["text"] for row in left_out}
    invented = ask(analyst, "Which extractor invents most, and how?")
    assert {(row["extractor"], row["example"]) for row in invented} == {
        ("inventor", "The owner was a dragon")
    }


def test_failures_are_grouped_whatever_their_numbers(analyst):
    [failure] = ask(analyst, "What made audits fail?")
    assert failure["reason"] == "the response has N characters; at most N may be"
