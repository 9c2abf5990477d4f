"""BM25 pre-selection: the spans of a long source that are worth showing to the encoder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from halldetect.errors import InputError

SATURATION = 1.5
"""k1 of Okapi BM25: how soon repeats of a word in one span stop adding."""

LENGTH_NORMALISATION = 0.75
"""b of Okapi BM25: 0 ignores the length of spans, 1 divides by it."""


class Bm25Index:
    """Postings of one source, built once and asked for every claim.

    The inverse document frequency is ``log(1 + (n - n_w + 0.5) / (n_w + 0.5))``, which stays
    positive however common a word is.

    Parameters
    ----------
    spans_words : sequence of sequences of str
        The normalised words of each span; a span may have none.
    """

    def __init__(self, spans_words: Sequence[Sequence[str]]) -> None:
        self._n_spans = len(spans_words)
        spans_with: dict[str, list[int]] = {}
        repeats_in: dict[str, list[int]] = {}
        for number, words in enumerate(spans_words):
            for word, repeats in Counter(words).items():
                spans_with.setdefault(word, []).append(number)
                repeats_in.setdefault(word, []).append(repeats)
        lengths = np.array([len(words) for words in spans_words], dtype=np.float64)
        # A source without any word has no postings, so nothing is ever divided by this 1.
        average = lengths.mean() if lengths.any() else 1.0
        length_penalty = SATURATION * (
            1 - LENGTH_NORMALISATION + LENGTH_NORMALISATION * lengths / average
        )
        self._postings: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = {}
        for word, numbers in spans_with.items():
            spans = np.array(numbers, dtype=np.int64)
            repeats_here = np.array(repeats_in[word], dtype=np.float64)
            rarity = np.log1p((self._n_spans - len(spans) + 0.5) / (len(spans) + 0.5))
            saturated = repeats_here * (SATURATION + 1) / (repeats_here + length_penalty[spans])
            self._postings[word] = (spans, rarity * saturated)

    def scores(self, claim_words: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the BM25 score of every span for a claim, shape ``(n_spans,)``, at least 0.

        A word counts once however often the claim repeats it.
        """
        scores = np.zeros(self._n_spans)
        # In the claim's order, not a set's: sums must not change from one process to the next.
        for word in dict.fromkeys(claim_words):
            if word in self._postings:
                spans, weights = self._postings[word]
                scores[spans] += weights
        return scores

    def select(self, claim_words: Sequence[str], k: int) -> npt.NDArray[np.int64]:
        """Choose the `k` spans that score highest for a claim.

        Of equal scores the earlier span wins. When no score tells spans apart (no word of the
        claim occurs, or all spans score the same), every span is chosen: dropping some would be
        a guess.

        Parameters
        ----------
        claim_words : sequence of str
            The claim's words, normalised as those of the spans.
        k : int
            How many spans to choose, at least 1; with `k` at or above their number all are.

        Returns
        -------
        int64 array, shape (min(k, n_spans),) or (n_spans,)
            Span numbers in ascending order.

        Raises
        ------
        InputError
            `k` is below 1.
        """
        if k < 1:
            raise InputError(f"pre-selection must keep at least 1 span, not {k}")
        scores = self.scores(claim_words)
        if k >= self._n_spans or np.ptp(scores) == 0:
            return np.arange(self._n_spans, dtype=np.int64)
        return np.sort(np.argsort(-scores, kind="stable")[:k])
