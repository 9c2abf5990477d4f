"""The models that computed: one row for each distinct provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from db.models import (
    Model,
    ModelKind,
)


def model_id(session: Session, kind: ModelKind, provenance: Mapping[str, Any]) -> int:
    """Return the row of a model, stored when first seen.

    Parameters
    ----------
    kind : ModelKind
        What it does.
    provenance : mapping
        `ModelProvenance.to_json`, and whatever else the trail should say of it.
    """
    canonical = json.dumps([kind.value, provenance], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).digest()
    named = {
        field: provenance[field] for field in ("name", "backend", "revision", "dtype", "device")
    }
    session.execute(
        insert(Model)
        .values(sha256=digest, kind=kind, provenance=dict(provenance), **named)
        .on_conflict_do_nothing()
    )
    return session.scalars(select(Model.id).where(Model.sha256 == digest)).one()
