"""The rows of one audit of a history: what was asked, found and said of it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from history_chance import ASSISTANTS, PRESELECTED_SPANS, Drawn, Plan
from history_rows import Rows, array
from history_sources import ClaimKind, facts, structure_of

from halldetect.scoring.score import AuditScore, BatchScore
from halldetect.scoring.verdict import Verdict

# Shares of the audits.
_PAPER_MODE, _REJECTED, _SENTENCES_ALONE, _LARGE_ENCODER = 0.1, 0.3, 0.3, 0.2
_REVIEWED = 0.1  # of the claims that are not supported
_REVIEWERS = ("ada", "grace", "edsger")
_TEAMS = ("claims", "legal", "support")
_ERRORS = (
    "the response has 120,400 characters; at most 100,000 are audited (max_characters)",
    "its worker was lost 3 times while it worked on this audit: the audit may exhaust the memory"
    " or crash a model; see the worker's log",
    "the NLI model can read nothing of the source",
)
_REJECTIONS = (
    ("The trust sold 12 boats", "word", "sold is not in the response"),
    ("The council approved 1,200 shelters", "number", "1,200 is not in the response"),
    ("David Ortiz closed the bridge", "recombined", "no sentence carries all of it"),
    ("Bus shelters", "not_checkable", "no statement"),
)


def add_done(
    rows: Rows,
    plan: Plan,
    drawn: Drawn,
    audit: int,
    policy_id: int,
    scores: BatchScore,
    place: int,
) -> None:
    """Add a completed audit under its own policy, with all that was found."""
    score = scores.audit(place)
    known = facts()
    claims = range(drawn.offsets[audit], drawn.offsets[audit + 1])
    texts = [known[drawn.fact[n]].claims[drawn.kind[n]] for n in claims]
    paper_mode = drawn.dice[0, audit] < _PAPER_MODE
    # What the paper's single pass leaves out.
    extra = [known[drawn.first % len(known)].claims[ClaimKind.TRUE]] if paper_mode else []
    response = " ".join([*texts, *extra]) or "Thanks!"
    counts = score.verdict_counts
    _add_audit(
        rows,
        plan,
        drawn,
        audit,
        policy_id,
        response,
        ("completed", 2, 2, *drawn.times[1:, audit]),
        "no_checkable_claims" if score.response_score is None else "scored",
        score.response_score,
        score.label,
        score.deciding_claim,
        *(counts[verdict] for verdict in Verdict),
        None,
    )
    _add_extraction(rows, plan, drawn, audit, response, extra, mode_is_paper=bool(paper_mode))
    _add_verification(rows, plan, drawn, audit)
    _add_claims(rows, plan, drawn, audit, texts, score)


def add_not_done(rows: Rows, plan: Plan, drawn: Drawn, audit: int) -> None:
    """Add an audit that failed or was cancelled before anything came of it."""
    failed = drawn.failed[audit]
    ends = ("failed", 1, 1, drawn.times[1, audit], None, None, drawn.times[2, audit])
    if not failed:
        ends = ("cancelled", 0, 0, None, None, None, drawn.times[1, audit])
    error = _ERRORS[int(drawn.dice[1, audit] * len(_ERRORS))] if failed else None
    text = facts()[audit].claims[ClaimKind.TRUE]
    policy = plan.policies.embedded.id
    _add_audit(rows, plan, drawn, audit, policy, text, ends, *[None] * 7, error)


def _add_audit(
    rows: Rows,
    plan: Plan,
    drawn: Drawn,
    audit: int,
    policy_id: int,
    response: str,
    ends: Sequence[object],
    *results: object,
) -> None:
    number = drawn.first + audit
    metadata = {
        "model": ASSISTANTS[drawn.assistant[audit]],
        "team": _TEAMS[number % len(_TEAMS)],
        "prompt": f"v{1 + number * 5 // len(plan.submitted)}",
    }
    batch = plan.batch[number]
    rows.add(
        "audits",
        number + 1,
        batch or None,
        plan.line[number] or None,
        f"answer-{number}",
        drawn.document[audit] + 1,
        policy_id,
        response,
        json.dumps(metadata),
        drawn.times[0, audit],
        *ends,
        *results,
    )


def _add_extraction(
    rows: Rows,
    plan: Plan,
    drawn: Drawn,
    audit: int,
    response: str,
    left_out: Sequence[str],
    *,
    mode_is_paper: bool,
) -> None:
    luck = drawn.dice[1, audit]
    rejected = [_REJECTIONS[int(luck / _REJECTED * len(_REJECTIONS))]] if luck < _REJECTED else []
    claims = int(drawn.offsets[audit + 1] - drawn.offsets[audit])
    unaudited = [
        {
            "span": {"start": len(response) - len(text), "end": len(response)},
            "text": text,
            "reason": "not_extracted",
        }
        for text in left_out
    ]
    if not claims:
        end = response.find("!") + 1
        thanks = {"span": {"start": 0, "end": end}, "text": response[:end], "reason": "greeting"}
        unaudited = [thanks] if end else unaudited
    window = {"start": 0, "end": len(response)}
    call = {
        "window": window,
        "finish": "stop",
        "parsed": True,
        "prompt_tokens": 180 + len(response) // 4,
        "output_tokens": 18 * claims,
    }
    rows.add(
        "extractions",
        drawn.first + audit + 1,
        plan.extractors[int(drawn.dice[2, audit] < _SENTENCES_ALONE)],
        "paper" if mode_is_paper else "covered",
        claims,
        json.dumps(
            [dict(zip(("text", "reason", "detail"), line, strict=True)) for line in rejected]
        ),
        json.dumps(unaudited),
        json.dumps([call]),
    )


def _add_verification(rows: Rows, plan: Plan, drawn: Drawn, audit: int) -> None:
    small, newer_small, large = plan.encoders
    number = drawn.first + audit
    newer = number > len(plan.submitted) // 2
    small_one = newer_small if newer else small
    rows.add(
        "verifications",
        number + 1,
        large if drawn.dice[2, audit] > 1 - _LARGE_ENCODER else small_one,
        drawn.document[audit] + 1,
        PRESELECTED_SPANS if drawn.preselected[audit] else None,
        "{}",
    )


def _add_claims(
    rows: Rows, plan: Plan, drawn: Drawn, audit: int, texts: Sequence[str], score: AuditScore
) -> None:
    first = int(drawn.offsets[audit])
    audit_id = drawn.first + audit + 1
    spans = len(structure_of(int(plan.documents.sentences[drawn.document[audit]])).spans)
    checked = min(spans, PRESELECTED_SPANS) if drawn.preselected[audit] else spans
    known = facts()
    start = 0
    columns = zip(
        texts,
        drawn.fact[first:].tolist(),
        score.verdicts,
        score.values.tolist(),
        score.best_entailment.tolist(),
        score.best_entailment_spans.tolist(),
        score.best_contradiction.tolist(),
        score.best_contradiction_spans.tolist(),
        strict=False,
    )
    for position, (text, fact, verdict, *values) in enumerate(columns):
        claim_id = drawn.first_claim + first + position
        rows.add(
            "claims",
            claim_id,
            audit_id,
            position,
            text,
            start,
            start + len(text),
            "sentence" if claim_id % 3 == 0 else "llm",
            0,
            known[fact].has_name,
            True,
            known[fact].has_date,
            text,
            verdict,
            *values,
            checked,
        )
        start += len(text) + 1
        if verdict is not Verdict.SUPPORTED and claim_id % 100 < 100 * _REVIEWED:
            _add_review(rows, drawn.times[4, audit], audit_id, claim_id, text, verdict)


def _add_review(
    rows: Rows, finished: np.datetime64, audit_id: int, claim_id: int, text: str, verdict: Verdict
) -> None:
    """Let two reviewers look at a claim: most agree with the verdict, and with each other."""
    for reviewer in (claim_id % 3, (claim_id + 1) % 3):
        agrees = claim_id % 7 > 0 and (claim_id % 11 > 0 or reviewer > 0)
        rows.add(
            "reviews",
            claim_id,
            audit_id,
            text,
            verdict,
            _REVIEWERS[reviewer],
            verdict if agrees else Verdict.SUPPORTED,
            finished + np.timedelta64(reviewer + 1, "h"),
        )


def add_scoring(rows: Rows, plan: Plan, drawn: Drawn, audit: int, score: AuditScore) -> None:
    """Add the score of an audit under the second policy."""
    rows.add(
        "scorings",
        drawn.first + audit + 1,
        plan.policies.paper.id,
        score.response_score,
        score.label,
        score.deciding_claim,
        array(score.values.tolist()),
        array(score.verdicts),
        drawn.times[4, audit],
    )
