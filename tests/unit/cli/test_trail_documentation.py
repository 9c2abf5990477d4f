import inspect
import re
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import get_args

import pytest
from pydantic import BaseModel

from db.trails import StoredAudit
from halldetect import trail

TEXT = (Path(__file__).parents[3] / "docs" / "trail.md").read_text(encoding="utf-8")
STORED = StoredAudit.model_fields
ADDED = {name: STORED[name] for name in StoredAudit.__annotations__ if name != "claims"}
MODELS = {
    name: model
    for name, model in inspect.getmembers(trail, inspect.isclass)
    if issubclass(model, BaseModel)
    and model.__module__ == trail.__name__
    and not name.startswith("_")
}
FIELDS = {name: model.model_fields for name, model in MODELS.items()} | {"StoredAudit": ADDED}


def documented():
    sections = re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]
    tables = {}
    for section in sections:
        title, _, body = section.partition("\n")
        rows = [
            line.strip("|").split(" | ") for line in body.splitlines() if line.startswith("| `")
        ]
        tables[title] = {row[0].strip(" `"): [cell.strip(" |") for cell in row] for row in rows}
    del tables["Lines of `--out`"]
    tables["StoredAudit"] = tables.pop("What the service adds")
    return tables


TABLES = documented()


def test_every_model_has_a_section_and_every_section_a_model():
    assert TABLES.keys() == FIELDS.keys()


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_documented_and_every_documented_field_exists(name):
    assert list(TABLES[name]) == list(FIELDS[name])


@pytest.mark.parametrize("name", FIELDS)
def test_what_may_be_null_says_when(name):
    for field, info in FIELDS[name].items():
        cell = TABLES[name][field][3]
        if NoneType in get_args(info.annotation):
            assert cell, f"{name}.{field} may be null, but nothing says when"
        elif name != "Matrix":
            assert not cell, f"{name}.{field} is never null"


@pytest.mark.parametrize("name", FIELDS)
def test_every_value_of_an_enumeration_is_listed(name):
    for field, info in FIELDS[name].items():
        for kind in (info.annotation, *get_args(info.annotation)):
            if inspect.isclass(kind) and issubclass(kind, Enum):
                listed = re.findall(r"`([a-z_-]+)`", TABLES[name][field][1])
                assert listed == [member.value for member in kind], f"{name}.{field}"
