"""From what a model generated to the lines it proposes as claims (arXiv 2608.05823, Phase I)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from halldetect.claims.extractor import Extraction
from halldetect.claims.model import FinishReason, RejectedClaim, RejectionReason
from halldetect.text.words import clean_text, words_of

REPLACEMENT = "\ufffd"
"""What a decoder writes for bytes it could not read; never part of a claim."""

_MARK = re.compile(
    r"\s*(?:[-*+•‣◦⁃∙·▪▫■□●○–—>#]+|\(?\d{1,3}[.):]|\(?[a-z][.)]|\(?[A-Z]\))(?=\s|$)\s*"
)
_GLUED_MARK = re.compile(r"\s*[-*•–—](?=[^\W\d_])")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "„": "“”", "«": "»", "`": "`", "*": "*"}
_TRAILING = " \t.!?;:,…。！？"


@dataclass(frozen=True, slots=True)
class ProposedLines:
    """The usable lines of one generation.

    Parameters
    ----------
    lines : tuple of str
        Proposed claims in the order written, marks stripped, without repeats, at most the cap.
    rejected : tuple of RejectedClaim
        Lines dropped before any comparison with the response.
    parsed : bool
        False when something was generated and none of it is a line with words.
    """

    lines: tuple[str, ...]
    rejected: tuple[RejectedClaim, ...]
    parsed: bool


def parse_lines(extraction: Extraction, max_claims: int) -> ProposedLines:
    """Split the output of an extractor into proposed claims.

    Parameters
    ----------
    extraction : Extraction
        What the extractor returned.
    max_claims : int
        Cap; repeats do not count towards it, further lines are rejected as ``over_cap``.

    Returns
    -------
    ProposedLines
        A last line that the token limit may have cut is rejected as ``truncated``: whether it
        was cut in a word, in a number or not at all cannot be told from the outside.
    """
    raw_lines = extraction.output.splitlines()
    rejected: list[RejectedClaim] = []
    if _is_cut(extraction):
        cut = strip_marks(raw_lines.pop())
        rejected.append(
            RejectedClaim(cut, RejectionReason.TRUNCATED, "the token limit ended the generation")
        )
    accepted: dict[str, str] = {}
    has_words = False
    for line in map(strip_marks, raw_lines):
        if REPLACEMENT in line:
            detail = "holds a character that could not be decoded"
            rejected.append(RejectedClaim(line, RejectionReason.WORD, detail))
            continue
        key = " ".join(word.text for word in words_of(line))
        if not key:
            continue
        has_words = True
        if key in accepted:
            detail = f'repeats "{accepted[key]}"'
            rejected.append(RejectedClaim(line, RejectionReason.DUPLICATE, detail))
        elif len(accepted) >= max_claims:
            detail = f"the cap is {max_claims}"
            rejected.append(RejectedClaim(line, RejectionReason.OVER_CAP, detail))
        else:
            accepted[key] = line
    parsed = has_words or not extraction.output.strip()
    return ProposedLines(tuple(accepted.values()), tuple(rejected), parsed)


def _is_cut(extraction: Extraction) -> bool:
    output = extraction.output
    is_open = bool(output.strip()) and not output.endswith("\n")
    return extraction.finish in (FinishReason.LENGTH, FinishReason.TIME) and is_open


def strip_marks(line: str) -> str:
    """Remove enumeration, bullets, emphasis, enclosing quotes and trailing punctuation.

    A number that belongs to the sentence stays: only a number followed by ``.``, ``)`` or ``:``
    and a space is an enumeration.
    """
    bare = _GLUED_MARK.sub("", clean_text(line))
    while (match := _MARK.match(bare)) is not None and match.end():
        bare = bare[match.end() :]
    bare = _GLUED_MARK.sub("", bare)
    previous = None
    while bare != previous:
        previous = bare
        bare = bare.strip().rstrip(_TRAILING)
        closers = _QUOTES.get(bare[:1], "")
        if len(bare) > 1 and closers and bare[-1] in closers and bare[0] not in bare[1:-1]:
            bare = bare[1:-1]
    return bare
