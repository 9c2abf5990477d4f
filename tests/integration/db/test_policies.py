"""Policies are versions: stored once, never changed, and found by the newest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError

from db.models import PolicyVersion
from db.policies import create_policy, find_policy, get_policy, list_policies
from halldetect.errors import PolicyError
from halldetect.scoring.policy import BUILTIN_POLICIES, PAPER, parse_policy


def policy(name="strict", **rules):
    return parse_policy({"name": name, "claim_value": "entailment", "aggregation": "min", **rules})


def create(sessions, wanted):
    with sessions.begin() as session:
        return create_policy(session, wanted)


def versions(sessions, name):
    with sessions.begin() as session:
        return session.scalar(
            select(func.count()).select_from(PolicyVersion).where(PolicyVersion.name == name)
        )


def test_a_policy_comes_back_with_its_rules(sessions):
    wanted = policy(granularities=[4, 1], margin=0.1, response_threshold=0.25)
    stored, is_new = create(sessions, wanted)
    assert is_new
    assert stored.policy == wanted
    with sessions.begin() as session:
        assert find_policy(session, "strict") == stored
        assert [one.policy.name for one in list_policies(session)] == sorted(
            [*BUILTIN_POLICIES, "strict"]
        )


def test_the_same_rules_again_are_the_version_that_is_there(sessions):
    first, _ = create(sessions, policy(granularities=[2, 1]))
    again, is_new = create(sessions, policy(granularities=[1, 2, 2]))
    assert not is_new
    assert again == first
    assert versions(sessions, "strict") == 1


def test_other_rules_under_a_name_are_a_new_version_and_the_old_one_stays(sessions):
    first, _ = create(sessions, policy())
    second, is_new = create(sessions, policy(response_threshold=0.2))
    assert is_new
    assert second.id > first.id
    with sessions.begin() as session:
        assert get_policy(session, "strict") == second
        assert session.get(PolicyVersion, first.id).rules["response_threshold"] == 0.5


def test_rules_under_two_names_are_two_policies(sessions):
    one, _ = create(sessions, policy("one"))
    two, is_new = create(sessions, policy("two"))
    assert is_new
    assert one.policy.version == two.policy.version
    assert one.id != two.id


def test_older_rules_cannot_become_the_newest_in_silence(sessions):
    create(sessions, policy())
    create(sessions, policy(margin=0.1))
    with pytest.raises(PolicyError, match=r"before it got others .* take another name"):
        create(sessions, policy())
    assert versions(sessions, "strict") == 2


def test_a_built_in_policy_keeps_its_rules(sessions):
    with pytest.raises(PolicyError, match="'paper' comes with the program"):
        create(sessions, policy("paper"))
    stored, is_new = create(sessions, PAPER)
    assert not is_new
    assert stored.policy == PAPER
    assert versions(sessions, "paper") == 1


def test_many_clients_that_bring_one_policy_make_one_version(sessions):
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: create(sessions, policy()), range(16)))
    assert len({stored.id for stored, _ in results}) == 1
    assert sum(is_new for _, is_new in results) == 1
    assert versions(sessions, "strict") == 1


@pytest.mark.parametrize(
    "change", ["UPDATE halldetect.policies SET name = 'x'", "DELETE FROM halldetect.policies"]
)
def test_the_server_refuses_to_change_a_policy(sessions, change):
    with pytest.raises(IntegrityError, match="never change"), sessions.begin() as session:
        session.execute(text(change))
