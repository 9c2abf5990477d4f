"""Lists: filters, and pages that neither skip nor repeat."""

from __future__ import annotations

import pytest


@pytest.fixture
def ids(client):
    def listed(**filters):
        answer = client.get("/v1/audits", params=filters)
        assert answer.status_code == 200, answer.text
        return [int(item["id"]) for item in answer.json()["items"]]

    return listed


def pages(client, path, **params):
    cursor = {}
    while True:
        page = client.get(path, params={**params, **cursor}).json()
        yield page["items"]
        if page["next_cursor"] is None:
            return
        cursor = {"cursor": page["next_cursor"]}


def test_pages_hold_each_audit_once_while_others_arrive(client, upload, record):
    upload(*(record(str(number)) for number in range(250)))  # all of one moment
    seen = []
    for page in pages(client, "/v1/audits", limit=50):
        seen += [item["custom_id"] for item in page]
        client.post("/v1/audits", json=record("late"))
    assert seen == [str(number) for number in reversed(range(250))]


def test_pages_of_large_batches_end_early_and_hold_each_batch_once(
    client, upload, record, monkeypatch
):
    monkeypatch.setattr("db.batches._MOST_COUNTED_A_PAGE", 5)
    for size in (2, 3, 9, 1, 4, 2):
        upload(*(record(str(number)) for number in range(size)))
    listed = [[item["total"] for item in page] for page in pages(client, "/v1/batches", limit=3)]
    assert listed == [[2], [4, 1], [9], [3, 2]]
    assert [len(page) for page in pages(client, "/v1/batches", limit=1)] == [1] * 6


def test_pages_of_one_batch_are_in_the_same_order(client, upload, record):
    upload(*(record(f"before {number}") for number in range(3)))
    upload(*(record(str(number)) for number in range(5)))
    upload(record("after"))
    listed = [
        [item["custom_id"] for item in page]
        for page in pages(client, "/v1/audits", limit=2, batch_id=2)
    ]
    assert listed == [["4", "3"], ["2", "1"], ["0"]]


def test_a_full_last_page_has_no_cursor(client, upload, record):
    upload(*(record(str(number)) for number in range(4)))
    assert [len(page) for page in pages(client, "/v1/audits", limit=2)] == [2, 2]


def test_filters(client, upload, record, execute, ids):
    upload(record("a"), record("b", policy="paper"))
    upload(record("a"), record("c"))
    client.post("/v1/audits", json=record("a"))
    execute("UPDATE halldetect.audits SET status='cancelled', finished_at=now() WHERE id = 4")
    execute(
        "UPDATE halldetect.audits SET status='completed', outcome='scored', fedscore=0.9,"
        " label='hallucinated', supported=1, contradicted=1, unsupported=0, finished_at=now()"
        " WHERE id = 1"
    )
    execute("UPDATE halldetect.audits SET submitted_at='2026-03-01T12:00:00Z' WHERE id = 3")
    assert ids() == [5, 4, 3, 2, 1]
    assert ids(batch_id=2) == [4, 3]
    assert ids(batch_id=99) == []
    assert ids(status="cancelled") == [4]
    assert ids(status="queued") == [5, 3, 2]
    assert ids(label="hallucinated") == [1]
    assert ids(outcome="scored") == [1]
    assert ids(policy="paper") == [2]
    assert ids(policy="none") == []
    assert ids(custom_id="a") == [5, 3, 1]
    assert ids(custom_id="a", batch_id=1) == [1]
    assert ids(submitted_before="2026-03-01T12:00:01Z") == [3]
    assert ids(submitted_before="2026-03-01T12:00:00Z") == []
    assert ids(
        submitted_from="2026-03-01T14:00:00+02:00", submitted_before="2026-03-02T00:00Z"
    ) == [3]
    assert ids(submitted_from="0001-01-01T00:00:00+14:00") == [5, 4, 3, 2, 1]
    assert ids(submitted_from="9999-12-31T23:59:59-14:00") == []
    (item,) = client.get("/v1/audits", params={"label": "hallucinated"}).json()["items"]
    assert (item["fedscore"], item["policy"], item["contradicted"]) == (0.9, "embedded", 1)


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": "NaN"}, "limit"),
        ({"limit": "1e3"}, "limit"),
        ({"status": "done"}, "status"),
        ({"label": ""}, "label"),
        ({"batch_id": 0}, "batch_id"),
        ({"batch_id": 2**63}, "batch_id"),
        ({"batch_id": "x"}, "batch_id"),
        ({"custom_id": "\0"}, "custom_id"),
        ({"policy": "a\0"}, "policy"),
        ({"submitted_from": "yesterday"}, "submitted_from"),
        ({"submitted_from": "2026-03-01T00:00:00"}, "submitted_from"),
        ({"lable": "faithful"}, "lable"),
        ({"status": ["queued", "failed"]}, "status"),
        ({"cursor": "x" * 300}, "cursor"),
    ],
)
def test_bad_filters_are_refused(params, named, make_client):
    answer = make_client().get("/v1/audits", params=params)
    assert answer.status_code == 422
    assert f"query {named}: " in answer.json()["detail"]


def test_cursors_of_other_lists_or_none_are_refused(client, upload, record):
    upload(*(record(str(number)) for number in range(3)))
    upload(record("x"))
    of_all = client.get("/v1/audits", params={"limit": 1}).json()["next_cursor"]
    of_batches = client.get("/v1/batches", params={"limit": 1}).json()["next_cursor"]
    for path, params in (
        ("/v1/audits", {"cursor": of_batches}),
        ("/v1/batches", {"cursor": of_all}),
        ("/v1/audits", {"cursor": of_all, "status": "queued"}),
        ("/v1/audits", {"cursor": "nonsense"}),
        ("/v1/audits", {"cursor": ""}),
        ("/v1/audits", {"cursor": of_all[:-1]}),
    ):
        answer = client.get(path, params=params)
        assert answer.status_code == 400, (path, params)
        assert answer.json()["type"] == "urn:halldetect:problem:invalid-cursor"
    smaller = client.get("/v1/audits", params={"cursor": of_all, "limit": 2}).json()
    assert [item["id"] for item in smaller["items"]] == ["3", "2"]


def test_batches_are_listed_newest_first(client, upload, record):
    for number in range(5):
        upload(record(str(number)))
    found = [[item["id"] for item in page] for page in pages(client, "/v1/batches", limit=2)]
    assert found == [["5", "4"], ["3", "2"], ["1"]]
