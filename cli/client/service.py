"""The API of the service, as the client commands use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.metadata import version
from types import TracebackType
from typing import Any, NoReturn, Self

import httpx

from cli.client.address import api_address
from cli.client.answers import Answer, read_answer
from cli.client.errors import ServiceError, ServiceUnavailable
from cli.client.patience import outlast, telling_of_silence
from cli.client.refusals import may_pass, refusal, unavailable
from cli.consoles import tell
from halldetect.errors import InputError
from halldetect.loopback import is_loopback
from halldetect.settings import Settings

_TIMEOUT = httpx.Timeout(30.0, connect=5.0)
# A server closes an idle connection after some seconds, and would lose what is sent just then.
_LIMITS = httpx.Limits(keepalive_expiry=2.0)
# Every line of an upload is checked and stored before the answer: the more of them, the longer it
# takes. The rate is far below that of a service with nothing else to do; even a small one may
# have to wait for a lock.
_UPLOAD_SECONDS, _UPLOAD_BYTES_A_SECOND, _LONGEST_UPLOAD_SECONDS = 180.0, 100_000, 1800.0
_PAGE = 1000
_API_KEY = re.compile(r"hd_[A-Za-z0-9_-]+")


class _Page(Answer):
    items: list[dict[str, Any]]
    next_cursor: str | None


class Service:
    """A running service; use it as a context.

    Every method raises `InputError` for what the service refuses, `ServiceUnavailable` when it
    does not answer, and `ServiceError` when it fails. A request that is not answered is sent again
    for a minute, if that does no harm: see `outlast`.

    Parameters
    ----------
    address : str
        Of its API, without a slash at the end.
    api_key : str, optional
        The secret to send; None sends none.
    """

    def __init__(self, address: str, api_key: str | None = None) -> None:
        self.address = address
        self._say: Callable[[str], None] = tell
        self._has_key = api_key is not None
        headers = {"User-Agent": f"halldetect/{version('halldetect')}"}
        if api_key is not None:
            headers["Authorization"] = f"Bearer {api_key}"
        self._client = httpx.Client(
            base_url=address,
            timeout=_TIMEOUT,
            limits=_LIMITS,
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

    @contextmanager
    def saying_to(self, say: Callable[[str], None]) -> Iterator[None]:
        """Tell `say` about pauses and silence, which would disturb what a display shows."""
        before, self._say = self._say, say
        try:
            yield
        finally:
            self._say = before

    def upload_batch(
        self,
        compressed: Iterable[bytes],
        *,
        size: int,
        idempotency_key: str,
        policy: str | None,
        priority: int | None,
    ) -> dict[str, Any]:
        """Send one batch, once, and return the service's description of it.

        The body can be read once: whoever has the file sends it again.

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
        with self._translated(), telling_of_silence(self.address, self._say) as move:
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
        return self._document(response)

    def batch(self, batch_id: int) -> dict[str, Any]:
        """Return the service's description of a batch."""
        return self._document(self._request("GET", f"/v1/batches/{batch_id}"))

    def cancel(self, batch_id: int) -> dict[str, Any]:
        """Stop what is waiting of a batch and return its description."""
        path = f"/v1/batches/{batch_id}/cancel"
        return self._document(self._request("POST", path, is_repeatable=True))

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
            document = self._document(self._request("GET", path, params=query))
            page = read_answer(_Page, document, about="a list")
            yield from page.items
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    @contextmanager
    def results(self, batch_id: int, *, with_matrix: bool) -> Iterator[Iterator[bytes]]:
        """Open the results of a batch: JSONL, in pieces of any size."""
        path = f"/v1/batches/{batch_id}/results"
        options = {"include": "matrix"} if with_matrix else {}
        request = self._client.build_request("GET", path, params=options)
        response = self._answer(request, is_repeatable=True, stream=True)
        with self._translated(), closing(response):
            if not response.is_success:
                self._refuse(response)
            yield response.iter_bytes()

    def _request(
        self, method: str, path: str, *, is_repeatable: bool = False, **options: Any
    ) -> httpx.Response:
        """Send a request; one that changes something is sent again only if told that it may be."""
        request = self._client.build_request(method, path, **options)
        return self._answer(request, is_repeatable=is_repeatable or method == "GET")

    def _answer(
        self, request: httpx.Request, *, is_repeatable: bool, stream: bool = False
    ) -> httpx.Response:
        def ask() -> httpx.Response:
            with self._translated(), telling_of_silence(self.address, self._say):
                response = self._client.send(request, stream=stream)
                if not response.is_success:
                    with closing(response):
                        response.read()
            if may_pass(response):
                raise unavailable(response, self.address)
            return response

        return outlast(ask, self._say, is_repeatable=is_repeatable)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn the faults of a connection into errors that name the service."""
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise ServiceUnavailable(
                f"no service answers at {self.address} ({error}): is it running?",
                nothing_done=True,
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

    def _refuse(self, response: httpx.Response) -> NoReturn:
        raise refusal(response, self.address, has_key=self._has_key)


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
