"""`halldetect keys`: make, list, rotate and revoke API keys, on the database itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from rich.table import Table
from rich.text import Text
from sqlalchemy.orm import Session

from cli.consoles import results_console, tell
from cli.database import open_database
from cli.moments import moment_text
from cli.printable import printable
from db.api_keys import StoredKey, create_key, list_keys, revoke_key, rotate_key
from db.engine import CommitUnknown, session_factory, transaction
from db.scopes import Scope
from halldetect.errors import InputError
from halldetect.settings import Settings

_EXIT_DONE = 0


def create(name: str, scopes: Sequence[Scope], settings: Settings, *, as_json: bool) -> int:
    """Make a key and print its secret, alone on standard output; it is never shown again.

    Raises
    ------
    InputError
        The name cannot be used.
    UnavailableError
        The database cannot be reached.
    """
    with _transaction(settings) as session:
        key, secret = create_key(session, name, scopes)
    noun = "scope" if len(key.scopes) == 1 else "scopes"
    told = f"key {key.id} ({key.name}) has the {noun} {', '.join(key.scopes)}"
    return _hand_over(key, secret, told, as_json=as_json)


def rotate(key_id: int, overlap: timedelta, settings: Settings, *, as_json: bool) -> int:
    """Give a key a new secret and print it, alone on standard output; it is never shown again.

    Raises
    ------
    InputError
        There is no such key, or it was revoked.
    UnavailableError
        The database cannot be reached.
    """
    with _transaction(settings) as session:
        rotated = rotate_key(session, key_id, overlap)
    if rotated is None:
        raise _no_key(key_id)
    key, secret = rotated
    until = f"until {_moment(key.older_secrets_until)}" if overlap else "no longer"
    told = f"key {key.id} ({key.name}) has a new secret; what it had before is accepted {until}"
    return _hand_over(key, secret, told, as_json=as_json)


@contextmanager
def _transaction(settings: Settings) -> Iterator[Session]:
    """Open a transaction; whoever changes keys is told when nobody knows what became of it."""
    try:
        with open_database(settings) as engine, transaction(session_factory(engine)) as session:
            yield session
    except CommitUnknown as error:
        raise CommitUnknown(
            f"{error}; whether it did what was asked is not known: `halldetect keys list` shows it"
        ) from None


def _hand_over(key: StoredKey, secret: str, told: str, *, as_json: bool) -> int:
    """Print a secret, after it was committed."""
    if as_json:
        _print_json({**_as_object(key), "secret": secret})
        return _EXIT_DONE
    sys.stdout.write(f"{secret}\n")
    sys.stdout.flush()
    tell(f"{told}; its secret is not shown again")
    return _EXIT_DONE


def _no_key(key_id: int) -> InputError:
    return InputError(f"there is no key {key_id}; `halldetect keys list` shows those there are")


def show(settings: Settings, *, as_json: bool) -> int:
    """Print all keys, revoked ones too, without their secrets.

    Raises
    ------
    UnavailableError
        The database cannot be reached.
    """
    with _transaction(settings) as session:
        keys = list_keys(session)
    if as_json:
        _print_json({"items": [_as_object(key) for key in keys]})
    elif keys:
        results_console().print(_table(keys))
    else:
        results_console().print("there are no keys; `halldetect keys create` makes one")
    return _EXIT_DONE


def revoke(key_id: int, settings: Settings, *, as_json: bool) -> int:
    """Let a key be accepted no longer, from the next request on.

    Raises
    ------
    InputError
        There is no such key.
    UnavailableError
        The database cannot be reached.
    """
    with _transaction(settings) as session:
        key = revoke_key(session, key_id)
    if key is None:
        raise _no_key(key_id)
    if as_json:
        _print_json(_as_object(key))
    else:
        results_console().print(
            f"key {key.id} ({printable(key.name)}) is revoked since {_moment(key.revoked_at)}"
        )
    return _EXIT_DONE


def _table(keys: Sequence[StoredKey]) -> Table:
    table = Table()
    table.add_column("key", justify="right")
    for title in ("name", "scopes", "created", "last used", "old secrets until", "revoked"):
        table.add_column(title, overflow="fold")
    for key in keys:
        table.add_row(
            str(key.id),
            Text(printable(key.name)),
            ", ".join(key.scopes),
            _moment(key.created_at),
            _moment(key.last_used_at),
            _moment(key.older_secrets_until),
            _moment(key.revoked_at),
            style="dim" if key.revoked_at else None,
        )
    return table


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else moment_text(moment)


def _as_object(key: StoredKey) -> dict[str, Any]:
    return {
        "id": str(key.id),
        "name": key.name,
        "scopes": list(key.scopes),
        **{
            field: None if moment is None else moment.isoformat()
            for field, moment in (
                ("created_at", key.created_at),
                ("last_used_at", key.last_used_at),
                ("older_secrets_until", key.older_secrets_until),
                ("revoked_at", key.revoked_at),
            )
        },
    }


def _print_json(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
