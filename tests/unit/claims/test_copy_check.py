"""A proposed claim is accepted only as an assertion of the response."""

from __future__ import annotations

import pytest

from halldetect.claims.copy_check import CopyCheck, Placement
from halldetect.claims.model import RejectionReason
from halldetect.claims.statements import statements_of
from halldetect.text.sentences import split_sentences


def check_of(response: str) -> CopyCheck:
    return CopyCheck(response, statements_of(response, split_sentences(response)))


@pytest.mark.parametrize(
    ("response", "line"),
    [
        ("The mill opened in 1903 and closed in 1998.", "The mill closed in 1998"),
        ("The mill opened in 1903 and closed in 1998.", "The mill opened in 1903"),
        ("The mill, which was built in 1903, closed in 1998.", "The mill closed in 1998"),
        ("The mill, which was built in 1903, closed in 1998.", "The mill was built in 1903"),
        ("Pump no. 5 was replaced in June.", "Pump no. 5 was replaced in June"),
        ("The line isn't open to vans.", "The line is not open to vans"),
        ("The line can’t carry vans today.", "The line cannot carry vans today"),
        ("The rate is 40 percent of income.", "The rate is 40% of income"),
        (
            "Vera Keller lives in Bern. She opened the clinic in 2001.",
            "Vera Keller opened the clinic in 2001",
        ),
        ("The plan funds roads, schools and parks.", "The plan funds roads, schools and parks"),
        (
            "The council approved a $4.2 million plan to extend the line.",
            "The council approved a $4.2 million plan",
        ),
        ("The clinic has 100 beds.", "The clinic has one hundred beds"),
        ("图书馆八点开门。", "图书馆八点开门"),
        ("Lyra issued an outlook. They said sales would halve.", "Lyra said sales would halve"),
    ],
)
def test_faithful_copy_is_placed(response, line):
    outcome = check_of(response).place(line)
    assert isinstance(outcome, Placement)
    assert outcome.span.of(response)


@pytest.mark.parametrize(
    ("response", "line", "reason"),
    [
        ("Keller was criticised by Brandt.", "Keller criticised Brandt", "order"),
        ("Keller was criticised by Brandt.", "Brandt criticised Keller", "order"),
        ("The bridge is closed and the tunnel is open.", "The bridge is open", "order"),
        ("Keller supported and Brandt opposed the plan.", "Keller opposed the plan", "order"),
        ("Opponents of Keller resigned on Monday.", "Keller resigned on Monday", "order"),
        (
            "Few passengers complained about fares.",
            "passengers complained about fares",
            "qualifier",
        ),
        ("If the mill closes, Brandt resigns at once.", "Brandt resigns at once", "qualifier"),
        ("Brandt may resign on Monday.", "Brandt resign on Monday", "qualifier"),
        ("Brandt resigned on Monday.", "Brandt may have resigned on Monday", "word"),
        (
            "The council did not fund, support or approve the plan.",
            "The council approve the plan",
            "negation",
        ),
        ("The council did not fund, support or approve the plan.", "approve the plan", "negation"),
        ("It is not only cheap but fast in winter.", "It is cheap", "not_checkable"),
        ("The line can’t carry vans today.", "The line can carry vans today", "negation"),
        ("He denied that the mill closed in 1998.", "the mill closed in 1998", "qualifier"),
        ("Keller opposed the plan's critics.", "Keller opposed the plan", "order"),
        ("The rate is 40% of income.", "The rate is 40 of income", "order"),
        ("The fee is 9 € per day.", "The fee is $9 per day", "word"),
        ("It was -5 degrees at noon.", "It was 5 degrees at noon", "number"),
        ("Nobody in the town voted for Keller.", "The town voted for Keller", "negation"),
        (
            "Vera Keller met Brandt. She opened the clinic in 2001.",
            "Brandt opened the clinic in 2001",
            "recombined",
        ),
        (
            "Brandt resigned in May. Keller resigned in June.",
            "Brandt resigned in June",
            "recombined",
        ),
        (
            "The council approved a $4.2 million plan to extend the line.",
            "The council approved a $4.2 plan",
            "order",
        ),
        ("At least 12 boats sank in the bay.", "12 boats sank in the bay", "qualifier"),
        (
            "Brandt resigned because the bank failed to pay him.",
            "Brandt resigned because the bank",
            "qualifier",
        ),
        ("Without Keller the plan passed easily.", "the plan passed easily", "negation"),
        ("Brandt said the mill closed in 1998.", "The mill closed in 1998", "qualifier"),
        ("图书馆不开门。", "图书馆开门", "negation"),
        ("Who paid for the new bridge?", "paid for the new bridge", "not_checkable"),
        ("It rained.", "It rained", "not_checkable"),
    ],
)
def test_altered_copy_is_rejected_with_its_reason(response, line, reason):
    outcome = check_of(response).place(line)
    assert isinstance(outcome, tuple)
    assert outcome[0] is RejectionReason(reason)
    assert outcome[1]


def test_span_reaches_from_first_to_last_word():
    response = "On Monday the ferry sank near Oban, and nobody was hurt."
    outcome = check_of(response).place("the ferry sank near Oban")
    assert isinstance(outcome, Placement)
    assert outcome.span.of(response) == "ferry sank near Oban"


def test_equal_lines_use_up_the_places():
    check = check_of("Two ships sank. Two ships sank.")
    first, second = check.place("Two ships sank"), check.place("2 ships sank")
    assert isinstance(first, Placement)
    assert isinstance(second, Placement)
    assert (first.statement, second.statement) == (0, 1)
    third = check.place("Two ships sank")
    assert isinstance(third, tuple)
    assert third[0] is RejectionReason.DUPLICATE
