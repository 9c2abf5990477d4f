import pytest

from cli.pace import Pace, duration
from halldetect.auditor import Progress, Stage


def note(pace, clock, seconds, stage, done, total=None):
    clock.now += seconds
    pace.note(Progress(stage, done, total))


def test_nothing_is_estimated_before_both_stages_were_seen(clock):
    pace = Pace(10, clock)
    note(pace, clock, 1, Stage.EXTRACTION, 1)
    assert pace.rate is None
    assert pace.seconds_left is None
    assert pace.fraction is None
    assert str(pace) == "0 of 10 audits, claims of 1 known"


def test_each_stage_is_estimated_at_its_own_speed(clock):
    pace = Pace(8, clock)
    for number in (1, 2, 3, 4):
        note(pace, clock, 1, Stage.EXTRACTION, number)
    note(pace, clock, 6, Stage.VERIFICATION, 50, 100)
    # 4 audits to extract at 1 s, 6 to verify at 3 s.
    assert pace.seconds_left == pytest.approx(4 + 18)
    assert pace.rate == pytest.approx(2 / 10)
    assert pace.fraction == pytest.approx(10 / 32)


def test_written_results_are_the_base_of_the_next_load(clock):
    pace = Pace(4, clock)
    note(pace, clock, 1, Stage.EXTRACTION, 1)
    note(pace, clock, 1, Stage.VERIFICATION, 9, 9)
    pace.wrote()
    note(pace, clock, 1, Stage.EXTRACTION, 3)
    note(pace, clock, 1, Stage.VERIFICATION, 1, 2)
    assert str(pace).startswith("2 of 4 audits, claims of 3 known, 0.5 audits/s, about 0:00:0")


def test_a_load_without_pairs_counts_when_it_is_written(clock):
    pace = Pace(1, clock)
    note(pace, clock, 1, Stage.EXTRACTION, 1)
    pace.note(Progress(Stage.VERIFICATION, 0, 0))
    pace.wrote()
    assert str(pace) == "1 of 1 audit, 1.0 audits/s, about 0:00:00 left"


def test_lines_that_are_no_audits_leave_the_total(clock):
    pace = Pace(3, clock)
    pace.skipped()
    assert str(pace) == "0 of 2 audits"


def test_a_stream_has_no_total_and_no_end(clock):
    pace = Pace(None, clock)
    pace.skipped()
    note(pace, clock, 1, Stage.EXTRACTION, 1)
    note(pace, clock, 1, Stage.VERIFICATION, 1, 1)
    assert pace.seconds_left is None
    assert str(pace) == "1 audit, 0.5 audits/s"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00:00"), (59.6, "0:01:00"), (3725, "1:02:05"), (90000, "25:00:00")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text
