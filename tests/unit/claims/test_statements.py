"""Which parts of a response are assertions, and what the others are."""

from __future__ import annotations

import pytest

from halldetect.claims.statements import statements_of
from halldetect.text.sentences import split_sentences


def labelled(response: str) -> list[tuple[str, str | None]]:
    statements = statements_of(response, split_sentences(response))
    return [(s.span.of(response), s.reason.value if s.reason else None) for s in statements]


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Thanks!", "greeting"),
        ("Thank you very much for your question about dams.", "greeting"),
        ("Thanks to Keller, the dam held.", None),
        ("You’re welcome!", "greeting"),
        ("I hope this helps.", "greeting"),
        ("Please let me know if you need more.", "greeting"),
        ("Vielen Dank!", "greeting"),
        ("Yes.", "greeting"),
        ("Welcome signs stand at both gates.", None),
        ("When did the dam break?", "question"),
        ("When did it break *exactly*?!", "question"),
        ("The dam broke in May, didn't it?", None),
        ("Did you know that the dam broke?", None),
        (":) do you know that the dam broke ?", None),
        ('She asked: "Who paid?"', None),
        ("“Who paid?”", "question"),
        ("Steps to follow:", "lead_in"),
        ("The dam broke for 3 reasons:", None),
        ("# Summary", "lead_in"),
        ("**Key points**", "lead_in"),
        ("# The dam broke in 1911", None),
        ("🎉 🎉", "no_words"),
        ("***", "no_words"),
        ("42.", None),
        ("I do not know.", "refusal"),
    ],
)
def test_reason(sentence, reason):
    assert labelled(sentence) == [(sentence, reason)]


@pytest.mark.parametrize(
    ("response", "parts"),
    [
        (
            "The dam held in 1911, although the text does not say why.",
            [("The dam held in 1911", None), ("the text does not say why.", "refusal")],
        ),
        (
            "I could not find it in the text; however, the dam has 9 gates.",
            [("I could not find it in the text", "refusal"), ("the dam has 9 gates.", None)],
        ),
        (
            "I don't know, the dam has 9 gates.",
            [("I don't know", "refusal"), ("the dam has 9 gates.", None)],
        ),
        (
            "I'm sorry, but the sources say nothing about dams.",
            [("I'm sorry", "greeting"), ("the sources say nothing about dams.", "refusal")],
        ),
        (
            "The text does not mention gates, locks, or tall weirs.",
            [("The text does not mention gates, locks, or tall weirs.", "refusal")],
        ),
        (
            "The guard, who did not sleep, heard it, but nobody came.",
            [("The guard, who did not sleep, heard it, but nobody came.", None)],
        ),
    ],
)
def test_disclaimers_are_taken_off_assertions(response, parts):
    assert labelled(response) == parts


def test_lead_in_before_a_list_and_header_of_a_table():
    response = "What the guide says about it:\n- Doors shut.\n\n| a | b |\n|---|---|\n| x | |"
    assert [reason for _, reason in labelled(response)] == [
        "lead_in", None, "lead_in", "table_rule", None,
    ]  # fmt: skip
