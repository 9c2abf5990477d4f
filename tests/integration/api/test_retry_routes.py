import pytest
import redis
from sqlalchemy import text

FAIL = (
    "UPDATE halldetect.audits SET status = 'failed', error = 'odd', finished_at = now(),"
    " faults = 3 WHERE line = ANY(:lines)"
)


@pytest.fixture
def batch(upload, record):
    """A batch of three, two of which failed; audits 1, 2 and 3."""
    return upload(record("a"), record("b"), record("c")).json()["id"]


@pytest.fixture
def wake_ups(redis_url):
    def queued():
        with redis.Redis.from_url(redis_url) as broker:
            return broker.llen("extraction"), broker.llen("nli")

    return queued


def statuses(sessions):
    with sessions() as session:
        return session.scalars(text("SELECT status FROM halldetect.audits ORDER BY id")).all()


def test_failed_audits_are_listed_with_reason_faults_and_attempts(client, batch, execute):
    execute(FAIL, lines=[1, 3])
    page = client.get("/v1/audits", params={"status": "failed", "limit": 1}).json()
    [item] = page["items"]
    assert (item["custom_id"], item["error"], item["faults"], item["attempts"]) == (
        *("c", "odd"),
        *(3, 0),
    )
    query = {"status": "failed", "limit": 1, "cursor": page["next_cursor"]}
    page = client.get("/v1/audits", params=query).json()
    assert ([item["custom_id"] for item in page["items"]], page["next_cursor"]) == (["a"], None)


def test_an_audit_is_put_back_and_a_worker_woken(client, batch, execute, sessions, wake_ups):
    execute(FAIL, lines=[1, 3])
    before = wake_ups()
    answer = client.post("/v1/audits/1/retry")
    assert answer.status_code == 202
    assert answer.json() == {"id": "1", "custom_id": "a", "status": "queued"}
    assert statuses(sessions) == ["queued", "queued", "failed"]
    assert wake_ups() == (before[0] + 1, before[1])


def test_the_failed_audits_of_a_batch_are_put_back(client, batch, execute, sessions, wake_ups):
    execute(FAIL, lines=[1, 3])
    before = wake_ups()
    answer = client.post(f"/v1/batches/{batch}/retry")
    assert answer.status_code == 202
    assert answer.json() == {"id": batch, "retried": 2, "queued": 2, "extracted": 0}
    assert statuses(sessions) == ["queued"] * 3
    assert wake_ups() == (before[0] + 1, before[1])


@pytest.mark.parametrize("address", ["/v1/audits/2/retry", "/v1/batches/1/retry"])
def test_where_nothing_failed_nothing_is_retried(client, batch, address, sessions, wake_ups):
    before = wake_ups()
    answer = client.post(address)
    assert answer.status_code == 409
    assert answer.json()["type"] == "urn:halldetect:problem:nothing-failed"
    assert statuses(sessions) == ["queued"] * 3
    assert wake_ups() == before


@pytest.mark.parametrize("address", ["/v1/audits/99/retry", "/v1/batches/99/retry"])
def test_what_is_not_there_is_not_retried(client, address):
    assert client.post(address).status_code == 404


def test_a_query_is_refused(client, batch, execute, sessions):
    execute(FAIL, lines=[1])
    assert client.post("/v1/audits/1/retry?force=1").status_code == 422
    assert statuses(sessions)[0] == "failed"
