"""The line structure of a text: which lines belong together and what each group is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from halldetect.spans import Span
from halldetect.text.function_words import LINE_JOINERS
from halldetect.text.marks import HEADING_MARK, LINE_BREAK, LIST_MARK, QUOTE_MARK
from halldetect.text.sentence_kind import SentenceKind
from halldetect.text.speakers import inline_turns, opens_turn, speaker_label, speakers_of

_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
_RULE_CHARACTERS = frozenset("|+-=: \t")
_DECORATION_CHARACTERS = frozenset("-=*_#~+. \t")
_SHORTEST_WRAPPED_LINE = 50
_LONGEST_WRAPPED_LINE = 160
_OPENERS = "\"'“‘„«‹([{*_`~¿¡ \t"
_CLOSERS = "\"'”’»›)]}*_`~ \t"
_ENDERS = ".!?…。．！？｡।॥؟۔:"
_OPEN_ENDS = ",;-–—(/&，、；،؛"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together: no sentence reaches over the edge of a block.

    Parameters
    ----------
    span : Span
        Offsets into the text, without surrounding whitespace.
    kind : SentenceKind
        What the lines are.
    """

    span: Span
    kind: SentenceKind


@dataclass(slots=True)
class _Line:
    start: int
    text: str
    kind: SentenceKind = SentenceKind.PROSE
    begins: bool = False
    ends: bool = False

    @property
    def is_blank(self) -> bool:
        return not self.text or self.text.isspace()

    @property
    def is_flowing(self) -> bool:
        return self.kind in (SentenceKind.PROSE, SentenceKind.LIST_ITEM) and not self.is_blank


def blocks_of(text: str) -> Iterator[Block]:
    """Group the lines of `text` into blocks; every non-space character is in exactly one.

    Fenced code and tables give a block a line. A list item, heading, dialogue turn or time stamp
    starts a block, a blank line ends one. Other lines join the line before when the line break
    looks like wrapping (see `_continues`). A fence that is never closed fences nothing: its rest
    is read as prose, so that no assertion hides behind it.
    """
    lines = _lines_of(text)
    _mark_code(lines)
    _mark_tables(lines)
    speakers = speakers_of(line.text for line in lines if line.is_flowing)
    _mark_flow(lines, speakers)
    for group in _groups(lines):
        yield from _blocks_of_group(text, group, speakers)


def _lines_of(text: str) -> list[_Line]:
    lines = []
    start = 0
    for match in LINE_BREAK.finditer(text):
        lines.append(_Line(start, text[start : match.start()]))
        start = match.end()
    lines.append(_Line(start, text[start:]))
    return lines


def _mark_code(lines: Sequence[_Line]) -> None:
    unclosed: dict[str, int] = {}  # shortest fence known to have no end, for linear time
    position = 0
    while position < len(lines):
        fence = _opening_fence(lines[position].text)
        if fence is None or len(fence) >= unclosed.get(fence[0], len(fence) + 1):
            position += 1
            continue
        end = next(
            (i for i in range(position + 1, len(lines)) if _closes(lines[i].text, fence)), None
        )
        if end is None:
            unclosed[fence[0]] = len(fence)
            position += 1
            continue
        for line in lines[position : end + 1]:
            line.kind = SentenceKind.CODE
        position = end + 1


def _opening_fence(line: str) -> str | None:
    match = _FENCE.match(line)
    if match is None or (match["fence"][0] == "`" and "`" in match["info"]):
        return None
    return match["fence"]


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and bare == fence[0] * len(bare)


def _mark_tables(lines: Sequence[_Line]) -> None:
    in_table = False
    for position, line in enumerate(lines):
        if line.kind is SentenceKind.CODE:
            in_table = False
            continue
        is_rule = _is_table_rule(line.text)
        heads_table = (
            "|" in line.text
            and position + 1 < len(lines)
            and _is_table_rule(lines[position + 1].text)
        )
        in_table = is_rule or heads_table or (in_table and "|" in line.text)
        if is_rule:
            line.kind = SentenceKind.TABLE_RULE
        elif in_table or _is_piped_row(line.text):
            line.kind = SentenceKind.TABLE_ROW


def _is_table_rule(line: str) -> bool:
    bare = line.strip()
    has_column = "|" in bare or bare.startswith("+")
    return has_column and ("-" in bare or "=" in bare) and _RULE_CHARACTERS.issuperset(bare)


