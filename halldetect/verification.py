"""Phase III: every claim of every audit against every span of its source, in shared batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from halldetect.claims.model import Claim
from halldetect.context.library import HYPOTHESIS_TOKENS
from halldetect.nli.batching import BatchStatistics
from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.model import NliModel
from halldetect.nli.pair_tokenizer import TokenIds
from halldetect.scoring.matrix import ProbabilityMatrix
from halldetect.sources import PreparedSource
from halldetect.text.words import clean_text, words_of


@dataclass(frozen=True, slots=True)
class Hypotheses:
    """What the encoder is shown for each claim.

    Parameters
    ----------
    texts : tuple of str
        The claim, with its antecedent sentence before it where it needs one and both fit.
    tokens : tuple of int32 array
        Token ids of `texts`.
    unknown : tuple of int
        How many of those tokens the encoder's vocabulary lacks.
    """

    texts: tuple[str, ...]
    tokens: tuple[TokenIds, ...]
    unknown: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VerificationInput:
    """One audit, ready for the encoder."""

    source: PreparedSource
    hypotheses: Hypotheses


def hypotheses_of(claims: Sequence[Claim], response: str, model: NliModel) -> Hypotheses:
    """Word the hypothesis of every claim.

    A claim that opens with a pronoun says nothing by itself ("They closed it"), and an encoder
    takes any sentence with the same verb for support. Its antecedent sentence goes before it.
    """
    texts = [_with_antecedent(claim, response) for claim in claims]
    tokenized = model.tokenizer.encode(texts)
    for number, claim in enumerate(claims):
        if len(tokenized[number].ids) > HYPOTHESIS_TOKENS:
            texts[number] = claim.text
            tokenized[number] = model.tokenizer.encode([claim.text])[0]
    return Hypotheses(
        tuple(texts),
        tuple(text.ids for text in tokenized),
        tuple(text.unknown for text in tokenized),
    )


def _with_antecedent(claim: Claim, response: str) -> str:
    if claim.antecedent is None:
        return claim.text
    return f"{clean_text(claim.antecedent.of(response))} {claim.text}"


def verify(
    model: NliModel,
    inputs: Sequence[VerificationInput],
    *,
    token_budget: int,
    preselected_spans: int | None,
    on_pairs: Callable[[int, int], None] | None = None,
    on_batch: Callable[[BatchStatistics], None] | None = None,
) -> list[ProbabilityMatrix]:
    """Give each (claim, span) pair of all audits its three probabilities.

    Parameters
    ----------
    model : NliModel
        The encoder.
    inputs : sequence of VerificationInput
        Audits that share the encoder's batches.
    token_budget : int
        Most padded tokens in one forward pass.
    preselected_spans : int or None
        Spans that BM25 chooses for each claim; the others stay NaN.
    on_pairs : callable, optional
        Called with (pairs done, pairs in all) after every batch.
    on_batch : callable, optional
        Called after every batch with what the encoder computed for it. An exception from either
        call ends the run and reaches the caller.

    Returns
    -------
    list of ProbabilityMatrix
        One an audit, in order; shape (claims, spans).

    Raises
    ------
    VerificationError
        When the encoder gives anything but a probability.
    """
    premises: list[TokenIds] = []
    hypotheses: list[TokenIds] = []
    first_premise: dict[int, int] = {}
    cells: list[NDArray[np.int64]] = []
    pairs: list[NDArray[np.int64]] = []
    for entry in inputs:
        library = entry.source.library
        if id(library) not in first_premise:
            first_premise[id(library)] = len(premises)
            premises.extend(library.premise(span) for span in range(len(library.spans)))
        chosen = _cells(entry, preselected_spans)
        cells.append(chosen)
        offset = [len(hypotheses), first_premise[id(library)]]
        pairs.append((chosen + offset)[:, ::-1])
        hypotheses.extend(entry.hypotheses.tokens)
    every_pair = np.concatenate([np.empty((0, 2), dtype=np.int64), *pairs])
    probabilities = pair_probabilities(
        model,
        premises,
        hypotheses,
        every_pair,
        token_budget,
        on_batch=_reporter(len(every_pair), on_pairs, on_batch),
    )
    parts = np.split(probabilities, np.cumsum([len(chosen) for chosen in cells])[:-1])
    return [
        _matrix(entry, chosen, part)
        for entry, chosen, part in zip(inputs, cells, parts, strict=bool(inputs))
    ]


def _cells(entry: VerificationInput, preselected_spans: int | None) -> NDArray[np.int64]:
    """Return the (claim, span) cells to verify, int64 array (n, 2)."""
    claims, spans = len(entry.hypotheses.texts), len(entry.source.library.spans)
    if preselected_spans is None or preselected_spans >= spans:
        grid = np.indices((claims, spans), dtype=np.int64)
        return grid.reshape(2, -1).T
    rows = [
        _row(claim, entry.source.search_index.select(_search_words(text), preselected_spans))
        for claim, text in enumerate(entry.hypotheses.texts)
    ]
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *rows])


def _row(claim: int, spans: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.column_stack([np.full(len(spans), claim, dtype=np.int64), spans])


def _search_words(text: str) -> list[str]:
    return [word.text for word in words_of(text) if not word.is_stopword]


def _reporter(
    total: int,
    on_pairs: Callable[[int, int], None] | None,
    on_batch: Callable[[BatchStatistics], None] | None,
) -> Callable[[BatchStatistics], None]:
    done = 0

    def report(batch: BatchStatistics) -> None:
        nonlocal done
        done += batch.pairs
        if on_batch is not None:
            on_batch(batch)
        if on_pairs is not None:
            on_pairs(done, total)

    return report


def _matrix(
    entry: VerificationInput, cells: NDArray[np.int64], probabilities: NDArray[np.float32]
) -> ProbabilityMatrix:
    shape = (3, len(entry.hypotheses.texts), len(entry.source.library.spans))
    values = np.full(shape, np.nan, dtype=np.float32)
    values[:, cells[:, 0], cells[:, 1]] = probabilities.T
    return ProbabilityMatrix(*values)
