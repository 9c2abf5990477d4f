"""Reading what the service answers: the fields that a command needs, and no others."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from cli.client.errors import ServiceError


class Answer(BaseModel):
    """What a command reads of an answer; a later version may say more."""

    model_config = ConfigDict(frozen=True, extra="ignore")


_Kind = TypeVar("_Kind", bound=BaseModel)


def read_answer(kind: type[_Kind], document: Any, *, about: str) -> _Kind:
    """Read an answer.

    Parameters
    ----------
    kind : type
        What it must be.
    document : Any
        What came.
    about : str
        What was asked about, for the message.

    Raises
    ------
    ServiceError
        Naming the fields that are missing or odd.
    """
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, fault["loc"])) for fault in error.errors())
        raise ServiceError(
            f"the answer is none about {about} (wrong or missing: {fields}): is this a HallDetect "
            "service of the same version?"
        ) from None
