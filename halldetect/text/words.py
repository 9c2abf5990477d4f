"""Words of a text, normalised for comparison, each with its place in the original characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import pairwise

from halldetect.spans import Span
from halldetect.text.function_words import NEGATIONS, STOPWORDS, word_set
from halldetect.text.marks import without_leading_marks
from halldetect.text.numbers import DIGITS, may_open_number, number_word_run, parse_digits

_INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff"
)
_EMPHASIS = (
    r"`+|~~|(?<![\d*])\*{2,}|(?<!\*)\*{2,}(?![\d*])"
    r"|(?<![\w\s*])\*(?!\*)|(?<!\*)\*(?![\w\s*])|(?<!\S)\*(?=[^\s*])|(?<=[^\s*])\*(?!\S)"
    r"|(?<!\w)_+|(?<=[^\W_])_+(?!\w)"
)
"""Markdown's marks of emphasis and code; the stars of "2*3", "5 * 3" and "2**3" are none."""

_UNSEEN = re.compile(f"[{_INVISIBLE}]+|{_EMPHASIS}")
_NOT_IN_CLAIMS = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
    "|(?<=[A-Za-z0-9])[\u200c\u200d\ufe00-\ufe0f]"  # elsewhere they shape scripts and emoji
    f"|{_EMPHASIS}"
)
_APOSTROPHES_AND_HYPHENS = str.maketrans("’ʼ＇‘‐‑−", "''''---")
_SUPERSCRIPTS = str.maketrans({"²": "^2", "³": "^3", "¹": "^1"})
_UNITS = (
    "km/h|kWh|MWh|kHz|MHz|GHz|mph|km|cm|mm|kg|mg|ml|kW|MW|GW|kB|KB|MB|GB|TB|Hz|ms|min|bn|mn|pm|am"
    "|m|g|l|h|k|K|M|V|W|C|F"
)
_CONTRACTED = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}
_UNMARKED_CONTRACTIONS = word_set(
    """dont doesnt didnt isnt wasnt werent arent couldnt wouldnt shouldnt hasnt havent hadnt
    mustnt neednt"""
)
_ENCLITICS = ("'s", "'re", "'ve", "'ll", "'d", "'m")
_NEXT_LETTERS = re.compile(r"\s+([A-Za-z]+)")
_NUMBER_AFTER = re.compile(r"\.\s*\d")
_NUMBER_JOINTS = frozenset((" ", "-", "\u00a0", "\n", "\r\n"))
_LONGEST_NUMBER_RUN = 12
_FIRST_MARK = 0x300
_LAST_ASSIGNED = 0x1FC00
_SOFTENERS = word_set("only just merely simply")


@dataclass(frozen=True, slots=True)
class Word:
    """A word, number or meaningful symbol of a text.

    Parameters
    ----------
    span : Span
        Offsets into the text, invisible characters inside the word included.
    text : str
        Normalised: NFKC, case-folded, no invisible characters, plain apostrophes, no possessive
        "'s"; a negated verb is its plain form ("can't" and "cannot" are "can"), "percent" is "%".
    is_capitalised : bool
        The first letter is a capital.
    is_acronym : bool
        Two capital letters or more and no small one.
    is_negation : bool
        "not", "never", "can't" ...; not the "no." before a number, nor the "not" of "not only".
    is_stopword : bool
        A word that carries no assertion; modals and negations never are.
    is_symbol : bool
        A currency or other sign, or an emoji.
    number : Decimal or None
        The whole value of a number in digits or words.
    """

    span: Span
    text: str
    is_capitalised: bool = False
    is_acronym: bool = False
    is_negation: bool = False
    is_stopword: bool = False
    is_symbol: bool = False
    number: Decimal | None = None

    @property
    def key(self) -> str:
        """What to compare: "3", "3rd" and "three" have the same key, "1" and "1,000" have not."""
        if self.number is None:
            return self.text
        digits = f"{self.number:f}"
        return digits.rstrip("0").rstrip(".") if "." in digits else digits


def words_of(text: str) -> list[Word]:
    """Return the words of `text` in order; punctuation and marks at line starts are none.

    A hyphenated word is the words it is made of; a number in several words ("two hundred and
    five") is one word. Each character of a script written without spaces (Chinese, Japanese,
    Thai) is a word.
    """
    visible, offsets = _visible(text)
    tokens = list(_word_pattern().finditer(visible))
    words: list[Word] = []
    for token, end, number in _with_numbers(visible, tokens):
        start = token.start()
        span = Span(offsets[start], offsets[end - 1] + 1) if offsets else Span(start, end)
        if number is not None:
            words.append(Word(span, _normalised(visible[start:end]), number=number))
        elif token.lastgroup == "symbol":
            words.append(Word(span, _normalised(token.group()), is_symbol=True))
        else:
            words.append(_plain_word(visible, token, span))
    return words


def clean_text(text: str) -> str:
    """Return `text` as a claim says it.

    List marks, heading and quotation marks at line starts, emphasis, backticks and invisible
    characters are taken off and whitespace is collapsed; citation marks such as "[2]" stay.
    """
    return " ".join(_NOT_IN_CLAIMS.sub("", without_leading_marks(text)).split())


