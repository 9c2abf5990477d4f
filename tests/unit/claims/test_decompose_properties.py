"""Whatever a model says about whatever response: nothing is lost and nothing is invented."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from halldetect.claims.decompose import decompose
from halldetect.claims.extractor import Extraction
from halldetect.claims.model import ClaimOrigin, Decomposition, ExtractionMode, FinishReason
from halldetect.provenance import ModelProvenance
from halldetect.text.sentences import split_sentences
from halldetect.text.words import words_of

_WORDS = (
    *[
        "the",
        "a",
        "mill",
        "Keller",
        "closed",
        "opened",
        "not",
        "never",
        "in",
        "1998",
        "three",
        "1,000",
        "and",
        "but",
        "if",
        "may",
        "they",
    ],
    *[
        "It",
        "said,",
        "of",
        "by",
        "town;",
        "was",
        "didn’t",
        "40%",
        "€",
        "I",
        "know",
        "nothing",
        "no",
        "text",
        "café",
        "🍜",
        "*",
        "**",
        "-",
        "1.",
        ":",
    ],
    *["?", "!", ".", "|", "```", "bridge", "open.", "Thanks!", "mill.", "Keller.", "图书馆"],
    *("\n", "\n\n", "\u200b", "\n- ", "\n| "),
)
_responses = st.one_of(
    st.text(max_size=80), st.lists(st.sampled_from(_WORDS), max_size=40).map(" ".join)
)


class _Parrot:
    """Gives back the words of what it is shown, as the draw decides: cut, shuffled, negated."""

    provenance = ModelProvenance("parrot", "stub", "", "", "cpu")

    def __init__(self, draw: st.DataObject, finish: FinishReason) -> None:
        self._draw = draw
        self._finish = finish
        self.outputs: list[str] = []

    def extract(self, text: str, max_claims: int, ends_at: float) -> Extraction:
        words = text.split()
        lines = []
        for _ in range(self._draw.draw(st.integers(0, 5))):
            start = self._draw.draw(st.integers(0, max(0, len(words) - 1)))
            chosen = words[start : start + self._draw.draw(st.integers(1, 12))]
            change = self._draw.draw(st.sampled_from(["copy", "copy", "shuffle", "not", "noise"]))
            if change == "shuffle":
                chosen = self._draw.draw(st.permutations(chosen))
            elif change == "not":
                chosen.insert(self._draw.draw(st.integers(0, len(chosen))), "not")
            elif change == "noise":
                chosen.append(self._draw.draw(st.sampled_from(["Zoe", "17", "ufo", "\ufffd", "$"])))
            lines.append("- " + " ".join(chosen))
        self.outputs.append("\n".join(lines))
        return Extraction(self.outputs[-1], self._finish)


class _Replay:
    provenance = _Parrot.provenance

    def __init__(self, outputs: list[str], finish: FinishReason) -> None:
        self._outputs = iter(outputs)
        self._finish = finish

    def extract(self, text: str, max_claims: int, ends_at: float) -> Extraction:
        return Extraction(next(self._outputs), self._finish)


def _count(text: str) -> int:
    return len(text.split()) + len(text) // 20


@given(
    response=_responses,
    data=st.data(),
    finish=st.sampled_from([FinishReason.STOP, FinishReason.LENGTH]),
    mode=st.sampled_from(list(ExtractionMode)),
    limit=st.sampled_from([4, 96]),
)
def test_nothing_is_lost_or_invented(response, data, finish, mode, limit):
    parrot = _Parrot(data, finish)
    options = {"count_tokens": _count, "max_tokens": limit, "mode": mode}
    result = decompose(response, parrot, **options)
    _check_every_sentence_is_somewhere(response, result)
    for claim in result.claims:
        assert 0 <= claim.span.start < claim.span.end <= len(response)
        assert _count(claim.text) <= limit
        assert "\ufffd" not in claim.text
        if claim.antecedent is not None:
            assert claim.antecedent.start < claim.span.start
    if mode is ExtractionMode.COVERED:
        _check_llm_claims_use_words_of_the_response(response, result)
    again = decompose(response, _Replay(parrot.outputs, finish), **options)
    assert again == result


def _check_every_sentence_is_somewhere(response: str, result: Decomposition) -> None:
    places = [claim.span for claim in result.claims]
    places += [left.span for left in result.unaudited]
    for sentence in split_sentences(response):
        assert any(
            place.start < sentence.span.end and sentence.span.start < place.end for place in places
        )


def _check_llm_claims_use_words_of_the_response(response: str, result: Decomposition) -> None:
    known = {word.key for word in words_of(response)}
    for claim in result.claims:
        if claim.origin is ClaimOrigin.LLM:
            unknown = [w for w in words_of(claim.text) if w.key not in known and not w.is_stopword]
            assert all(word.is_negation for word in unknown)
