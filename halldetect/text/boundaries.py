"""Where a sentence ends inside one block of prose: Punkt's decision, and the cases it lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from halldetect.text.function_words import FUNCTION_WORDS, word_set
from halldetect.text.punkt_parameters import is_common_word, period_ends_sentence

_UNSPACED_ENDERS = "。｡！？।॥؟۔።፧።။"
_UNSPACED_SET = frozenset(_UNSPACED_ENDERS)
_CLOSING = "\"'”’»›)\\]}）】」』〉》*_`~\u200b\u200d\u2060\ufe0f\u2600-\u27bf\U0001f300-\U0001faff"

_ENDER = re.compile(rf"[.!?…‼⁇⁈⁉．{_UNSPACED_ENDERS}]+")
_CITATION = r"\[\d{1,3}(?:[,;–-][ ]?\d{1,3}){0,9}\]"
_TAIL = re.compile(rf"(?:[{_CLOSING}]|[^\S\n\r]*[)\]}}]|{_CITATION})*")
_TAIL_AND_CITATIONS = re.compile(rf"{_TAIL.pattern}(?:[ ]?{_CITATION}(?=\s|\[|\Z))*")
_NEXT_TOKEN = re.compile(r"\s+[\"'“‘„«‹(\[{*_`~¿¡#]*(\S{0,80})")
_QUOTES_AND_BRACKETS = frozenset("\"'”’»›)]}")
_LINE_ENDS = frozenset("\n\r\u2028\u2029")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z]|[ivx]{1,4})")
_WORD_PUNCTUATION = "\"'“”‘’„«»‹›([{)]}*_`~¿¡#,;:"
_LONGEST_WORD = 80

_NEVER_FINAL = word_set("e.g i.e cf viz v vs approx dr mr mrs ms prof messrs")
_BEFORE_NUMBERS = word_set(
    "no nos p pp vol vols ch chap art arts sec sect fig figs para op cl eq nr par"
)


def sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    """Yield the offsets in ``text[start:end]`` after which a new sentence begins.

    Candidates are runs of closing punctuation with the quotes, brackets, emphasis, emoji and
    citation marks ("[2]") that directly follow. Each is looked at in a context of bounded size
    (the word before, the word after), so that time is linear in the text even where it has no
    spaces; NLTK's own search is quadratic there.

    Parameters
    ----------
    text : str
        The whole text.
    start, end : int
        Edges of one block; `start` is where its first sentence begins.
    """
    position = start
    last_start = _last_word(text, start, end)  # what follows it ("🎉", "...") starts no sentence
    while (match := _ENDER.search(text, position, end)) is not None:
        # Citation marks belong to the sentence before them, save in a list of references.
        tail = _TAIL if text.startswith("[", start) else _TAIL_AND_CITATIONS
        position = _end_of(tail, text, match.end(), end)
        if position > last_start:
            return
        if _ends_sentence(text, start, match, position, end):
            start = position
            yield start
        elif (glued := _glued_end(text, start, match.end(), position)) is not None:
            start = position = glued
            yield start


def _glued_end(text: str, start: int, ender_end: int, after: int) -> int | None:
    """Return where a sentence ends that a quotation follows, or that ends one, without a space.

    A straight quote in `He left."The rest stayed.` opens when none is open, else it closes.
    """
    if text[after] in "“„«‘" and text[after + 1 : after + 2].isupper():
        return after
    quote = text[after - 1] if after > ender_end else ""
    if not quote or quote not in "\"'”’»" or not text[after].isupper():
        return None
    opens = quote == '"' and text.count('"', start, after - 1) % 2 == 0
    return after - 1 if opens else after


def _last_word(text: str, start: int, end: int) -> int:
    """Return the offset of the last letter or digit, -1 if there is none."""
    return next((i for i in range(end - 1, start - 1, -1) if text[i].isalnum()), -1)


def _end_of(pattern: re.Pattern[str], text: str, position: int, end: int) -> int:
    match = pattern.match(text, position, end)
    return match.end() if match else position


def _ends_sentence(text: str, start: int, ender: re.Match[str], after: int, end: int) -> bool:
    mark = ender.group()
    following = _NEXT_TOKEN.match(text, after, end)
    if mark == "．" or not _UNSPACED_SET.isdisjoint(mark):
        # A CJK reporting clause follows its quotation: “...！”他说。 And "１．５" is a number.
        is_quoted = after > ender.end() and following is None and mark[-1] in "！？"
        return not (is_quoted or (mark == "．" and text[after].isdigit()))
    next_word = following[1] if following else ""
    if following is None or (next_word and not next_word.strip(".!?…")):
        return False  # ". . ." is one ellipsis: its last dot decides
    next_is_lower = next_word[:1].islower()
    if next_is_lower and not _QUOTES_AND_BRACKETS.isdisjoint(text[ender.end() : after]):
        return False  # “Why?” he asked.
    if mark == ".":
        return _period_ends_sentence(text, start, ender.start(), next_word)
    # "Yahoo! said" against "really? yes": only text in lower case begins a sentence in it.
    if not next_is_lower or not mark.strip(".…"):
        return not next_is_lower
    starts_line = not _LINE_ENDS.isdisjoint(text[after : following.start(1)])
    return starts_line or _first_letter(text, start, end).islower()


def _first_letter(text: str, start: int, end: int) -> str:
    return next((c for c in text[start : min(end, start + _LONGEST_WORD)] if c.isalpha()), "")


def _period_ends_sentence(text: str, start: int, period: int, next_word: str) -> bool:
    if period - start < _LONGEST_WORD:
        opening = text[start:period].strip()
        if _ENUMERATOR.fullmatch(opening) or not any(map(str.isalnum, opening)):
            return False  # "2. Drain the tank." keeps its number; ". . ." is no sentence
    before = text[max(start, period - _LONGEST_WORD) : period].split()
    if text[period - 1].isspace():  # text with spaces around its tokens
        return not (before[-1:] == ["."] and next_word[:1].islower())
    word = before[-1].strip(_WORD_PUNCTUATION) if before else ""
    next_bare = _bare(next_word)
    if "://" in word or word.startswith("www."):
        return True
    if _goes_on(word, next_bare):
        return False
    if len(word) == 1 and word.isupper() and text[period - 1] == word:
        return _initial_ends_sentence(before, next_word)
    opens_sentence = next_bare[:1].isupper() and next_bare.casefold() in FUNCTION_WORDS
    return opens_sentence or period_ends_sentence(word or "-", next_word or "-")


def _bare(next_word: str) -> str:
    """Return the letters of a following token: "It" of "It's," and "(It"."""
    return next_word.strip(_WORD_PUNCTUATION + ".!?…").partition("'")[0].partition("’")[0]


def _goes_on(word: str, next_word: str) -> bool:
    """Tell "e.g. The Times" and "no. 5": abbreviations whose kind of next word is known."""
    if word.casefold() in _NEVER_FINAL and not word.isupper():
        return True
    return word.casefold() in _BEFORE_NUMBERS and next_word[:1].isdigit()


def _initial_ends_sentence(before: list[str], next_word: str) -> bool:
    """Decide "a size S. Delivery" against "George W. Bush" and "by J. Smith".

    After a capitalised word, a function word or nothing, the letter is an initial unless a
    function word follows ("vitamin C. It"); after any other word it ends the sentence when the
    next word is one that also occurs in lower case.
    """
    bare = _bare(next_word)
    next_is_initial = len(bare) == 1 and next_word.endswith(".")
    if not bare[:1].isupper() or next_is_initial:
        return False
    if bare.casefold() in FUNCTION_WORDS and bare != "A":
        return True
    previous = before[-2].strip(_WORD_PUNCTUATION) if len(before) > 1 else ""
    if previous[:1].isupper() or previous in FUNCTION_WORDS or not previous:
        return False
    return is_common_word(bare)
