"""A real API process with real servers, keys of every scope and something of every kind stored."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx
import pytest
from api_process import ApiProcess
from rescored_audits import rescorer
from stored_audits import complete_waiting

from db.api_keys import create_key
from db.engine import make_engine, session_factory
from db.scopes import Scope

RECORDS = (
    b'{"custom_id":"a","source":"The mill opened in 1900. It closed in 1950 after a fire.",'
    b'"response":"The mill opened in 1900. A dragon lives in it."}\n'
    b'{"custom_id":"b","source":"Nobody was hurt.","response":"Nobody was hurt."}\n'
)
_WAITING = b'{"source":"The mill is tall.","response":"It is tall."}'


@dataclass
class LiveApi:
    """Where the API is, who may do what, and ids of what is stored."""

    process: ApiProcess
    database: str
    keys: dict[str, str]
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.process.url

    def headers(self, who: str) -> dict[str, str]:
        secret = self.keys.get(who)
        return {} if secret is None else {"Authorization": f"Bearer {secret}"}


@pytest.fixture(scope="module")
def start_api(tmp_path_factory):
    """Return a function: addresses and settings to an API process that answers."""
    started = []

    def start(database_url, redis_url, **settings):
        folder = tmp_path_factory.mktemp("api")
        process = ApiProcess(folder, database_url, redis_url, **settings)
        started.append(process)
        process.wait_until_it_answers()
        return process

    yield start
    for process in started:
        process.kill()


@pytest.fixture(scope="module")
def redis_of_module(_valkey):
    """The address of the broker, whatever is in it."""
    return _valkey.url


@pytest.fixture(scope="module")
def live(module_database, redis_of_module, start_api, auditor):
    """The API with keys in force; what is stored belongs to the key `user`."""
    engine = make_engine(module_database)
    sessions = session_factory(engine)
    scopes = {
        "admin": [Scope.ADMIN],
        "user": [Scope.SUBMIT, Scope.READ, Scope.REVIEW],
        **{scope.value: [scope] for scope in (Scope.SUBMIT, Scope.READ, Scope.REVIEW)},
    }
    with sessions.begin() as session:
        keys = {who: create_key(session, who, which)[1] for who, which in scopes.items()}
    process = start_api(module_database, redis_of_module, api_keys_required=True)
    live = LiveApi(process, module_database, keys)
    for who in keys:  # a key that was seen before is not held up by wrong ones from its address
        httpx.get(f"{live.url}/v1/policies", headers=live.headers(who), timeout=60)
    with httpx.Client(base_url=live.url, headers=live.headers("user"), timeout=60) as client:
        live.ids |= _store_something_of_every_kind(client, engine, sessions, auditor)
    yield live
    engine.dispose()


def _store_something_of_every_kind(client, engine, sessions, auditor):
    lines = {"Content-Type": "application/jsonl"}
    batch = client.post("/v1/batches", content=RECORDS, headers=lines).json()["id"]
    complete_waiting(sessions, auditor)
    audit = client.get("/v1/audits", params={"custom_id": "a"}).json()["items"][0]["id"]
    claim = client.get(f"/v1/audits/{audit}").json()["claims"][1]["id"]
    said = {"reviewer": "ada", "verdict": "supported"}
    review = client.post(f"/v1/claims/{claim}/reviews", json=said).json()["id"]
    wanted = {"policy": "paper", "selection": {}}
    scoring = client.post("/v1/scorings", json=wanted).json()["id"]
    rescorer(engine).run(int(scoring))
    client.post("/v1/batches", content=_WAITING, headers=lines).raise_for_status()
    webhook = client.post("/v1/webhooks", json={"url": "https://hooks.example.org"}).json()["id"]
    return {
        "batch_id": batch,
        "audit_id": audit,
        "claim_id": claim,
        "review_id": review,
        "scoring_id": scoring,
        "webhook_id": webhook,
        "name": "paper",
    }
