"""When deliveries are tried again: pauses of ours, and what receivers ask for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest

from worker.webhook_pauses import LONGEST_ASKED, MOST_ATTEMPTS, asked_pause, pause_after

ANSWERED_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
DATE = format_datetime(ANSWERED_AT, usegmt=True)


def test_pauses_grow_and_take_about_a_day():
    pauses = [pause_after(attempt) for attempt in range(1, MOST_ATTEMPTS)]
    for shorter, longer in pairwise(pauses):
        assert 2 * shorter < longer
    assert timedelta(hours=18) < sum(pauses, timedelta()) < timedelta(hours=28)
    assert pause_after(MOST_ATTEMPTS) is None
    assert len({pause_after(3) for _ in range(10)}) > 1


@pytest.mark.parametrize("attempt", range(1, MOST_ATTEMPTS))
def test_what_is_asked_for_lengthens_a_pause_up_to_a_limit_and_shortens_none(attempt):
    for _ in range(20):
        assert pause_after(attempt, timedelta()) >= pause_after(1) / 2
        assert timedelta(hours=3) <= pause_after(attempt, timedelta(hours=3)) <= LONGEST_ASKED
        assert pause_after(attempt, LONGEST_ASKED) == LONGEST_ASKED
        assert pause_after(attempt, timedelta(days=400)) == LONGEST_ASKED
    shortest = 0.8 * timedelta(seconds=15) * 4 ** (attempt - 1)
    assert pause_after(attempt, timedelta(seconds=1)) >= shortest


def test_asking_gives_no_attempt_more():
    assert pause_after(MOST_ATTEMPTS, timedelta(hours=1)) is None


def in_seconds(seconds):
    return format_datetime(ANSWERED_AT + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 7 ", 7),
        ("000000000000000000120", LONGEST_ASKED.total_seconds()),
        ("9" * 5000, LONGEST_ASKED.total_seconds()),
        (in_seconds(90), 90),
        (in_seconds(-90), 0),
        ("Sunday, 01-Mar-26 12:01:00 GMT", 60),  # as HTTP wrote dates before, and still reads them
        ("Sun Mar  1 12:01:00 2026", 60),
        ("Fri, 31 Dec 9999 23:59:59 GMT", None),
        *((text, "none") for text in ("", "soon", "-5", "1.5", "1e3", "\u0661", "+10", "12:00")),
        *((text, "none") for text in ("Sun, 99 Mar 2026 12:00:00 GMT", "x" * 5000, "\xff", ", ,")),
    ],
)
def test_retry_after_is_seconds_or_a_date(text, seconds):
    pause = asked_pause(503, {"retry-after": text, "date": DATE})
    if seconds is None:
        assert pause > timedelta(days=365)
    elif seconds == "none":
        assert pause is None
    else:
        assert pause == timedelta(seconds=seconds)


def test_a_date_counts_from_when_the_answer_was_written_by_its_own_clock():
    headers = {"retry-after": in_seconds(60)}
    assert asked_pause(429, {**headers, "date": DATE}) == timedelta(minutes=1)
    soon = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    for date in ({}, {"date": "yesterday"}):
        asked = asked_pause(429, {"retry-after": soon, **date})
        assert timedelta(minutes=40) < asked <= timedelta(hours=1)


@pytest.mark.parametrize("status", [301, 400, 404, 413, 500, 502, 504])
def test_other_answers_ask_for_nothing(status):
    assert asked_pause(status, {"retry-after": "120"}) is None


def test_an_answer_without_it_asks_for_nothing():
    assert asked_pause(503, {}) is None
