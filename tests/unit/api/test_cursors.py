from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cursors import LARGEST_ID, make_cursor, read_cursor
from api.problems import Problem

SELECTION = {"status": "failed", "batch_id": 7}


@given(st.integers(1, LARGEST_ID))
def test_a_cursor_leads_back_to_its_place(last_id):
    assert read_cursor(make_cursor(last_id, SELECTION), SELECTION) == last_id


def test_the_first_page_needs_no_cursor():
    assert read_cursor(None, SELECTION) is None


def test_the_order_of_the_filters_does_not_matter():
    cursor = make_cursor(3, {"a": 1, "b": 2})
    assert read_cursor(cursor, {"b": 2, "a": 1}) == 3


@pytest.mark.parametrize("other", [{}, {"status": "failed"}, {"status": "failed", "batch_id": 8}])
def test_a_cursor_of_other_filters_is_refused(other):
    with pytest.raises(Problem, match="other filters") as caught:
        read_cursor(make_cursor(3, SELECTION), other)
    assert caught.value.status == 400


def encoded(text):
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "x", "=", "%", "a b", "é", "\0", "A" * 256),
        encoded("0.0000000000000000"),
        encoded("-5.0000000000000000"),
        encoded("1e3.0000000000000000"),
        encoded("9223372036854775808.0000000000000000"),
        encoded("5"),
        encoded("5.xyz"),
        encoded("٣.0000000000000000"),
    ],
)
def test_what_is_no_cursor_is_refused(cursor):
    with pytest.raises(Problem, match="damaged") as caught:
        read_cursor(cursor, SELECTION)
    assert caught.value.status == 400


@given(st.data())
def test_a_cursor_with_a_changed_character_is_refused(data):
    cursor = make_cursor(123_456, SELECTION)
    place = data.draw(st.integers(0, len(cursor) - 1))
    changed = cursor[:place] + data.draw(st.sampled_from("Aa0-_=$ ")) + cursor[place + 1 :]
    if changed == cursor:
        return
    with pytest.raises(Problem):
        read_cursor(changed, SELECTION)
