"""One process whose clock is set, forward and back: leases and sweeps go by other clocks."""

from __future__ import annotations

import pytest
import redis
from celery_processes import CeleryProcess, wait_until, worker_environment

from db.line import Stage
from queues.celery_app import make_app
from queues.names import Task

SET = ["+1h", "-1h", "+0", "-26h"]


class Clock:
    """The clock of the processes that are started with its `variables`."""

    def __init__(self, library, file):
        self._file = file
        self.set("+0")
        self.variables = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            # Setting a clock leaves this one as it is.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, shown):
        # At one go: the processes read it all the time.
        draft = self._file.with_suffix(".new")
        draft.write_text(shown)
        draft.replace(self._file)


@pytest.fixture
def clock(libfaketime, tmp_path):
    return Clock(libfaketime, tmp_path / "clock")


@pytest.fixture
def queued(redis_url):
    """Return a function to the number of sweeps that beat has sent."""

    def queued():
        with redis.Redis.from_url(redis_url) as client:
            return client.llen("maintenance")

    return queued


@pytest.fixture
def sweep(redis_url, queued):
    """Return a function that waits for a whole sweep by a worker that takes one at a time."""
    app = make_app(redis_url, "test")

    def sweep():
        for _ in range(2):
            app.send_task(Task.SWEEP.value, queue="maintenance")
        wait_until(lambda: queued() == 0)  # the second is taken when the first is done

    return sweep


@pytest.fixture
def start_beat(database, redis_url, tmp_path):
    """Return a function that starts beat; a sweep a second."""
    started = []

    def start(variables=None, schedule="schedule"):
        environment = worker_environment(database, redis_url, sweep_seconds=1) | (variables or {})
        command = ["beat", f"--schedule={tmp_path / schedule}", "--pidfile=", "-l", "INFO"]
        log = tmp_path / f"beat.{len(started)}.log"
        started.append(CeleryProcess("clocked_app", command, environment, log))
        return started[-1]

    yield start
    for process in started:
        process.kill()


def test_a_worker_whose_clock_is_set_neither_loses_its_lease_nor_takes_another_ones(
    start_faulty, start_worker, submit, states, rows, faults, is_waiting, clock, sweep
):
    # Leases that only a machine at rest for a minute would lose, renewed each second.
    often = {"FAULTS_RENEWALS_A_LEASE": "60"}
    submit("The ferry sails at noon.", "Nobody was hurt.")
    start_worker("extraction").run(Stage.EXTRACTION)
    (sound,) = start_faulty("nli", variables=often)
    wait_until(lambda: is_waiting(sound))
    submit("The ferry was late.", single=True)
    start_worker("extraction-2", "extraction").run(Stage.EXTRACTION)
    odd, sweeper = start_faulty("nli-2", "maintenance", variables=often | clock.variables)
    wait_until(lambda: is_waiting(odd))
    held = "SELECT id, lease_owner, fencing_token FROM halldetect.audits ORDER BY id"
    owners = rows(held)
    assert len({owner for _, owner, _ in owners}) == 2
    expiries = "SELECT max(lease_expires_at), min(lease_expires_at) FROM halldetect.audits"
    for shown in SET:
        clock.set(shown)
        before = rows(expiries)
        sweep()
        wait_until(lambda before=before: min(*rows(expiries)) > max(*before))
        assert rows(held) == owners
    # The sweeper has not stopped: it brings back what nobody holds any more.
    rows("DELETE FROM halldetect.workers WHERE name LIKE 'nli@%' RETURNING name")
    sound.kill()
    over = "UPDATE halldetect.audits SET lease_expires_at = now() WHERE lease_owner LIKE 'nli@%'"
    assert len(rows(f"{over} RETURNING id")) == 2
    sweep()
    assert [faults for _, _, faults in states()] == [1, 1, 0]
    (faults / "go").touch()
    wait_until(lambda: {status for status, _, _ in states()} == {"completed"})
    assert states()[2] == ("completed", 2, 0)
    assert sweeper.process.poll() is odd.process.poll() is None


def test_beat_goes_on_when_its_clock_is_set(start_beat, queued, clock):
    start_beat(clock.variables)
    wait_until(lambda: queued() >= 2)
    for shown in SET:
        clock.set(shown)
        before = queued()
        wait_until(lambda before=before: queued() >= before + 3)


def test_beat_goes_on_after_it_was_stopped_and_the_clock_set_back(start_beat, queued, clock):
    clock.set("+26h")
    beat = start_beat(clock.variables)
    wait_until(lambda: queued() >= 2)
    beat.end()
    clock.set("+0")
    before = queued()
    start_beat(clock.variables)
    wait_until(lambda: queued() >= before + 3)


@pytest.mark.parametrize("shown", ["@2026-10-25 02:59:57", "@2027-03-28 01:59:57"])
def test_beat_goes_on_over_a_daylight_saving_change(start_beat, queued, clock, shown):
    clock.set(shown)
    start_beat({**clock.variables, "TZ": "Europe/Berlin"})
    wait_until(lambda: queued() >= 8)


def test_two_beats_at_once_do_no_harm(
    start_beat, start_celery, submit, rows, states, wake_ups, worker_rows
):
    submit(*[f"The mill opened in {1900 + n}." for n in range(3)])
    rows(
        "UPDATE halldetect.audits SET lease_owner = 'extraction@lost/1', fencing_token = 1,"
        " attempts = 1, lease_begun = true, lease_expires_at = now() RETURNING id"
    )
    start_beat(schedule="one")
    start_beat(schedule="other")
    start_celery("maintenance", "maintenance-2", "extraction", "nli")
    wait_until(lambda: {status for status, _, _ in states()} == {"completed"})
    assert [faults for _, _, faults in states()] == [1, 1, 1]
    assert rows("SELECT count(*) FROM halldetect.verifications") == [(3,)]
