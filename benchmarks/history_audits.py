"""Audits of a history as rows: what chance decided, written down and scored by the real rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from history_chance import ASSISTANTS, PRESELECTED_SPANS, Drawn, Plan, draw, matrices, skipped
from history_rows import Rows, array, probability_rows, without_nan
from history_sources import ClaimKind, facts, structure_of

from halldetect.scoring.matrix import ProbabilityMatrix, ScoringInput
from halldetect.scoring.score import AuditScore, BatchScore, score_audits
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


@dataclass(frozen=True, slots=True)
class Portion:
    """Consecutive audits, as rows of all their tables."""

    rows: Rows
    claims: int
    cells: int


def make_portion(
    plan: Plan,
    random: np.random.Generator,
    first: int,
    last: int,
    earlier_claims: int,
    *,
    rescored: bool,
) -> Portion:
    """Invent the audits from `first` up to `last`, counted from 0.

    Parameters
    ----------
    earlier_claims : int
        Claims of all audits before these.
    rescored : bool
        Whether audits under the first policy are scored under the second too.
    """
    drawn = draw(plan, random, first, last, earlier_claims)
    rows = Rows()
    inputs, cells = _add_probabilities(rows, plan, random, drawn)
    policies = plan.policies
    for policy, under_paper in ((policies.embedded, False), (policies.paper, True)):
        audits = np.flatnonzero(drawn.done & (drawn.under_paper == under_paper)).tolist()
        chosen = [inputs[audit] for audit in audits]
        scores = score_audits(chosen, policy.policy)
        for place, audit in enumerate(audits):
            _add_done(rows, plan, drawn, audit, policy.id, scores, place)
        if rescored and not under_paper:
            scores = score_audits(chosen, policies.paper.policy)
            for place, audit in enumerate(audits):
                _add_scoring(rows, plan, drawn, audit, scores.audit(place))
    for audit in np.flatnonzero(~drawn.done).tolist():
        _add_not_done(rows, plan, drawn, audit)
    return Portion(rows, len(drawn.fact), cells)


def _add_probabilities(
    rows: Rows, plan: Plan, random: np.random.Generator, drawn: Drawn
) -> tuple[dict[int, ScoringInput], int]:
    """Invent the matrices of all audits; return what scoring needs, and the number of cells."""
    inputs: dict[int, ScoringInput] = {}
    blocks: dict[int, bytes] = {}
    cells = 0
    sentences = plan.documents.sentences[drawn.document]
    counts = np.diff(drawn.offsets)
    for length in np.unique(sentences):
        structure = structure_of(int(length))
        audits = np.flatnonzero((sentences == length) & drawn.done)
        claims = np.flatnonzero(np.isin(np.repeat(np.arange(len(counts)), counts), audits))
        found = matrices(
            random, structure.holds[drawn.sentence[claims]], drawn.kind[claims][:, None]
        )
        cells += found[0].size
        data, size = probability_rows(
            np.repeat(drawn.times[0, audits], counts[audits]),
            np.repeat(audits + drawn.first + 1, counts[audits]),
            claims - np.repeat(drawn.offsets[audits], counts[audits]),
            found,
        )
        at = 0
        for audit in audits.tolist():
            end = at + int(counts[audit])
            own = [matrix[at:end] for matrix in found]
            block = data[at * size : end * size]
            if drawn.preselected[audit]:
                holes = skipped(random, own[0].shape)
                block = without_nan(block, size, holes)
                own = [np.where(holes, np.float32(np.nan), matrix) for matrix in own]
            blocks[audit] = block
            # Every claim has a number.
            flagged = np.ones(end - at, dtype=bool)
            inputs[audit] = ScoringInput(ProbabilityMatrix(*own), flagged, structure.chunks)
            at = end
    for audit in sorted(blocks):
        rows.add_probabilities(blocks[audit])
    return inputs, cells


def _add_done(
    rows: Rows,
    plan: Plan,
    drawn: Drawn,
    audit: int,
    policy_id: int,
    scores: BatchScore,
    place: int,
) -> None:
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


def _add_not_done(rows: Rows, plan: Plan, drawn: Drawn, audit: int) -> None:
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


def _add_scoring(rows: Rows, plan: Plan, drawn: Drawn, audit: int, score: AuditScore) -> None:
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
