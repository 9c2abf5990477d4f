"""What the OpenAPI document says beyond what FastAPI can tell from the routes."""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from api import examples
from api.bodies import JSON_LINES
from api.problems import MEDIA_TYPE, ProblemDocument
from db.trails import StoredAudit
from halldetect.record import ALIASES, Record

Responses = dict[int | str, dict[str, Any]]

# "name, name : type", and indented below it what they are.
_PARAMETER = re.compile(r"^(?P<names>\w[\w, ]*) :.*\n(?P<text>(?:    .*(?:\n|$))+)", re.MULTILINE)
# FastAPI drops nulls out of examples, so they are put in after it.
_EXAMPLE_NAME = "x-example-name"
_COMPONENTS = "#/components/schemas/{model}"
DESCRIPTION = """
Audits answers of language models against their sources. Send a **record** (a `source` document and
the `response` that must be true to it), or a file of records as a **batch**; read back the claims
of each response with the evidence for and against them, a FEDscore and a label.

- Everything is stored before the answer `202` comes; the audit itself takes seconds to hours.
- Ids are strings of digits. Times are UTC.
- Send `Authorization: Bearer hd_...` where the service asks for an API key. What is submitted with
  a key is there for that key alone, and for keys of the scope `admin`.
- After a 429 or a 503, wait as many seconds as `Retry-After` says, and send the request again.
  Nothing was stored; only where the `type` of a 503 ends in `outcome-unknown` nobody knows: repeat
  it with the same `Idempotency-Key`, or look what is there first.
- Errors are [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) problem documents. A refusal for
  size names the limit and the setting behind it.
- Send an `Idempotency-Key` with every `POST` that submits: a repetition then returns the first
  answer (with `Idempotency-Replayed: true`) instead of submitting twice.
"""

BATCH_DESCRIPTION = f"""
Submit a file of records. All of it is stored, or nothing: a refusal lists the faulty lines.

The file has one record a line, in UTF-8. Lines end at `\\n` or `\\r\\n` and nowhere else; blank
lines are passed over. It may be sent with `Content-Encoding: gzip`.

```
{examples.RECORD_LINES}```
"""


def problems(*statuses: int) -> Responses:
    """Return the documentation of the problems of a route that asks for a key.

    Those that any of them may answer with are always there.
    """
    always = (401, 403, 429, 500, 503)
    return {status: problem(examples.PROBLEMS[status]) for status in (*statuses, *always)}


def problem(example: dict[str, Any]) -> dict[str, Any]:
    """Return the documentation of one problem."""
    return {
        "description": example["title"],
        "content": {MEDIA_TYPE: {"schema": _reference("ProblemDocument"), "example": example}},
    }


def json_example(description: str, example: str, *, location: bool = False) -> dict[str, Any]:
    """Return the documentation of a JSON answer; `example` is a name in `api.examples`."""
    answer: dict[str, Any] = {
        "description": description,
        "content": {"application/json": {_EXAMPLE_NAME: example}},
    }
    if location:
        answer["headers"] = {
            "Location": {"description": "Where it is.", "schema": {"type": "string"}}
        }
    return answer


def record_body() -> dict[str, Any]:
    """Return the documentation of a body that is one record."""
    return {
        "required": True,
        "content": {
            "application/json": {"schema": _reference("Record"), "example": examples.RECORD}
        },
    }


def batch_body() -> dict[str, Any]:
    """Return the documentation of a body that is JSON lines."""
    # As binary, since the docs page would send a text of a type with "json" in it in quotes.
    lines = {
        "schema": {"type": "string", "format": "binary"},
        "example": examples.RECORD_LINES,
    }
    return {"required": True, "content": dict.fromkeys(JSON_LINES, lines)}


def result_lines() -> dict[str, Any]:
    """Return the documentation of an answer of trails as JSON lines."""
    lines = {"schema": _reference("StoredAudit"), "example": examples.RESULT_LINES}
    return {
        "description": "One trail a line, in the order of submission.",
        "content": {JSON_LINES[0]: lines},
    }


def describe(app: FastAPI) -> None:
    """Let `app` serve the document with everything that its routes refer to."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
    )
    _, definitions = models_json_schema(
        [
            (Record, "validation"),
            (StoredAudit, "serialization"),
            (ProblemDocument, "serialization"),
        ],
        ref_template=_COMPONENTS,
    )
    schemas = document["components"]["schemas"]
    schemas.update(definitions["$defs"])
    schemas["Record"]["additionalProperties"] = False
    fields = schemas["Record"]["properties"]
    fields |= {alias: fields[name] for name, alias in ALIASES.items()}
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for schema in schemas.values():
        _move_parameters(schema)
    for operations in document["paths"].values():
        for operation in operations.values():
            _insert_examples(operation)
    return document


def _insert_examples(operation: dict[str, Any]) -> None:
    for answer in operation["responses"].values():
        for content in answer.get("content", {}).values():
            if _EXAMPLE_NAME in content:
                content["example"] = getattr(examples, content.pop(_EXAMPLE_NAME))


def _move_parameters(schema: dict[str, Any]) -> None:
    """Turn the parameters of a class's docstring into descriptions of its properties."""
    summary, _, parameters = schema.get("description", "").partition("\n\nParameters\n")
    if not parameters:
        return
    schema["description"] = summary
    for entry in _PARAMETER.finditer(parameters):
        for name in entry["names"].split(", "):
            if name in schema["properties"]:
                text = " ".join(entry["text"].split())
                schema["properties"][name].setdefault("description", text)


def _reference(model: str) -> dict[str, str]:
    return {"$ref": _COMPONENTS.format(model=model)}
