from __future__ import annotations

import pytest

from db.leases import Lease
from worker.held_leases import HeldLeases

FIRST, SECOND, THIRD = (Lease(number, "nli@box/1", 7) for number in (1, 2, 3))


@pytest.fixture
def held():
    leases = HeldLeases()
    leases.add([FIRST, SECOND, THIRD])
    return leases


def test_what_was_begun_is_told_apart_from_what_was_not(held):
    assert held.begin(SECOND)
    assert held.by_progress() == {True: [SECOND], False: [FIRST, THIRD]}


def test_a_lease_that_was_written_is_handed_back_no_more(held):
    held.begin(FIRST)
    held.drop(FIRST)
    assert held.remaining() == [SECOND, THIRD]
    assert held.by_progress() == {True: [], False: [SECOND, THIRD]}


def test_a_lost_lease_is_neither_begun_nor_renewed_nor_handed_back(held):
    held.mark_lost([FIRST, SECOND, THIRD], {1, 3})
    assert not held.begin(SECOND)
    assert held.remaining() == [FIRST, THIRD]
    assert held.by_progress() == {True: [], False: [FIRST, THIRD]}


def test_a_lease_that_was_written_during_the_renewal_is_no_loss(held):
    held.drop(SECOND)
    held.mark_lost([FIRST, SECOND], {1})
    held.add([SECOND])
    assert held.begin(SECOND)


def test_work_goes_on_while_one_of_its_leases_is_held(held):
    held.mark_lost([FIRST, SECOND], {2})
    assert held.is_any_held([FIRST, SECOND])
    assert not held.is_any_held([FIRST])


def test_abandoned_leases_run_out_while_the_others_are_handed_back(held):
    held.begin(FIRST)
    held.begin(THIRD)
    held.abandon_begun()
    assert held.remaining() == [SECOND]
    assert held.by_progress() == {True: [], False: [SECOND]}
