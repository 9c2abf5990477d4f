"""Single audits in and out: what is stored comes back as it came, what cannot be is refused."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from sqlalchemy import text

JSON = {"Content-Type": "application/json"}
TEXTS = {"source": "The mill closed in 1998.", "response": "The mill closed."}


@pytest.fixture
def submit(client):
    def send(body, **headers):
        content = body if isinstance(body, bytes | str) else json.dumps(body)
        return client.post("/v1/audits", content=content, headers={**JSON, **headers})

    return send


def test_a_stored_audit_is_found_at_its_location(client, submit):
    answer = submit(
        {"custom_id": "a-1", "question": "When?", "metadata": {"k": [1, None]}, **TEXTS}
    )
    assert answer.status_code == 202
    assert answer.json() == {"id": "1", "custom_id": "a-1", "status": "queued"}
    assert answer.headers["Location"] == "/v1/audits/1"
    found = client.get(answer.headers["Location"])
    assert found.headers["Content-Type"] == "application/json"
    trail = found.json()
    assert (trail["id"], trail["custom_id"], trail["status"]) == ("1", "a-1", "queued")
    assert (trail["response"], trail["context"]) == (TEXTS["response"], "When?")
    assert trail["metadata"] == {"k": [1, None]}
    assert (trail["batch_id"], trail["line"], trail["claims"]) == (None, None, [])
    assert trail["policy"]["name"] == "embedded"
    assert trail["submitted_at"].endswith("Z")


def test_the_matrix_comes_only_when_asked_for(client, submit):
    submit(TEXTS)
    assert client.get("/v1/audits/1", params={"include": "matrix"}).status_code == 200
    refused = client.get("/v1/audits/1", params={"include": "everything"})
    assert refused.status_code == 422
    assert "query include" in refused.json()["detail"]


BAD_BODIES = [
    (rb'{"source":"Tea is hot \ud800.","response":"Tea."}', "field source.*position 11"),
    (rb'{"source":"A.","response":"A.","custom_id":"\udfff"}', "field custom_id.*position 0"),
    (rb'{"source":"A.","response":"A.","policy":"\udfff"}', "field policy.*position 0"),
    (rb'{"source":"A.","response":"A.","\ud800":1}', r"no field '\\ud800'"),
    (rb'{"source":"A.","response":"A.","metadata":{"\ud800":1}}', "field metadata.*position 0"),
    (rb'{"source":"One.\u0000Two.","response":"A."}', "field source.*NUL.*position 4"),
    (rb'{"source":"A.","response":"\u0000"}', "field response.*NUL.*position 0"),
    (rb'{"source":"A.","response":"A.","policy":"p\u0000"}', "field policy.*NUL"),
    (rb'{"source":"A.","response":"A.","metadata":{"a":["\u0000"]}}', "field metadata.*NUL"),
    (b'{"source":"A.","response":NaN}', "NaN is no JSON number"),
    (b'{"source":"A.","response":"A.","metadata":{"a":-Infinity}}', "-Infinity is no JSON"),
    (b'{"source":"A.","response":"A.","metadata":{"a":1e999}}', "field metadata.*too large"),
    (b'{"source":"A.","response":"A.","response":"B."}', "'response' is given twice"),
    (b'{"source":"A.","response":"A.","metadata":{"a":1,"a":1}}', "'a' is given twice"),
    (b'{"source":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    (b'{"source":"S.","response":"S.","metadata":{"x":' + b"9" * 10_000 + b"}}", "not valid"),
    (b'{"source":"S.","response":"S.","x":' + b"9" * 10_000 + b"}", "not valid JSON"),
    (b"\x89PNG\r\n\x1a\n\xff\xfe", "byte 1 is not UTF-8"),
    (b"", "column 1: not valid JSON"),
    (b'{"source":"A."', "not valid JSON"),
    (b'["A."]', "a JSON object, not list"),
    (b'{"source":"A."}', "field response: "),
    (b'{"source":" ","response":"A."}', "field source: is empty"),
    (b'{"source":"A.","response":"A.","priority":101}', "field priority"),
    (b'{"source":"A.","response":"A.","priority":"5"}', "field priority"),
    (b'{"source":"A.","response":"A.","id":"a","custom_id":"b"}', "alias id differ"),
    (b'{"source":"A.","response":"A.","claim_margin":0.1}', "no field 'claim_margin'"),
    (b'{"source":"A.","response":"A.","policy":"lenient"}', "no policy.*'lenient'.*paper"),
]


def test_a_bad_body_is_refused_and_named(submit, stored):
    for body, named in BAD_BODIES:
        answer = submit(body)
        assert answer.status_code == 422, body[:100]
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert len(answer.content) < 1000
        document = json.loads(answer.content.decode("utf-8"), parse_constant=pytest.fail)
        json.dumps(document, ensure_ascii=False).encode("utf-8")
        assert re.search(named, document["detail"], re.DOTALL), (body[:100], document["detail"])
    assert (stored("audits"), stored("documents")) == (0, 0)
    assert submit(TEXTS).status_code == 202


def test_a_proper_surrogate_pair_is_one_character(client, submit):
    assert submit(rb'{"source":"Tea \ud83c\udf75.","response":"\ud83c\udf75"}').status_code == 202
    assert client.get("/v1/audits/1").json()["response"] == "\U0001f375"


def test_other_media_types_are_refused(client, stored):
    body = b"\x89PNG\r\n\x1a\n\xff\xfe"
    for kind in ("image/png", "multipart/form-data; boundary=x", "text/plain", "", "json"):
        answer = client.post("/v1/audits", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 415
        assert "application/json" in answer.json()["detail"]
        assert b"\x89" not in answer.content
    assert stored("audits") == 0


def test_charset_and_encoding_are_read(submit):
    for headers, status in (
        ({"Content-Type": "application/json; charset=utf-8"}, 202),
        ({"Content-Type": 'Application/JSON;charset="UTF-8"'}, 202),
        ({"Content-Type": "application/json; charset=latin-1"}, 415),
        ({"Content-Encoding": "identity"}, 202),
        ({"Content-Encoding": "gzip"}, 415),
    ):
        assert submit(TEXTS, **headers).status_code == status, headers


def test_texts_come_back_to_the_byte(client, submit, sessions):
    source = (
        "Path C:\\200\\new\\table ends with \\N and a tab\there.\n\\.\nLast line.\r\n\u2028\x85"
    )
    response = "\\N\n\\.\n\\x41 \\'quoted\\' \u00ad\ufeff\x7f"
    assert submit({"source": source, "response": response}).status_code == 202
    assert client.get("/v1/audits/1").json()["response"] == response
    with sessions() as session:
        kept = session.execute(
            text(
                "SELECT d.text, a.response FROM halldetect.audits a"
                " JOIN halldetect.documents d ON d.id = a.document_id"
            )
        ).one()
    assert tuple(kept) == (source, response)


def test_metadata_of_any_json_comes_back_equal(client, submit):
    metadata = {
        "": None,
        "long": int("9" * 4_000),
        "small": 5e-324,
        "text": '\u2028\\u0041"',
        "deep": [[[[{"a": [1.5, -0.25, True]}]]]],
    }
    assert submit({**TEXTS, "metadata": metadata}).status_code == 202
    assert client.get("/v1/audits/1").json()["metadata"] == metadata


@pytest.mark.parametrize("field", ["source", "response"])
def test_a_text_over_the_limit_is_refused_with_the_limit(make_client, stored, field):
    client = make_client(max_characters=50)
    fits = {**TEXTS, field: "é" * 50}
    assert client.post("/v1/audits", json=fits).status_code == 202
    answer = client.post("/v1/audits", json={**TEXTS, field: "é" * 51})
    assert answer.status_code == 413
    detail = answer.json()["detail"]
    assert f"field {field}: has 51 characters" in detail
    assert "HALLDETECT_MAX_CHARACTERS" in detail
    assert stored("audits") == 1


def test_a_body_over_the_limit_is_refused_with_the_limit(make_client, stored):
    client = make_client(max_body_bytes=100)
    answer = client.post("/v1/audits", json={**TEXTS, "context": "x" * 100})
    assert answer.status_code == 413
    assert "more than 100 bytes (HALLDETECT_MAX_BODY_BYTES)" in answer.json()["detail"]
    assert stored("audits") == 0


def test_parameters_that_mean_nothing_are_refused(client, submit):
    assert client.post("/v1/audits?policy=paper", json=TEXTS).status_code == 422


NO_IDS = [
    *("3", "0", "01", "-1", "1.0", "1e0", "9223372036854775807", "9223372036854775808", "9" * 400),
    *("abc", "%31%00", "%D9%A1", "1%20", "%F0%28", "None"),
]


def test_unknown_ids_are_not_found(client, submit, upload):
    submit(TEXTS)
    upload(TEXTS)
    for path in ("audits/{}", "batches/{}", "batches/{}/results"):
        assert client.get(f"/v1/{path.format(1)}").status_code == 200
        for number in NO_IDS:
            answer = client.get(f"/v1/{path.format(number)}")
            assert answer.status_code == 404, (path, number)
            assert answer.json()["type"] == "urn:halldetect:problem:not-found"


def test_one_source_of_many_clients_is_one_document(client, stored):
    def send(number):
        return client.post("/v1/audits", json={**TEXTS, "response": f"It closed {number}."})

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(send, range(20)))
    assert [answer.status_code for answer in answers] == [202] * 20
    assert len({answer.json()["id"] for answer in answers}) == 20
    assert (stored("documents"), stored("audits")) == (1, 20)


def test_a_worker_is_woken_with_the_id(client, submit, redis_url):
    submit(TEXTS)
    with redis.Redis.from_url(redis_url) as broker:
        (message,) = broker.lrange("extraction", 0, -1)
    headers = json.loads(message)["headers"]
    assert headers["task"] == "halldetect.extract"
    assert "'audit_id': 1" in headers["kwargsrepr"]


def test_methods_that_an_address_does_not_take_are_named(client):
    answer = client.put("/v1/audits")
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, POST"
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert client.delete("/v1/audits/1").headers["Allow"] == "GET"


def test_other_addresses_are_not_found(client):
    for path in ("/v1", "/v1/audits/", "/v1/audits/1/2", "/v2/audits", "/docs/x", "/docs-assets/x"):
        answer = client.get(path, follow_redirects=False)
        assert answer.status_code == 404, path
        assert answer.headers["Content-Type"] == "application/problem+json"