def _visible(text: str) -> tuple[str, list[int]]:
    """Return `text` without marks, emphasis and invisible characters, and offsets.

    The offsets tell where each character left stands in `text`; the list is empty when nothing
    was taken out.
    """
    bare = without_leading_marks(text).translate(_APOSTROPHES_AND_HYPHENS)
    if _UNSEEN.search(bare) is None:
        return bare, []
    pieces: list[str] = []
    offsets: list[int] = []
    start = 0
    for match in _UNSEEN.finditer(bare):
        pieces.append(bare[start : match.start()])
        offsets.extend(range(start, match.start()))
        start = match.end()
    pieces.append(bare[start:])
    offsets.extend(range(start, len(bare)))
    return "".join(pieces), offsets


@cache
def _word_pattern() -> re.Pattern[str]:
    marks = _character_ranges(("Mn", "Mc", "Me"))
    symbols = _character_ranges(("Sc", "So", "Sm"), without="|~<>=+")
    unspaced = (
        "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"
        "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
        "\U00020000-\U0003134f"
    )
    letter = rf"(?:[^\W_{unspaced}]|[{marks}])"
    return re.compile(
        rf"(?P<compound>\d+(?:[.:]\d+){{2,9}}|\d{{1,2}}:\d{{2}})(?!{letter})"
        rf"|(?P<number>{DIGITS})(?:(?P<ordinal>st|nd|rd|th)(?!{letter})"
        rf"|(?=(?:{_UNITS})(?!{letter}))|(?!{letter}))"
        rf"|(?P<percent>[Pp]er ?cent(?!{letter}))"
        rf"|(?P<ideograph>(?=[^\W_])[{unspaced}][{marks}]*)"
        rf"|(?P<word>{letter}+(?:'{letter}+)*)"
        rf"|(?P<symbol>[%‰§{symbols}]|(?<![<>=+])[<>=+](?![<>=+]))"
    )


def _character_ranges(categories: Iterable[str], without: str = "") -> str:
    """Return the inside of a character class with all characters of some Unicode categories."""
    wanted = frozenset(categories)
    ranges: list[list[int]] = []
    for code in range(_FIRST_MARK if "Mn" in wanted else 0, _LAST_ASSIGNED):
        character = chr(code)
        if unicodedata.category(character) not in wanted or character in without:
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)


def _with_numbers(
    visible: str, tokens: Sequence[re.Match[str]]
) -> Iterator[tuple[re.Match[str], int, Decimal | None]]:
    """Yield each token with its end and number; tokens of one number in words become one."""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        run = None
        if may_open_number(token.group().casefold()):
            run = number_word_run(_run_from(visible, tokens, position), 0)
        if run is not None:
            count, value = run
            yield token, tokens[position + count - 1].end(), value
            position += count
            continue
        yield token, token.end(), parse_digits(token.group()) if _may_be_number(token) else None
        position += 1


def _may_be_number(token: re.Match[str]) -> bool:
    return token.lastgroup in ("number", "ordinal") or len(token.group()) == 1


def _run_from(visible: str, tokens: Sequence[re.Match[str]], position: int) -> list[str]:
    """Return the case-folded tokens from `position` that one number could be made of."""
    run = [tokens[position].group().casefold()]
    for before, token in pairwise(tokens[position : position + _LONGEST_NUMBER_RUN]):
        if visible[before.end() : token.start()] not in _NUMBER_JOINTS:
            break
        run.append(token.group().casefold())
    return run


def _plain_word(visible: str, token: re.Match[str], span: Span) -> Word:
    surface = token.group()
    if token.lastgroup == "percent":
        return Word(span, "%", is_symbol=True)
    text = _normalised(surface)
    base, is_contracted = _without_contraction(text)
    is_negation = is_contracted or base in NEGATIONS or text in _UNMARKED_CONTRACTIONS
    if is_negation:
        is_negation = not _is_affirmed(base, visible[token.end() : token.end() + 12])
    return Word(
        span,
        base,
        is_capitalised=surface[0].isupper() or surface[0].istitle(),
        is_acronym=surface.isupper() and sum(map(str.isupper, surface)) >= 2,
        is_negation=is_negation,
        is_stopword=base in STOPWORDS and not is_negation,
    )


def _without_contraction(text: str) -> tuple[str, bool]:
    """Return the plain form of a word, and whether a "n't" or "not" was taken off."""
    if text == "cannot":
        return "can", True
    if text.endswith("n't") and len(text) > 3:
        stem = text[:-3]
        return _CONTRACTED.get(stem, stem), True
    if text.endswith(_ENCLITICS):
        return text[: text.rindex("'")], False
    return text, False


def _is_affirmed(word: str, following: str) -> bool:
    """Tell "no. 5" (a number) and "not only" from a negation."""
    if word == "no" and _NUMBER_AFTER.match(following):
        return True
    next_word = _NEXT_LETTERS.match(following)
    return next_word is not None and next_word[1].casefold() in _SOFTENERS


def _normalised(token: str) -> str:
    if token.isascii():
        return token.casefold()
    return unicodedata.normalize("NFKC", token.translate(_SUPERSCRIPTS)).casefold()
