import io
import os
import pty
import select
import termios
import threading
import time

import pytest

from cli.review_keys import Key, read_key, verdict_of
from halldetect.scoring.verdict import Verdict


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("a\n", Key.AGREE),
        (" C\r\n", Key.CORRECT),
        ("unsupported\n", Key.UNSUPPORTED),
        ("d", Key.CONTRADICTED),
        ("s\n", Key.SKIP),
        ("q\n", Key.QUIT),
        ("", Key.QUIT),
        ("\n", None),
        ("x\n", None),
        ("1\n", None),
    ],
)
def test_the_first_letter_of_a_line_counts(line, key):
    assert read_key(io.StringIO(line)) is key


@pytest.mark.parametrize(
    ("key", "stands", "verdict"),
    [
        (Key.AGREE, Verdict.UNSUPPORTED, Verdict.UNSUPPORTED),
        (Key.AGREE, Verdict.CONTRADICTED, Verdict.CONTRADICTED),
        (Key.CORRECT, Verdict.CONTRADICTED, Verdict.SUPPORTED),
        (Key.UNSUPPORTED, Verdict.CONTRADICTED, Verdict.UNSUPPORTED),
        (Key.CONTRADICTED, Verdict.UNSUPPORTED, Verdict.CONTRADICTED),
        (Key.SKIP, Verdict.UNSUPPORTED, None),
        (Key.QUIT, Verdict.UNSUPPORTED, None),
    ],
)
def test_what_a_key_says_of_a_verdict(key, stands, verdict):
    assert verdict_of(key, stands) is verdict


class Terminal:
    """A pseudo terminal with a keyboard."""

    def __init__(self):
        self.keyboard, self._number = pty.openpty()

    def isatty(self):
        return True

    def fileno(self):
        return self._number

    @property
    def waits_for_lines(self):
        return bool(termios.tcgetattr(self._number)[3] & termios.ICANON)

    def press_when_it_waits_for_keys(self, content):
        while self.waits_for_lines:
            time.sleep(0.001)
        os.write(self.keyboard, content)

    def close(self):
        os.close(self.keyboard)
        os.close(self._number)


@pytest.fixture
def terminal():
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.mark.parametrize(
    ("pressed", "key"),
    [(b"a", Key.AGREE), (b"D", Key.CONTRADICTED), (b"\x04", Key.QUIT), (b"\xc3", None)],
)
def test_at_a_terminal_a_key_is_enough_and_the_terminal_stays_as_it_was(terminal, pressed, key):
    typist = threading.Thread(target=terminal.press_when_it_waits_for_keys, args=(pressed,))
    typist.start()
    assert read_key(terminal) is key
    typist.join()
    assert terminal.waits_for_lines


def test_what_was_typed_before_the_claim_was_shown_answers_nothing(terminal):
    os.write(terminal.keyboard, b"dddd\n")
    select.select([terminal.fileno()], [], [])  # it has arrived
    typist = threading.Thread(target=terminal.press_when_it_waits_for_keys, args=(b"s",))
    typist.start()
    assert read_key(terminal) is Key.SKIP
    typist.join()
