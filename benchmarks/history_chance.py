"""What chance decides about the audits of a history: who, when, which claims, which numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from history_sources import ClaimKind
from numpy.typing import NDArray

from db.policies import StoredPolicy

AUDITS_PER_SOURCE = 4
_MEAN_CLAIMS, _MOST_CLAIMS = 5.2, 20  # of audits that have any
PRESELECTED_SPANS = 12

# Shares of the audits.
_WITHOUT_CLAIMS, _FAILED, _CANCELLED = 0.02, 0.01, 0.005
_PRESELECTED, _UNDER_PAPER, _OFTEN_AUDITED = 0.02, 0.15, 0.05
_POPULAR_DOCUMENTS = 50
# How often each of the audited models gets a number wrong, and how often it invents.
ASSISTANTS = ("assistant-1", "assistant-2", "assistant-3")
_WRONG, _INVENTED = np.array([0.02, 0.01, 0.05]), np.array([0.03, 0.02, 0.04])


@dataclass(frozen=True, eq=False)
class Documents:
    """The sources.

    Parameters
    ----------
    sentences : int64 array, shape (documents,)
        How long each is.
    facts : int64 array, shape (documents, most sentences)
        What its sentences after the first say.
    """

    sentences: NDArray[np.int64]
    facts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sentences)

    def facts_of(self, number: int) -> NDArray[np.int64]:
        """Return the facts of one source, by sentence, from the second on."""
        return self.facts[number, : self.sentences[number] - 1]


@dataclass(frozen=True, slots=True)
class Policies:
    """The two that audits are submitted with."""

    embedded: StoredPolicy
    paper: StoredPolicy


@dataclass(frozen=True, eq=False)
class Plan:
    """Who submits what, when; all arrays by audit.

    Parameters
    ----------
    policies : Policies
        What audits are submitted with.
    encoders, extractors : list of int
        Rows of the models, oldest first.
    submitted : datetime64 array
        Ascending.
    batch, line : int64 array
        0 where an audit comes alone.
    documents : Documents
        All sources; document `n` is row `n + 1`.
    """

    policies: Policies
    encoders: list[int]
    extractors: list[int]
    submitted: NDArray[np.datetime64]
    batch: NDArray[np.int64]
    line: NDArray[np.int64]
    documents: Documents


@dataclass(frozen=True, eq=False)
class Drawn:
    """A portion of the audits, as chance decided.

    Parameters
    ----------
    first : int
        Number of its first audit, from 0.
    document, assistant : int64 array, by audit
        Which source, and which model answered.
    done, failed : bool array, by audit
        How it ended; neither is cancelled.
    under_paper, preselected : bool array, by audit
        Which policy, and whether only some spans were scored.
    times : datetime64 array, shape (5, audits)
        Submission, then start and end of both stages.
    dice : float64 array, shape (3, audits)
        For what nothing else depends on.
    offsets : int64 array, shape (audits + 1,)
        Where the claims of each audit begin.
    first_claim : int
        Row of the first of them.
    sentence, kind, fact : int64 array, by claim
        Which sentence of the source it is about, a `ClaimKind`, and what the sentence says.
    """

    first: int
    document: NDArray[np.int64]
    done: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    under_paper: NDArray[np.bool_]
    preselected: NDArray[np.bool_]
    assistant: NDArray[np.int64]
    times: NDArray[np.datetime64]
    dice: NDArray[np.float64]
    offsets: NDArray[np.int64]
    first_claim: int
    sentence: NDArray[np.int64]
    kind: NDArray[np.int64]
    fact: NDArray[np.int64]


def draw(
    plan: Plan, random: np.random.Generator, first: int, last: int, earlier_claims: int
) -> Drawn:
    """Decide about the audits from `first` up to `last`, counted from 0."""
    count = last - first
    document = _choose_documents(random, np.arange(first, last), len(plan.documents))
    fate = random.random(count)
    failed = fate < _FAILED
    done = fate >= _FAILED + _CANCELLED
    with_claims = done & (random.random(count) >= _WITHOUT_CLAIMS)
    claims = np.clip(random.poisson(_MEAN_CLAIMS - 1, count) + 1, 1, _MOST_CLAIMS) * with_claims
    audit = np.repeat(np.arange(count), claims)
    # The best assistant comes in late.
    newest = (np.arange(first, last) / len(plan.submitted) * 2.5 + random.random(count)).astype(int)
    assistant = np.minimum(newest, len(ASSISTANTS) - 1)
    sentences = plan.documents.sentences[document[audit]]
    sentence = 1 + (random.random(len(audit)) * (sentences - 1)).astype(np.int64)
    luck = random.random(len(audit))
    wrong, invented = _WRONG[assistant[audit]], _INVENTED[assistant[audit]]
    kind = np.where(
        luck < wrong,
        ClaimKind.WRONG_NUMBER,
        np.where(luck < wrong + invented, ClaimKind.INVENTED, ClaimKind.TRUE),
    )
    seconds = random.exponential([[20.0], [3.0], [30.0], [1.5]], size=(4, count))
    waits = np.cumsum(seconds * 1e6, axis=0).astype("timedelta64[us]")
    submitted = plan.submitted[first:last]
    return Drawn(
        first=first,
        document=document,
        done=done,
        failed=failed,
        under_paper=random.random(count) < _UNDER_PAPER,
        preselected=random.random(count) < _PRESELECTED,
        assistant=assistant,
        times=np.vstack([submitted, submitted + waits]),
        dice=random.random((3, count)),
        offsets=np.concatenate([[0], np.cumsum(claims)]),
        first_claim=earlier_claims + 1,
        sentence=sentence,
        kind=kind,
        fact=plan.documents.facts[document[audit], sentence - 1],
    )


def _choose_documents(
    random: np.random.Generator, audits: NDArray[np.int64], documents: int
) -> NDArray[np.int64]:
    """Let audits of one time share documents, and a few documents turn up all the time."""
    nearby = audits // AUDITS_PER_SOURCE + random.integers(-20, 21, len(audits))
    popular = random.integers(0, _POPULAR_DOCUMENTS, len(audits))
    chosen = np.where(random.random(len(audits)) < _OFTEN_AUDITED, popular, nearby)
    return np.clip(chosen, 0, documents - 1)


def matrices(
    random: np.random.Generator, holds: NDArray[np.bool_], kind: NDArray[np.int64]
) -> list[NDArray[np.float32]]:
    """Invent E, N and C of claims against spans, where some hold the claim's sentence.

    Parameters
    ----------
    holds : bool array, shape (claims, spans)
        Which do.
    kind : int64 array, shape (claims, 1)
        A `ClaimKind`.
    """
    level = random.random(holds.shape, dtype=np.float32)
    noise = random.random((2, *holds.shape), dtype=np.float32) ** 4 / 5
    seen = holds & (random.random(holds.shape, dtype=np.float32) < 0.9)
    entailment = noise[0]
    contradiction = noise[1]
    np.copyto(entailment, 0.6 + 0.39 * np.sqrt(level), where=seen & (kind == ClaimKind.TRUE))
    np.copyto(contradiction, 0.7 + 0.29 * level, where=seen & (kind == ClaimKind.WRONG_NUMBER))
    np.copyto(entailment, 0.6 * level, where=seen & (kind == ClaimKind.INVENTED))
    contradiction *= 1 - entailment
    return [entailment, 1 - entailment - contradiction, contradiction]


def skipped(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Choose for every claim the spans that pre-selection left out."""
    order = random.random(shape).argsort(axis=1).argsort(axis=1)
    return order >= PRESELECTED_SPANS
