import pytest

from halldetect.claims.model import ClaimOrigin, RejectionReason, UnauditedReason
from halldetect.scoring.policy import PAPER
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import (
    AuditResult,
    ClaimFlags,
    ClaimTrail,
    Counts,
    Evidence,
    Outcome,
    PolicyTrail,
    Rejected,
    Status,
    TextSpan,
    Unaudited,
)

MODELS = {
    "extractor": {"name": "sentences", "backend": "sentences", "dtype": ""},
    "nli": {"name": "tiny", "backend": "onnx", "dtype": "float32"},
}


def evidence(probability, text, start=0):
    span = TextSpan(start=start, end=start + len(text))
    return Evidence(probability=probability, chunk="4/1", span=span, text=text)


@pytest.fixture
def make_claim():
    def make(text="The bridge opened.", verdict=Verdict.SUPPORTED, **fields):
        values = {
            "text": text,
            "verified_text": text,
            "span": TextSpan(start=3, end=3 + len(text)),
            "origin": ClaimOrigin.SENTENCE,
            "part": 0,
            "flags": ClaimFlags(name=False, number=False, date=False),
            "verdict": verdict,
            "score": 0.75,
            "entailment": evidence(0.875, "The bridge opened in May.", 10),
            "contradiction": evidence(0.25, "The tunnel is closed.", 40),
            "checked_spans": 5,
        }
        return ClaimTrail(**{**values, **fields})

    return make


@pytest.fixture
def make_result(make_claim):
    def make(claims=None, **fields):
        claims = [make_claim()] if claims is None else claims
        values = {
            "id": "0",
            "custom_id": None,
            "status": Status.COMPLETED,
            "outcome": Outcome.SCORED,
            "fedscore": 0.125,
            "label": Label.FAITHFUL,
            "deciding_claim": 0,
            "policy": PolicyTrail.of(PAPER),
            "counts": Counts(
                **{v.value: sum(c.verdict is v for c in claims) for v in Verdict},
                rejected=0,
                unaudited=0,
            ),
            "claims": claims,
            "extraction_mode": "covered",
            "models": MODELS,
        }
        return AuditResult(**{**values, **fields})

    return make


@pytest.fixture
def make_rejected():
    return lambda text, detail="grant": Rejected(
        text=text, reason=RejectionReason.OVER_CAP, detail=detail
    )


@pytest.fixture
def make_unaudited():
    return lambda text: Unaudited(
        span=TextSpan(start=0, end=len(text)), text=text, reason=UnauditedReason.LEAD_IN
    )
