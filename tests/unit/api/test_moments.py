from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from api.moments import Moment


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    at: Moment


class Lax(BaseModel):
    at: Moment


@pytest.mark.parametrize("text", ["2026-03-01T00:00:00Z", "2026-03-01 01:00:00+01:00"])
@pytest.mark.parametrize("model", [Strict, Lax])
def test_a_time_that_is_written_out_is_taken(model, text):
    assert model.model_validate_json(json.dumps({"at": text})).at == datetime(
        2026, 3, 1, tzinfo=UTC
    )


@pytest.mark.parametrize(
    "value", ["2026", 2026, 1.5, "1e9", "-1", "2026-03-01", "2026-03-01T00:00:00", "", None, True]
)
@pytest.mark.parametrize("model", [Strict, Lax])
def test_a_number_a_day_and_a_time_of_no_zone_are_refused(model, value):
    with pytest.raises(ValidationError):
        model.model_validate_json(json.dumps({"at": value}))
