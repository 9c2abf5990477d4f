"""Reading what a model wrote."""

from __future__ import annotations

import pytest

from halldetect.claims.extractor import Extraction
from halldetect.claims.generation_lines import parse_lines, strip_marks
from halldetect.claims.model import FinishReason, RejectionReason


@pytest.mark.parametrize(
    "line",
    [
        "1. The pier fell", "1) The pier fell", "(1) The pier fell", "a) The pier fell",
        "- The pier fell.", "* The pier fell;", "• The pier fell", "– The pier fell",
        "**The pier fell.**", '"The pier fell."', "“The pier fell”.", "- **The pier fell**",
        "-The pier fell", "12. - The pier fell!", "  The pier fell  ", "> The pier fell",
    ],
)  # fmt: skip
def test_marks_are_stripped(line):
    assert strip_marks(line) == "The pier fell"


@pytest.mark.parametrize(
    "line", ["1.5 million came", "1998 was dry", "-5 degrees came", "J. Keller left", "A dam broke"]
)
def test_text_that_looks_like_a_mark_stays(line):
    assert strip_marks(line) == line


@pytest.mark.parametrize(
    ("output", "lines", "truncated"),
    [
        ("One dam.\nTwo da", ("One dam",), 1),
        ("One dam.\nTwo dams.\n", ("One dam", "Two dams"), 0),
        ("One da", (), 1),
        ("", (), 0),
    ],
)
def test_only_an_open_last_line_is_truncated(output, lines, truncated):
    parsed = parse_lines(Extraction(output, FinishReason.LENGTH), 10)
    assert parsed.lines == lines
    assert [r.reason for r in parsed.rejected] == [RejectionReason.TRUNCATED] * truncated
    assert parsed.parsed is (bool(lines) or not output)


def test_repeats_and_cap():
    output = "1. One dam.\n2. one dam\n\n3. Two dams\n4. Three dams\n5. One dam"
    parsed = parse_lines(Extraction(output, FinishReason.STOP), 2)
    assert parsed.lines == ("One dam", "Two dams")
    assert [r.reason.value for r in parsed.rejected] == ["duplicate", "over_cap", "duplicate"]
