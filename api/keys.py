"""Who asks, and whether they may: the one place where API keys are checked.

A route says what it needs by taking a `Submitter`, `Reader`, `Reviewer` or `Administrator`, as its
first parameter: nothing of a request is read before it is known who sends it, and no body before
it is known what that key is for.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import Scope as ConnectionScope

from api.dependencies import Service, ServiceOf
from api.problems import Kind, Problem
from db.api_keys import SecretReplaced, StoredKey, find_key, note_use, secret_digest
from db.ownership import UNRESTRICTED, Caller
from db.scopes import Scope
from halldetect.loopback import is_remote_address
from halldetect.settings import Settings

_bearer = HTTPBearer(
    scheme_name="API key",
    bearerFormat="hd_...",
    description="A key that `halldetect keys create` made. Where the API listens on loopback only, "
    "it asks for none unless HALLDETECT_API_KEYS_REQUIRED says so.",
    auto_error=False,
)
_CHALLENGE = 'Bearer realm="halldetect"'


def authenticate(
    request: Request,
    service: ServiceOf,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> StoredKey | None:
    """Return the key that a request comes with; None where the API asks for none.

    Raises
    ------
    Problem
        401: there is no key, or it is none of ours, or it was revoked, or its secret replaced.
        429: too many requests came with it, or too many wrong keys from where it comes from.
    """
    if not asks_for_keys(request.scope, service.settings):
        return None
    if credentials is None:
        raise _unauthorized("send an API key: Authorization: Bearer hd_...")
    secret = credentials.credentials
    digest, address = secret_digest(secret), request.client.host if request.client else ""
    service.request_rates.admit(digest, address)
    try:
        key = _look_up(service, secret)
    except SecretReplaced as replaced:
        service.request_rates.note_found(digest)
        raise _unauthorized(
            f"the secret of this API key was replaced, and is not accepted since "
            f"{replaced.expired_at:%Y-%m-%d %H:%M} UTC: use the new one",
            error="invalid_token",
        ) from None
    if key is None:
        service.request_rates.note_unknown(address)
        raise _unauthorized("this is no API key of this service", error="invalid_token")
    service.request_rates.note_found(digest)
    if key.revoked_at is not None:
        raise _unauthorized(
            f"this API key was revoked on {key.revoked_at:%Y-%m-%d}", error="invalid_token"
        )
    request.state.api_key_id = key.id  # for the access log
    return key


def _look_up(service: Service, secret: str) -> StoredKey | None:
    with service.transaction() as session:
        key = find_key(session, secret)
        if key is not None and key.revoked_at is None:
            note_use(session, key.id)
        return key


def asks_for_keys(scope: ConnectionScope, settings: Settings) -> bool:
    """Tell whether a request needs a key, by the settings or by the address it arrived at."""
    if settings.asks_for_api_keys():
        return True
    # Another ASGI server may listen elsewhere than our settings say.
    reached_at = scope.get("server")
    return reached_at is not None and is_remote_address(reached_at[0])


_KeyOf = Annotated[StoredKey | None, Depends(authenticate)]


def _submitter(key: _KeyOf) -> Caller:
    return _caller(key, Scope.SUBMIT)


def _reader(key: _KeyOf) -> Caller:
    return _caller(key, Scope.READ)


def _reviewer(key: _KeyOf) -> Caller:
    return _caller(key, Scope.REVIEW)


def _administrator(key: _KeyOf) -> Caller:
    return _caller(key, Scope.ADMIN)


Submitter = Annotated[Caller, Depends(_submitter)]
Reader = Annotated[Caller, Depends(_reader)]
Reviewer = Annotated[Caller, Depends(_reviewer)]
Administrator = Annotated[Caller, Depends(_administrator)]


def _caller(key: StoredKey | None, scope: Scope) -> Caller:
    if key is None:
        return UNRESTRICTED
    if not key.may(scope):
        raise Problem(
            403,
            Kind.FORBIDDEN,
            f"this API key lacks the scope {scope.value!r}; it has: {', '.join(key.scopes)}",
            headers={
                "WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope", '
                f'scope="{scope.value}"'
            },
        )
    return Caller(key.id, sees_all=key.may(Scope.ADMIN))


def _unauthorized(detail: str, *, error: str | None = None) -> Problem:
    challenge = _CHALLENGE if error is None else f'{_CHALLENGE}, error="{error}"'
    return Problem(401, Kind.UNAUTHORIZED, detail, headers={"WWW-Authenticate": challenge})
