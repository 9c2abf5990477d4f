import os
import signal

import pytest

from cli.stack.stop_requests import StopRequests, stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_are_noted_and_not_obeyed(number):
    before = signal.getsignal(number)
    with stop_requests() as requests:
        assert not requests.is_made
        os.kill(os.getpid(), number)
        assert requests.is_made
        assert not requests.is_urgent
    assert signal.getsignal(number) is before


def test_asking_again_is_urgent_but_a_signal_passed_on_at_once_is_not(clock):
    requests = StopRequests(clock)
    requests.note(signal.SIGINT, None)
    clock.now += 0.5
    requests.note(signal.SIGTERM, None)
    assert not requests.is_urgent
    clock.now += 2
    requests.note(signal.SIGINT, None)
    assert requests.is_urgent
