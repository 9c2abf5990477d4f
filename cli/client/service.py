"""The API of the service, as the client commands use it; its problem documents become errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.metadata import version
from types import TracebackType
from typing import Any, NoReturn, Self

import httpx

from cli.client.address import api_address
from cli.client.errors import BatchRefused, LineFault, ServiceError, ServiceUnavailable
from cli.client.patience import in_turn, seconds_asked_for, telling_of_silence
from halldetect.errors import InputError
from halldetect.loopback import is_loopback
from halldetect.settings import Settings

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
# Every line of an upload is checked and stored before the answer: the more of them, the longer it
# takes. The rate is far below that of a service with nothing else to do; even a small one may
# have to wait for a lock.
_UPLOAD_SECONDS, _UPLOAD_BYTES_A_SECOND, _LONGEST_UPLOAD_SECONDS = 180.0, 100_000, 1800.0
_PAGE = 1000
_PROBLEM = "application/problem+json"
_API_KEY = re.compile(r"hd_[A-Za-z0-9_-]+")
_MAY_PASS = {
    httpx.codes.REQUEST_TIMEOUT,
    httpx.codes.TOO_MANY_REQUESTS,
    httpx.codes.BAD_GATEWAY,
    httpx.codes.SERVICE_UNAVAILABLE,
    httpx.codes.GATEWAY_TIMEOUT,
}


class Service:
    """A running service; use it as a context.

    Every method raises `InputError` for what the service refuses, `ServiceUnavailable` when it
    does not answer, and `ServiceError` when it fails.

    Parameters
    ----------
    address : str
        Of its API, without a slash at the end.
    api_key : str, optional
        The secret to send; None sends none.
    """

    def __init__(self, address: str, api_key: str | None = None) -> None:
        self.address = address
        self._has_key = api_key is not None
        headers = {"User-Agent": f"halldetect/{version('halldetect')}"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        self._client = httpx.Client(
            base_url=address,
            timeout=_TIMEOUT,
            headers=headers,
            # A proxy for the outer world would not find a service on this machine.
            trust_env=not is_loopback(httpx.URL(address).host),
        )

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the service that `settings` lead to, with the key that they hold.

        Raises
        ------
        InputError
            The address is none, or the key is none.
        ServiceError
            No address is set and no stack runs here.
        """
        address, api_key = api_address(settings), _api_key(settings)
        return cls(address) if api_key is None else cls(address, api_key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def upload_batch(
        self,
        compressed: Iterable[bytes],
        *,
        size: int,
        idempotency_key: str,
        policy: str | None,
        priority: int | None,
    ) -> dict[str, Any]:
        """Send one batch and return the service's description of it.

        Parameters
        ----------
        compressed : iterable of bytes
            JSONL, compressed by gzip.
        size : int
            Bytes of it before the compression, which tell how long the answer may take.
        idempotency_key : str
            The same for every try at the same upload, so that two of them make one batch.
        policy, priority : optional
            For lines that have none.

        Raises
        ------
        BatchRefused
            Lines of it cannot be used.
        """
        options = {"unknown_fields": "ignore", "policy": policy, "priority": priority}
        with self._translated(), telling_of_silence(self.address) as move:
            # The body can be read once: after a 429, whoever has the file sends it again.
            response = self._client.post(
                "/v1/batches",
                params={name: value for name, value in options.items() if value is not None},
                headers={
                    "Content-Type": "application/x-ndjson",
                    "Content-Encoding": "gzip",
                    "Idempotency-Key": idempotency_key,
                },
                content=_noted(compressed, move),
                timeout=_upload_timeout(size),
            )
        if response.status_code == httpx.codes.CONFLICT:  # an earlier try is still being stored
            raise ServiceUnavailable(_reason(response), seconds_asked_for(response) or 0.0)
        return self._document(response)

    def batch(self, batch_id: int) -> dict[str, Any]:
        """Return the service's description of a batch."""
        return self._document(self._request("GET", f"/v1/batches/{batch_id}"))

    def cancel(self, batch_id: int) -> dict[str, Any]:
        """Stop what is waiting of a batch and return its description."""
        return self._document(self._request("POST", f"/v1/batches/{batch_id}/cancel"))

    def retry_audit(self, audit_id: int) -> dict[str, Any]:
        """Put a failed audit back into the line; return its id and its new status."""
        return self._document(self._request("POST", f"/v1/audits/{audit_id}/retry"))

    def retry_batch(self, batch_id: int) -> dict[str, Any]:
        """Put the failed audits of a batch back into the line; return how many there were."""
        return self._document(self._request("POST", f"/v1/batches/{batch_id}/retry"))

    def create_webhook(self, url: str) -> dict[str, Any]:
        """Make a webhook and return its description, with its secret."""
        return self._document(self._request("POST", "/v1/webhooks", json={"url": url}))

    def webhooks(self) -> Iterator[dict[str, Any]]:
        """Yield the descriptions of all webhooks, newest first."""
        return self._items("/v1/webhooks", {})

    def rotate_webhook(self, webhook_id: int, overlap_seconds: int) -> dict[str, Any]:
        """Replace the secret of a webhook; return the new one, and how long the old one signs."""
        path = f"/v1/webhooks/{webhook_id}/rotate"
        return self._document(
            self._request("POST", path, json={"overlap_seconds": overlap_seconds})
        )

    def delete_webhook(self, webhook_id: int) -> None:
        """Delete a webhook."""
        response = self._request("DELETE", f"/v1/webhooks/{webhook_id}")
        if response.status_code != httpx.codes.NO_CONTENT:
            self._refuse(response)

    def audits(self, **filters: str | int) -> Iterator[dict[str, Any]]:
        """Yield the summaries of all audits that the filters of ``GET /v1/audits`` let through."""
        return self._items("/v1/audits", filters)

    def _items(self, path: str, filters: Mapping[str, str | int]) -> Iterator[dict[str, Any]]:
        """Yield what a list holds, page after page."""
        query = {**filters, "limit": _PAGE}
        while True:
            page = self._document(self._request("GET", path, params=query))
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]

    @contextmanager
    def results(self, batch_id: int, *, with_matrix: bool) -> Iterator[Iterator[bytes]]:
        """Open the results of a batch: JSONL, in pieces of any size."""
        path = f"/v1/batches/{batch_id}/results"
        options = {"include": "matrix"} if with_matrix else {}
        request = self._client.build_request("GET", path, params=options)
        with self._translated(), closing(self._in_turn(request, stream=True)) as response:
            if not response.is_success:
                response.read()
                self._refuse(response)
            yield response.iter_bytes()

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        with self._translated():
            return self._in_turn(self._client.build_request(method, path, **options))

    def _in_turn(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        def ask() -> httpx.Response:
            with telling_of_silence(self.address):
                return self._client.send(request, stream=stream)

        return in_turn(ask, self.address)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the faults of a connection into errors that name the service."""
        try:
            yield
        except httpx.ConnectError as error:
            raise ServiceUnavailable(
                f"no service answers at {self.address} ({error}): is it running?"
            ) from None
        except httpx.TimeoutException:
            raise ServiceUnavailable(f"{self.address}: no answer in time") from None
        except httpx.TransportError as error:
            raise ServiceUnavailable(f"{self.address}: the connection was lost ({error})") from None

    def _document(self, response: httpx.Response) -> dict[str, Any]:
        if not response.is_success:
            self._refuse(response)
        try:
            document = response.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise ServiceError(f"{self.address}: what answers there is no HallDetect service")
        return document

    def _key_advice(self) -> str:
        if self._has_key:
            return "HALLDETECT_API_KEY is not accepted"
        return "set HALLDETECT_API_KEY to one; `halldetect keys create` makes it"

    def _refuse(self, response: httpx.Response) -> NoReturn:
        problem = _problem(response)
        reason = _reason(response)
        if problem is not None and response.status_code == httpx.codes.UNAUTHORIZED:
            raise InputError(f"{self.address}: {reason} ({self._key_advice()})")
        if problem is not None and response.status_code == httpx.codes.FORBIDDEN:
            raise InputError(f"{self.address}: {reason} (HALLDETECT_API_KEY)")
        if response.status_code in _MAY_PASS:
            asked_for = seconds_asked_for(response) or 0.0
            raise ServiceUnavailable(f"{self.address}: {reason}", asked_for)
        if problem is None or response.is_server_error:
            raise ServiceError(f"{self.address}: {reason}")
        faults = _line_faults(problem)
        if faults:
            raise BatchRefused(reason, faults, int(problem.get("total_errors", len(faults))))
        raise InputError(reason)


def _noted(pieces: Iterable[bytes], move: Callable[[], None]) -> Iterator[bytes]:
    """Yield the pieces of a body, telling each time that it moves."""
    for piece in pieces:
        move()
        yield piece
    move()


def _upload_timeout(size: int) -> httpx.Timeout:
    seconds = _UPLOAD_SECONDS + size / _UPLOAD_BYTES_A_SECOND
    return httpx.Timeout(60.0, connect=5.0, read=min(seconds, _LONGEST_UPLOAD_SECONDS))


def _api_key(settings: Settings) -> str | None:
    """Return the secret that is set; an empty variable sets none."""
    secret = "" if settings.api_key is None else settings.api_key.get_secret_value().strip()
    if secret and not _API_KEY.fullmatch(secret):
        # It may be another secret by mistake: it is neither sent nor shown.
        raise InputError("HALLDETECT_API_KEY is no API key: they begin with hd_")
    return secret or None


def _problem(response: httpx.Response) -> dict[str, Any] | None:
    """Return the problem document of a response, or None if it is another server's answer."""
    if not response.headers.get("Content-Type", "").startswith(_PROBLEM):
        return None
    try:
        problem = response.json()
    except ValueError:
        return None
    return problem if isinstance(problem, dict) else None


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
        LineFault(int(fault["line"]), str(fault["message"]))
        for fault in (listed if isinstance(listed, list) else [])
        if isinstance(fault, dict) and "line" in fault and "message" in fault
    ]
