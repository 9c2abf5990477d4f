from __future__ import annotations

import os
import subprocess
import sys


def run(**variables):
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    return subprocess.run(
        [sys.executable, "-m", "api"],
        capture_output=True,
        text=True,
        env=kept | variables,
        check=False,
    )


def test_without_servers_it_says_what_to_set():
    done = run()
    assert done.returncode == 2
    assert "set DATABASE_URL and REDIS_URL" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_of_another_kind_is_refused():
    done = run(DATABASE_URL="mysql://a@127.0.0.1/b", REDIS_URL="redis://127.0.0.1:1/0")
    assert done.returncode == 2
    assert "postgresql://" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_does_not_let_everybody_in_from_other_machines():
    done = run(
        DATABASE_URL="postgresql://a@127.0.0.1:1/b",
        REDIS_URL="redis://127.0.0.1:1/0",
        HALLDETECT_API_HOST="0.0.0.0",
        HALLDETECT_API_KEYS_REQUIRED="false",
    )
    assert done.returncode == 2
    assert "would listen on '0.0.0.0' and ask nobody for a key" in done.stderr
    assert "Traceback" not in done.stderr
