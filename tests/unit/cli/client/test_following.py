from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from cli.client import following, patience
from cli.client.errors import ServiceUnavailable
from cli.client.following import follow


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(following, "_SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(patience, "SHORTEST_PAUSE", 0.0)


@pytest.fixture
def over(batch):
    return batch(status="completed", waiting=0, queued=0, extracted=0, completed=9)


def test_it_looks_until_nothing_waits(service, steps, batch, over):
    with service(*(steps["answer"](200, state) for state in (batch(), batch(), over))) as (
        client,
        script,
    ):
        assert follow(client, 12) == over
    assert len(script.requests) == 3


def test_an_outage_is_told_once_and_survived(service, steps, batch, over, capsys):
    away = steps["problem"](503, "the database is away")
    with service(
        steps["answer"](200, batch()), away, away, steps["cut"](), steps["answer"](200, over)
    ) as (client, _):
        assert follow(client, 12) == over
    errors = capsys.readouterr().err
    assert errors.count("the database is away; trying again in 0 s, for at most 60 s") == 1


def test_a_lasting_outage_ends_the_following_and_says_that_the_batch_is_kept(
    service, steps, monkeypatch
):
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.0)
    with service(steps["cut"]()) as (client, _), pytest.raises(ServiceUnavailable) as raised:
        follow(client, 12)
    assert "batch 12 is stored" in str(raised.value)
    assert "`halldetect status 12 --wait`" in str(raised.value)


@pytest.fixture
def clock(clock, monkeypatch):
    monkeypatch.setattr(following, "time", clock)
    return clock


def answering(clock, *answers):
    """A service whose requests take as long as told."""

    class Answering:
        def batch(self, _):
            seconds, answer = next(steps)
            clock.now += seconds
            return answer

        def saying_to(self, _):
            return nullcontext()

    steps = iter(answers)
    return Answering()


def test_a_slow_look_puts_off_the_next_by_some_seconds_at_most(clock, batch, over):
    follow(answering(clock, (0.1, batch()), (25.0, batch()), (0.0, over)), 12)
    assert clock.pauses == [pytest.approx(2.0), 5.0]


def test_an_interrupt_says_that_the_batch_goes_on(service, steps, batch, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(following, "time", SimpleNamespace(sleep=interrupt, monotonic=float))
    with (
        service(steps["answer"](200, batch())) as (client, _),
        pytest.raises(KeyboardInterrupt, match=r"batch 12 goes on.*status 12 --wait.*cancel"),
    ):
        follow(client, 12)