def _is_piped_row(line: str) -> bool:
    bare = line.strip()
    return bare.startswith("|") and bare.count("|") >= 2


def _mark_flow(lines: Sequence[_Line], speakers: frozenset[str]) -> None:
    for position, line in enumerate(lines):
        if not line.is_flowing:
            continue
        quote = QUOTE_MARK.match(line.text)
        body = line.text[quote.end() :] if quote else line.text
        before = lines[position - 1] if position else None
        if LIST_MARK.match(body) and not _is_lone_number(lines, position):
            line.kind, line.begins = SentenceKind.LIST_ITEM, True
        elif HEADING_MARK.match(body) or _is_decoration(body):
            line.begins = line.ends = True
        elif opens_turn(body, speakers) or (quote and before and not QUOTE_MARK.match(before.text)):
            line.begins = True


def _is_lone_number(lines: Sequence[_Line], position: int) -> bool:
    """Tell whether the line is a bare "42." with no list around it: an answer, no empty item."""
    bare = lines[position].text.strip()
    if not bare[:1].isdigit() or " " in bare:
        return False
    neighbours = [*lines[max(0, position - 2) : position], *lines[position + 1 : position + 3]]
    return not any(LIST_MARK.match(line.text) for line in neighbours)


def _is_decoration(line: str) -> bool:
    bare = line.strip()
    return len(bare) >= 3 and _DECORATION_CHARACTERS.issuperset(bare)


def _groups(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yield the lines of each block."""
    for paragraph in _paragraphs(lines):
        width = max(len(line.text.rstrip()) for line in paragraph)
        group: list[_Line] = []
        for line in paragraph:
            if group and not _continues(group[-1], line, width):
                yield group
                group = []
            group.append(line)
        yield group


def _paragraphs(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Yield runs of flowing lines between blank lines; a line of code or a table is its own."""
    paragraph: list[_Line] = []
    for line in lines:
        if line.is_flowing:
            paragraph.append(line)
            continue
        if paragraph:
            yield paragraph
            paragraph = []
        if not line.is_blank:
            yield [line]
    if paragraph:
        yield paragraph


def _continues(before: _Line, line: _Line, width: int) -> bool:
    """Tell whether `line` goes on with the sentence, or at least the paragraph, of `before`.

    It does after punctuation that ends a sentence (Punkt then decides), after punctuation, a
    bracket or a function word that leaves one open, before a lower-case letter, and where
    `before` is as full as the widest line of the paragraph allows. Otherwise the shorter line was
    a heading or entry.
    """
    if line.begins or before.ends:
        return False
    quote = QUOTE_MARK.match(line.text)
    body = (line.text[quote.end() :] if quote else line.text).lstrip(_OPENERS)
    head = before.text.rstrip(_CLOSERS).rstrip()
    if not head or not body:
        return False
    if head[-1] == ":":
        return len(head) >= _SHORTEST_WRAPPED_LINE and body[0].islower()
    if head[-1] in _ENDERS or body[0].islower() or _is_left_open(head):
        return True
    first_word = body.split(None, 1)[0]
    length = len(before.text.rstrip())
    is_full = length + 1 + len(first_word) > width
    return is_full and _SHORTEST_WRAPPED_LINE <= length <= _LONGEST_WRAPPED_LINE


def _is_left_open(head: str) -> bool:
    last_word = head.rsplit(None, 1)[-1].casefold()
    has_open_bracket = head.count("(") > head.count(")")
    return head[-1] in _OPEN_ENDS or last_word in LINE_JOINERS or has_open_bracket


def _blocks_of_group(
    text: str, group: Sequence[_Line], speakers: frozenset[str]
) -> Iterator[Block]:
    kind = group[0].kind
    start, end = group[0].start, group[-1].start + len(group[-1].text)
    edges = [start, end]
    if kind is SentenceKind.PROSE and speaker_label(group[0].text) in speakers:
        edges[1:1] = [start + offset for offset in inline_turns(text[start:end], speakers)]
    for left, right in pairwise(edges):
        span = trimmed(text, left, right)
        if span is not None:
            yield Block(span, kind)


def trimmed(text: str, start: int, end: int) -> Span | None:
    """Return the span of ``text[start:end]`` without surrounding whitespace, None if empty."""
    piece = text[start:end]
    leading = len(piece) - len(piece.lstrip())
    trailing = len(piece) - len(piece.rstrip())
    return Span(start + leading, end - trailing) if leading < len(piece) else None
