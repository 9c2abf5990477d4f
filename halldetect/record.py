"""The one record everywhere: a response to audit, its source, and what the caller wants kept."""

from __future__ import annotations

import json
import math
import reprlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from types import NoneType
from typing import Any, Literal, NoReturn

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from halldetect.errors import InputError
from halldetect.wording import fault_message

_DEEPEST_METADATA = 100  # JSON writers give up somewhere above
_UNKNOWN_TOLD = 5
_JSON_SCALARS = (str, int, float, bool, NoneType)

UnknownFields = Literal["ignore", "refuse"]
"""What becomes of a record's fields that have no meaning."""

WITHOUT_NUL: dict[str, Any] = {"pattern": r"^[^\u0000]*$"}
"""What JSON Schema can say of a text that `text_fault` finds nothing wrong with."""


class RecordError(InputError):
    """A text that is no record; `column` is where its JSON stops being JSON, if that can be said.

    Parameters
    ----------
    message : str
        What is wrong, where, and what to do.
    column : int or None
        Characters from 1.
    """

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message)
        self.column = column


class Record(BaseModel):
    """One (source, response) pair to audit.

    Parameters
    ----------
    custom_id : str, optional
        The caller's name for it; also accepted as ``id``.
    source : str
        The document the response must be true to; not blank.
    response : str
        The generated text; may be empty.
    context : str, optional
        What was asked; also accepted as ``question``. Kept, not judged.
    metadata : dict
        Anything the caller wants to find again.
    policy : str, optional
        Name of the policy to score with.
    priority : int
        Higher goes first, -100 to 100.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, strict=True)

    custom_id: str | None = Field(
        default=None,
        validation_alias=AliasChoices("custom_id", "id"),
        min_length=1,
        max_length=512,
        json_schema_extra=WITHOUT_NUL,
    )
    source: str = Field(json_schema_extra={**WITHOUT_NUL, "minLength": 1})
    response: str = Field(json_schema_extra=WITHOUT_NUL)
    context: str | None = Field(
        default=None,
        validation_alias=AliasChoices("context", "question"),
        json_schema_extra=WITHOUT_NUL,
    )
    metadata: dict[str, Any] = Field(default_factory=dict)
    policy: str | None = Field(default=None, json_schema_extra=WITHOUT_NUL)
    priority: int = Field(default=0, ge=-100, le=100)

    # Before pydantic's own check, whose message on half a surrogate pair names no position.
    @field_validator("source", "response", "context", "custom_id", "policy", mode="before")
    @classmethod
    def _is_storable(cls, value: Any) -> Any:
        if isinstance(value, str) and (fault := text_fault(value)):
            raise ValueError(fault)
        return value

    @field_validator("metadata")
    @classmethod
    def _is_storable_throughout(cls, value: dict[str, Any]) -> dict[str, Any]:
        fault = _value_fault(value)
        if fault:
            raise ValueError(fault)
        return value

    @field_validator("source")
    @classmethod
    def _is_not_blank(cls, value: str) -> str:
        if not _has_visible(value):
            raise ValueError(
                "is empty, or only white space and invisible characters: there is nothing to "
                "audit against"
            )
        return value


ALIASES = {"custom_id": "id", "context": "question"}
"""Other names of fields."""

_FIELDS = frozenset(Record.model_fields) | frozenset(ALIASES.values())


def _has_visible(text: str) -> bool:
    """Tell whether a text has a character that is no separator, control or format character."""
    return any(unicodedata.category(character)[0] not in "ZC" for character in text)


def text_fault(text: str) -> str | None:
    """Return why a text cannot be stored and audited, or None."""
    position = text.find("\0")
    if position >= 0:
        return f"has a NUL character at position {position}: remove it"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return (
            f"has half of a surrogate pair at position {error.start}, which is no character: "
            "write the text as proper UTF-8"
        )
    return None


def _value_fault(value: Any) -> str | None:
    """Return why a JSON value cannot be written into a trail, or None."""
    level = [value]
    for _ in range(_DEEPEST_METADATA):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.keys())
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif not isinstance(item, _JSON_SCALARS):
                return f"has a value of type {type(item).__name__}, which is not JSON"
            elif isinstance(item, str) and (fault := text_fault(item)):
                return fault
            elif isinstance(item, float) and not math.isfinite(item):
                return "has a number that is too large for JSON"
        if not below:
            return None
        level = below
    return f"is nested more than {_DEEPEST_METADATA} levels deep"


def make_record(**fields: Any) -> Record:
    """Build a record from values in the program.

    Raises
    ------
    InputError
        With every fault of every field.
    """
    try:
        return Record.model_validate(fields)
    except ValidationError as error:
        raise InputError(_faults(error)) from None


def parse_record(line: bytes, *, unknown_fields: UnknownFields = "ignore") -> Record:
    """Read a record from one line of JSON.

    Parameters
    ----------
    line : bytes
        A JSON object in UTF-8.
    unknown_fields : {"ignore", "refuse"}
        Whether a field that a record does not have is passed over.

    Raises
    ------
    InputError
        Saying what is wrong, and at which byte or column.
    """
    value = parse_object(line, what="a record")
    if unknown_fields == "refuse":
        _refuse_unknown(value)
    return make_record(**_unambiguous(value))


def parse_object(line: bytes, *, what: str) -> dict[str, Any]:
    """Read one JSON object, without what other readers pass over: a name twice, NaN, infinity.

    Parameters
    ----------
    line : bytes
        JSON in UTF-8.
    what : str
        What the object is, for the message.

    Raises
    ------
    RecordError
        Saying what is wrong, and at which byte or column.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            f"byte {error.start + 1} is not UTF-8; convert the file to UTF-8",
            column=len(line[: error.start].decode("utf-8")) + 1,
        ) from None
    try:
        value = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_without_repeats
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise RecordError(
            f"{place}column {error.colno}: not valid JSON ({error.msg})", column=error.colno
        ) from None
    except RecursionError:
        raise RecordError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise RecordError(f"not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise RecordError(f"{what} is a JSON object, not {type(value).__name__}")
    return value


def _refuse_unknown(value: dict[str, Any]) -> None:
    unknown = sorted(value.keys() - _FIELDS)
    if unknown:
        names = ", ".join(map(reprlib.repr, unknown[:_UNKNOWN_TOLD]))
        more = f" and {len(unknown) - _UNKNOWN_TOLD:,} others" * (len(unknown) > _UNKNOWN_TOLD)
        raise RecordError(
            f"a record has no field {names}{more}; there are: {', '.join(sorted(_FIELDS))}"
        )


def jsonl_lines(file: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    r"""Yield (line number from 1, bytes) of the lines that are not blank.

    Lines end at ``\n`` or ``\r\n`` and nowhere else; a byte order mark before the first is dropped.
    """
    for number, raw in enumerate(file, start=1):
        line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        if line.strip(b" \t"):
            yield number, line


def _unambiguous(value: dict[str, Any]) -> dict[str, Any]:
    for name, alias in ALIASES.items():
        if name in value and alias in value and value[name] != value[alias]:
            raise InputError(f"{name} and its alias {alias} differ: give one of them")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        repeated = next(name for name, count in Counter(n for n, _ in pairs).items() if count > 1)
        raise ValueError(f"the field {reprlib.repr(repeated)} is given twice")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _faults(error: ValidationError) -> str:
    faults = []
    for detail in error.errors(include_url=False, include_input=False):
        field = ".".join(str(part) for part in detail["loc"]) or "record"
        faults.append(f"field {field}: {fault_message(detail)}")
    return "; ".join(faults)
