"""What the service says instead of an answer: its problem documents become errors."""

from __future__ import annotations

from typing import Any

import httpx

from cli.client.errors import BatchRefused, LineFault, ServiceError, ServiceUnavailable
from cli.client.patience import seconds_asked_for
from halldetect.errors import HallDetectError, InputError

_PROBLEM = "application/problem+json"
_MAY_PASS = {
    httpx.codes.REQUEST_TIMEOUT,
    httpx.codes.TOO_MANY_REQUESTS,
    httpx.codes.BAD_GATEWAY,
    httpx.codes.SERVICE_UNAVAILABLE,
    httpx.codes.GATEWAY_TIMEOUT,
}
_OURS = "urn:halldetect:problem:"
# Answers by which the service tells that a request had no effect.
_NOTHING_DONE = {f"{_OURS}{kind}" for kind in ("unavailable", "too-slow")}
_STILL_RUNNING = f"{_OURS}idempotency-key-in-progress"  # an earlier try


def may_pass(response: httpx.Response) -> bool:
    """Return whether the same request may be answered otherwise a little later."""
    return response.status_code in _MAY_PASS or _kind(response) == _STILL_RUNNING


def unavailable(response: httpx.Response, address: str) -> ServiceUnavailable:
    """Return the error of a response for which `may_pass` holds.

    Parameters
    ----------
    response : Response
        What came instead of an answer.
    address : str
        Of the service, for the message.
    """
    # What is refused with 429 was not looked at, whoever says so.
    is_refused = response.status_code == httpx.codes.TOO_MANY_REQUESTS
    return ServiceUnavailable(
        f"{address}: {_reason(response)}",
        seconds_asked_for(response) or 0.0,
        nothing_done=is_refused or _kind(response) in _NOTHING_DONE,
    )


def refusal(response: httpx.Response, address: str, *, has_key: bool) -> HallDetectError:
    """Return the error that a response without success stands for.

    Parameters
    ----------
    response : Response
        What came instead of an answer.
    address : str
        Of the service, for the message.
    has_key : bool
        Whether an API key was sent.
    """
    problem = _problem(response)
    reason = _reason(response)
    if problem is not None and response.status_code == httpx.codes.UNAUTHORIZED:
        return InputError(f"{address}: {reason} ({_key_advice(has_key)})")
    if problem is not None and response.status_code == httpx.codes.FORBIDDEN:
        return InputError(f"{address}: {reason} (HALLDETECT_API_KEY)")
    if may_pass(response):
        return unavailable(response, address)
    if problem is None or response.is_server_error:
        return ServiceError(f"{address}: {reason}")
    faults = _line_faults(problem)
    if faults:
        total = problem.get("total_errors")
        return BatchRefused(reason, faults, total if isinstance(total, int) else len(faults))
    return InputError(reason)


def _key_advice(has_key: bool) -> str:
    if has_key:
        return "HALLDETECT_API_KEY is not accepted"
    return "set HALLDETECT_API_KEY to one; `halldetect keys create` makes it"


def _problem(response: httpx.Response) -> dict[str, Any] | None:
    """Return the problem document of a response, or None if it is another server's answer."""
    if not response.headers.get("Content-Type", "").startswith(_PROBLEM):
        return None
    try:
        problem = response.json()
    except ValueError:
        return None
    return problem if isinstance(problem, dict) else None


def _kind(response: httpx.Response) -> str | None:
    """Return what tells our problems apart, or None where there is none."""
    if response.is_success:
        return None
    problem = _problem(response)
    return None if problem is None else str(problem.get("type"))


def _reason(response: httpx.Response) -> str:
    problem = _problem(response)
    if problem is None:
        return (
            f"answered {response.status_code} {response.reason_phrase} without saying why: is "
            "this the address of a HallDetect service?"
        )
    return str(problem.get("detail") or problem.get("title") or response.reason_phrase)


def _line_faults(problem: dict[str, Any]) -> list[LineFault]:
    """Return the faults of single lines that a problem document lists."""
    listed = problem.get("errors")
    return [
        LineFault(fault["line"], str(fault["message"]))
        for fault in (listed if isinstance(listed, list) else [])
        if isinstance(fault, dict) and isinstance(fault.get("line"), int) and "message" in fault
    ]
