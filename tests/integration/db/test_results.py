"""What is stored is what the method found, and what is read back is the same trail."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import func, select, text

from db.audits import get_audit, stream_results
from db.batches import batch_state
from db.models import Claim, Probability, SpanTable
from halldetect.auditor import Auditor
from halldetect.claims.extractor import Extraction
from halldetect.claims.model import Claim as ResponseClaim
from halldetect.claims.model import ClaimOrigin, FinishReason
from halldetect.claims.sentence_extractor import SentenceExtractor
from halldetect.record import make_record
from halldetect.scoring.policy import EMBEDDED
from halldetect.sources import prepare_source
from halldetect.spans import Span
from halldetect.verification import hypotheses_of

SOURCE = (
    "The mill opened in 1900. It closed in 1950 after a fire. Nobody was hurt. 東京は日本の首都。"
)
RESPONSES = [
    "The mill opened in 1900. It closed in 1940. Could you say more?",
    "Thanks!",
    "",
    "東京は日本の首都。 The fire hurt two people.",
]
# What the service adds, and what a run of its own cannot share.
OF_THE_SERVICE = {
    "id": True,
    "claims": {"__all__": {"id"}},
    "response": True,
    "context": True,
    "batch_id": True,
    "line": True,
    "priority": True,
    "attempts": True,
    "submitted_at": True,
    "extracted_at": True,
    "finished_at": True,
}


@pytest.mark.parametrize("preselected", [None, 2])
def test_a_stored_trail_is_the_one_that_the_method_writes(service, sessions, nli, preselected):
    from halldetect.auditor import AuditOptions

    service.submit(*RESPONSES, source=SOURCE, metadata={"k": [1, "x"]})
    service.run(preselected_spans=preselected)
    auditor = Auditor(
        SentenceExtractor(), nli, EMBEDDED, AuditOptions(preselected_spans=preselected)
    )
    records = [
        make_record(custom_id=f"r{n}", source=SOURCE, response=response, metadata={"k": [1, "x"]})
        for n, response in enumerate(RESPONSES, start=1)
    ]
    expected = [auditor.audit(record) for record in records]
    with sessions.begin() as session:
        stored = list(stream_results(session, 1, with_matrix=True))
        assert get_audit(session, 1) == stored[0].model_copy(update={"matrix": None})
        state = batch_state(session, 1)
    for mine, theirs in zip(stored, expected, strict=True):
        assert mine.model_dump(exclude=OF_THE_SERVICE) == theirs.model_dump(exclude={"id"})
    assert (state.completed, state.no_checkable_claims, state.status) == (4, 2, "completed")
    assert state.finished_at == max(trail.finished_at for trail in stored)


def test_spans_are_stored_once_a_document(service, sessions):
    service.submit("The mill opened in 1900.", "It closed.", source=SOURCE)
    service.submit("It opened.", source=SOURCE)
    service.run()
    with sessions.begin() as session:
        assert session.scalar(select(func.count()).select_from(SpanTable)) == 1


def test_a_large_matrix_is_stored_whole(service, sessions, nli, random_matrix):
    text_of_source = " ".join(f"Sentence number {n} says this." for n in range(4000))
    service.submit("Forty claims.", source=text_of_source)
    service.extract(service.claim_extraction()[0])
    claims = tuple(
        ResponseClaim(f"Claim {n}.", Span(0, 12), ClaimOrigin.LLM, False, True, False)
        for n in range(40)
    )
    with sessions.begin() as session:
        session.execute(text("DELETE FROM halldetect.claims"))
        session.execute(
            text(
                "INSERT INTO halldetect.claims (audit_id, position, text, span_start, span_end,"
                " origin, part, has_name, has_number, has_date)"
                " SELECT 1, n, 'Claim ' || n || '.', 0, 12, 'llm', 0, false, true, false"
                " FROM generate_series(0, 39) AS n"
            )
        )
    (claimed,) = service.claim_verification()
    assert claimed.claims == claims
    source = prepare_source(claimed.source, nli, 50_000)
    matrix = random_matrix(40, len(source.library.spans))
    service.save(claimed, source, hypotheses_of(claims, "x", nli), matrix)
    with sessions.begin() as session:
        rows = list(session.scalars(select(Probability).order_by(Probability.position)))
    assert np.array_equal(
        np.array([row.contradiction for row in rows], dtype=np.float32), matrix.contradiction
    )
    assert matrix.n_spans > 300


def test_nothing_of_a_failed_write_stays(service, sessions, nli, random_matrix):
    service.submit("The mill opened in 1900.")
    service.extract(service.claim_extraction()[0])
    (claimed,) = service.claim_verification()
    source = prepare_source(claimed.source, nli, 50_000)
    with sessions.begin() as session:  # another worker's claims, which cannot be
        session.execute(text("DELETE FROM halldetect.claims"))
    with pytest.raises(RuntimeError, match="not those that were verified"):
        service.save(
            claimed,
            source,
            hypotheses_of(claimed.claims, claimed.response, nli),
            random_matrix(1, len(source.library.spans)),
        )
    with sessions.begin() as session:
        assert get_audit(session, 1).status == "extracted"
        assert session.scalar(select(func.count()).select_from(SpanTable)) == 0
        assert session.scalar(select(func.count()).select_from(Claim)) == 0


class _InventiveExtractor(SentenceExtractor):
    """Says what no response says, with the one character that Postgres refuses."""

    def extract(self, text, max_claims, ends_at):
        return Extraction("The moon is made of\0cheese.", FinishReason.STOP)


def test_generated_text_with_a_nul_is_kept_readable(service, sessions):
    service.extractor = _InventiveExtractor()
    service.submit("The mill opened in 1900.")
    service.run()
    with sessions.begin() as session:
        trail = get_audit(session, 1)
    assert trail.status == "completed"
    assert "\0" not in trail.rejected[0].text
    assert "cheese" in trail.rejected[0].text
