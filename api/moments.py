"""Points in time as they come in: written out, with their time zone."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field

_BEGINNING = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d", re.ASCII)


def _written_out(value: Any) -> Any:
    # Pydantic takes numbers for seconds since 1970, so that the year 2026 would be an evening then.
    if isinstance(value, datetime) or (isinstance(value, str) and _BEGINNING.match(value)):
        return value
    raise ValueError("is no date and time with a time zone: write it as 2026-03-01T00:00:00Z")


# Not strict: what has passed here is text, which strict models would take for no time.
Moment = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_written_out)]
