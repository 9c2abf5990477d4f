"""The views stay as they are, and docs/sql.md and the server's own comments describe them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psycopg
import pytest

from halldetect.claims.model import (
    ClaimOrigin,
    ExtractionMode,
    FinishReason,
    RejectionReason,
    UnauditedReason,
)
from halldetect.scoring.policy import Aggregation, ClaimValue
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import Outcome, Status

FROZEN = json.loads(Path(__file__).with_name("frozen_views.json").read_text(encoding="utf-8"))
DOCUMENT = (Path(__file__).parents[3] / "docs" / "sql.md").read_text(encoding="utf-8")

CATALOGUE = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
        col_description(c.oid, a.attnum), obj_description(c.oid)
    FROM pg_class AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'trail'::regnamespace
    ORDER BY c.relname, a.attnum
"""


@pytest.fixture
def catalogue(database):
    views = {}
    with psycopg.connect(database) as connection:
        for view, *column in connection.execute(CATALOGUE):
            views.setdefault(view, []).append(column)
    return views


def test_no_column_was_removed_renamed_moved_or_given_another_type(catalogue):
    for view, columns in FROZEN.items():
        now = [column[:2] for column in catalogue.get(view, [])]
        assert now[: len(columns)] == columns, f"trail.{view}: new columns come last, others stay"


def test_the_document_lists_every_column_with_its_type_and_meaning(catalogue):
    documented = {}
    for section in re.split(r"^### trail\.", DOCUMENT.partition("\n## Cookbook")[0], flags=re.M)[
        1:
    ]:
        view, _, body = section.partition("\n")
        meaning, _, table = body.partition("| column |")
        cells = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", table, flags=re.M)
        documented[view] = [[*cell, " ".join(meaning.split())] for cell in cells]
    assert documented == catalogue


@pytest.mark.parametrize(
    ("view", "column", "values"),
    [
        ("audits", "status", Status),
        ("audits", "outcome", Outcome),
        ("audits", "label", Label),
        ("audits", "extraction_mode", ExtractionMode),
        ("claims", "verdict", Verdict),
        ("claims", "origin", ClaimOrigin),
        ("claim_scorings", "verdict", Verdict),
        ("scorings", "label", Label),
        ("policies", "claim_value", ClaimValue),
        ("policies", "aggregation", Aggregation),
        ("reviews", "reviewer_verdict", Verdict),
        ("rejected_claims", "reason", RejectionReason),
        ("unaudited_sentences", "reason", UnauditedReason),
        ("generations", "finish", FinishReason),
    ],
)
def test_the_meaning_of_a_column_lists_all_of_its_values(catalogue, view, column, values):
    [meaning] = [what for name, _, what, _ in catalogue[view] if name == column]
    words = re.findall(r"[\w-]+", meaning)
    assert [value for value in values if value not in words] == []
