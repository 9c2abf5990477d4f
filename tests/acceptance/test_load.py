"""The load test in its short form: mixed traffic brings no fault, and its report adds up."""

import json
import os
import subprocess
import sys

import pytest
from runbook import ROOT

CLIENTS = 4
KINDS = {"submit one", "submit batch", "read batch", "list audits"}


def load(*options):
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "load.py", *map(str, options)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def mixed_traffic():
    """Return the report of a load, as long as it takes this machine to come to every kind."""
    for seconds in (5, 30, 120):
        done = load("--clients", CLIENTS, "--seconds", seconds, "--pause", 0, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert report["seconds"] >= seconds
        if set(report["kinds"]) >= KINDS:
            break
    return report


def test_mixed_traffic_meets_no_fault_and_the_report_adds_up():
    report = mixed_traffic()
    assert report["faults"] == 0, report["first_faults"]
    assert report["clients"] == CLIENTS
    kinds = report["kinds"]
    assert set(kinds) >= KINDS
    assert report["requests"] == sum(kind["requests"] for kind in kinds.values()) > CLIENTS
    for kind in kinds.values():
        assert sum(kind["statuses"].values()) == kind["requests"]
        assert all(status < "500" for status in kind["statuses"])
        assert 0 < kind["p50_ms"] <= kind["p95_ms"] <= kind["p99_ms"] <= kind["max_ms"]
    audits = report["audits"]
    assert audits["submitted"] == audits["stored"] >= kinds["submit one"]["statuses"]["202"]
    ends = ("completed", "failed", "cancelled")
    assert audits["ended"] == sum(audits[end] for end in ends) <= audits["stored"]
    assert audits["failed"] == audits["cancelled"] == 0
    memory = report["api_mebibytes"]
    assert 0 < memory["before"] <= memory["most"]
    assert 0 < report["most_connections"] < 100


@pytest.mark.parametrize("options", [("--clients", 0), ("--clients", 201), ("--seconds", 601)])
def test_a_load_without_bounds_is_refused(options):
    done = load(*options)
    assert done.returncode == 2
    assert "must be from 1 to" in done.stderr
