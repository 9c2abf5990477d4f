"""JSON bodies that are one object with known fields."""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from halldetect.record import parse_object, text_fault

_Body = TypeVar("_Body", bound=BaseModel)


def read_body(body: bytes, kind: type[_Body]) -> _Body:
    """Read a body.

    Raises
    ------
    RecordError
        When it is no JSON object, or gives a field twice.
    RequestValidationError
        Naming every field at fault, as for parameters.
    """
    _refuse_what_is_no_text(parse_object(body, what="the body"))
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise RequestValidationError(
            [{**fault, "loc": ("body", *fault["loc"])} for fault in faults]
        ) from None


def _refuse_what_is_no_text(value: dict[str, Any]) -> None:
    """Name the field of a text that is none; pydantic would only find its JSON broken."""
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while waiting:
        place, item = waiting.pop()
        if isinstance(item, dict):
            for name, inner in item.items():
                if fault := text_fault(name):
                    raise _text_error(place, f"has a field whose name {fault}")
                waiting.append(((*place, name), inner))
        elif isinstance(item, list):
            waiting += [((*place, number), inner) for number, inner in enumerate(item)]
        elif isinstance(item, str) and (fault := text_fault(item)):
            raise _text_error(place, fault)


def _text_error(place: tuple[str | int, ...], message: str) -> RequestValidationError:
    return RequestValidationError(
        [{"type": "value_error", "loc": ("body", *place), "msg": message}]
    )


def body_schema(kind: type[BaseModel], example: Any) -> dict[str, Any]:
    """Return the documentation of such a body; what it refers to must occur in an answer too."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return {
        "required": True,
        "content": {"application/json": {"schema": schema, "example": example}},
    }
