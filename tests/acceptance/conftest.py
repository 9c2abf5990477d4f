import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("halldetect")

SOURCE = (
    "The council approved the transit plan on Tuesday. It sets aside $4.2 million for the eastern "
    "line. Mayor Lena Ortiz said that the café at the terminus — rent 9 € — will stay open. "
    "Work begins in March and takes two years."
)
TRUE = "The council approved the transit plan on Tuesday."


@pytest.fixture(scope="session")
def halldetect():
    """Runs the installed command; texts go in and out as bytes."""

    def run(*arguments, stdin=b"", cwd=None, **environment):
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("HALLDETECT_")}
        return subprocess.run(
            [COMMAND, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            timeout=300,
            check=False,
            env={**inherited, "HALLDETECT_EXTRACTOR": "sentences", **environment},
        )

    return run


@pytest.fixture
def texts(tmp_path):
    """Writes S.txt and R.txt and returns the folder."""

    def write(source=SOURCE, response=TRUE):
        for name, text in (("S.txt", source), ("R.txt", response)):
            content = text if isinstance(text, bytes) else text.encode()
            (tmp_path / name).write_bytes(content)
        return tmp_path

    return write


@pytest.fixture
def halldetect_piped():
    """Runs the command with a standard output that nobody reads."""

    def run(*arguments, cwd):
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            done = subprocess.run(
                [COMMAND, *arguments],
                stdout=pipe,
                stderr=subprocess.PIPE,
                cwd=cwd,
                timeout=300,
                check=False,
                env={**os.environ, "HALLDETECT_EXTRACTOR": "sentences"},
            )
        return done.returncode, done.stderr

    return run


@pytest.fixture
def command():
    """Path of the installed command."""
    return COMMAND
