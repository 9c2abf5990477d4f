"""What all tables share: their schema, names of constraints, and types of columns."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from sqlalchemy import BigInteger, DateTime, Enum, Identity, MetaData, func
from sqlalchemy.orm import DeclarativeBase, mapped_column

SCHEMA = "halldetect"

# Names that a migration can refer to, whatever the server would have made up.
_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = MetaData(schema=SCHEMA, naming_convention=_NAMES)


# Identity columns sort by time of submission; cursors rely on it.
Id = Annotated[int, mapped_column(BigInteger, Identity(always=True), primary_key=True)]
CreatedAt = Annotated[
    datetime, mapped_column(DateTime(timezone=True), server_default=func.now(), nullable=False)
]
Moment = Annotated[datetime, mapped_column(DateTime(timezone=True))]


def one_of(choices: type[StrEnum], name: str) -> Enum:
    """Return the type of a text column that holds one of `choices`, by a check constraint.

    A check, unlike a type of the server's, changes in a migration that also goes back.
    """
    return Enum(
        choices,
        name=name,
        native_enum=False,
        create_constraint=True,
        length=32,
        values_callable=lambda members: [member.value for member in members],
    )
