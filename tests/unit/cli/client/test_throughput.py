import pytest

from cli.client.throughput import Throughput


@pytest.fixture
def at():
    """Builds what was seen from (seconds, finished audits)."""

    def build(*seen):
        moments = iter([seconds for seconds, _ in seen])
        throughput = Throughput(lambda: next(moments))
        for _, finished in seen:
            throughput.note(finished)
        return throughput

    return build


@pytest.mark.parametrize("seen", [[], [(5, 100)], [(0, 100), (9, 100)], [(5, 100), (5, 102)]])
def test_nothing_is_estimated_before_anything_was_seen_to_finish(at, seen):
    throughput = at(*seen)
    assert throughput.rate is None
    assert throughput.seconds_left(50) is None


def test_what_was_finished_before_looking_does_not_count(at):
    throughput = at((0, 1000), (5, 1010), (10, 1020))
    assert throughput.rate == pytest.approx(2.0)
    assert throughput.seconds_left(50) == pytest.approx(25.0)


def test_only_the_last_minute_counts(at):
    throughput = at((0, 0), (100, 1000), (130, 1030), (160, 1060))
    assert throughput.rate == pytest.approx(1.0)
