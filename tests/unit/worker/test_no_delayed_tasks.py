"""No message is for later: such messages pile up in memory and are given out twice."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted(
    path for folder in ("api", "queues", "worker") for path in (ROOT / folder).rglob("*.py")
)
FOR_LATER = {"countdown", "eta", "expires", "retry_backoff", "autoretry_for", "default_retry_delay"}


def delays(tree):
    """Yield what would make Celery keep a message for later."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in FOR_LATER:
            yield node.arg
        elif isinstance(node, ast.Attribute) and node.attr in ("retry", "apply_async"):
            yield node.attr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_task_is_sent_for_later(path):
    assert [*delays(ast.parse(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize("call", ["f(countdown=1)", "task.retry()", "task.apply_async(eta=1)"])
def test_the_check_finds_such_calls(call):
    assert [*delays(ast.parse(call))]
