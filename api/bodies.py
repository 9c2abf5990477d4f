"""What a request says its body is."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from fastapi import Depends, Request

from api.problems import Kind, Problem

JSON = "application/json"
JSON_LINES = (
    "application/jsonl",
    "application/x-ndjson",
    "application/x-jsonlines",
    "application/ndjson",
)


def check_media_type(request: Request, accepted: Collection[str]) -> None:
    """Refuse a body that is not of an accepted type, or not in UTF-8.

    Raises
    ------
    Problem
        Naming what is accepted.
    """
    media_type, _, parameters = request.headers.get("Content-Type", "").partition(";")
    if media_type.strip().lower() not in accepted:
        raise _unsupported(f"send the body as Content-Type: {' or '.join(accepted)}")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"').lower()
        if name.strip().lower() == "charset" and charset not in ("utf-8", "utf8"):
            raise _unsupported("send the body in UTF-8")


def content_encoding(request: Request, accepted: Collection[str]) -> str:
    """Return how the body is packed, ``identity`` if it is not.

    Raises
    ------
    Problem
        When it is packed in another way than those accepted.
    """
    encoding = request.headers.get("Content-Encoding", "").strip().lower() or "identity"
    if encoding != "identity" and encoding not in accepted:
        others = f", or as Content-Encoding: {' or '.join(accepted)}" if accepted else ""
        raise _unsupported(f"send the body as it is{others}")
    return encoding


async def _json_body(request: Request) -> bytes:
    check_media_type(request, [JSON])
    content_encoding(request, accepted=[])
    return await request.body()


JsonBody = Annotated[bytes, Depends(_json_body)]
"""The bytes of a JSON body; `BodyLimitMiddleware` bounds them."""


def _unsupported(detail: str) -> Problem:
    return Problem(415, Kind.UNSUPPORTED_MEDIA_TYPE, detail)
