import json

import pytest
from stored_audits import complete_waiting, submit_batch

TRUE = "The mill opened in 1900."
FALSE = "The mill was founded by monks. A dragon lives in it."


@pytest.fixture
def batch(sessions, auditor):
    batch_id = submit_batch(sessions, FALSE, TRUE, FALSE, context="Who lives there?")
    complete_waiting(sessions, auditor)
    return batch_id


@pytest.fixture
def flagged(client, batch):
    def page(reviewer="ada", **query):
        answer = client.get(
            f"/v1/batches/{batch}/flagged-claims", params={"reviewer": reviewer, **query}
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    return page


@pytest.fixture
def post(client):
    def send(claim_id, reviewer="ada", verdict="supported", **fields):
        return client.post(
            f"/v1/claims/{claim_id}/reviews",
            json={"reviewer": reviewer, "verdict": verdict, **fields},
        )

    return send


def test_a_review_is_stored_and_found_again(client, flagged, post):
    item = flagged()["items"][0]
    answer = post(item["claim"]["id"], note="see page 3")
    assert answer.status_code == 201
    stored = answer.json()
    assert stored["claim_text"] == item["claim"]["text"]
    assert stored["verdict"] == item["claim"]["verdict"]
    assert (stored["reviewer"], stored["reviewer_verdict"]) == ("ada", "supported")
    assert stored["note"] == "see page 3"
    assert stored["audit_id"] == item["audit_id"]
    assert client.get(answer.headers["Location"]).json() == stored
    listed = client.get(f"/v1/claims/{item['claim']['id']}/reviews").json()
    assert listed == {"items": [stored]}


def test_trails_name_the_claims_that_reviews_are_posted_to(client, batch, flagged):
    page = flagged()
    trail = client.get(f"/v1/audits/{page['items'][0]['audit_id']}").json()
    lines = client.get(f"/v1/batches/{batch}/results").text.splitlines()
    assert trail["claims"][0] == page["items"][0]["claim"]
    assert json.loads(lines[0])["claims"] == trail["claims"]
    assert page["items"][0]["response"] == FALSE
    assert page["items"][0]["context"] == "Who lives there?"
    assert page["items"][0]["claim"]["contradiction"]["text"]


def test_pages_hold_every_claim_once_and_none_that_was_reviewed(flagged, post):
    every = [item["claim"]["id"] for item in flagged()["items"]]
    assert len(every) == 4
    first = flagged(limit=3)
    assert (first["flagged"], first["reviewed"]) == (4, 0)
    rest = flagged(limit=3, cursor=first["next_cursor"])
    assert rest["next_cursor"] is None
    assert [item["claim"]["id"] for item in first["items"] + rest["items"]] == every
    post(every[3])
    assert [item["claim"]["id"] for item in flagged()["items"]] == every[:3]
    assert flagged()["reviewed"] == 1
    assert len(flagged("bob")["items"]) == 4


def test_a_cursor_fits_one_reviewer_only(client, batch, flagged):
    cursor = flagged(limit=1)["next_cursor"]
    answer = client.get(
        f"/v1/batches/{batch}/flagged-claims", params={"reviewer": "bob", "cursor": cursor}
    )
    assert answer.status_code == 400


def test_the_summary_measures_precision(client, batch, flagged, post):
    items = flagged()["items"]
    post(items[0]["claim"]["id"], verdict="supported")
    post(items[1]["claim"]["id"], verdict=items[1]["claim"]["verdict"])
    post(items[1]["claim"]["id"], verdict="supported", reviewer="bob")
    post(items[2]["claim"]["id"], verdict=items[2]["claim"]["verdict"])
    everybody = client.get(f"/v1/batches/{batch}/review-summary").json()
    hers = client.get(f"/v1/batches/{batch}/review-summary", params={"reviewer": "ada"}).json()
    assert sum(one["reviews"] for one in everybody["by_verdict"]) == 4
    assert everybody["flag_precision"] == 0.5
    assert hers["flag_precision"] == pytest.approx(2 / 3)
    assert everybody["by_verdict"][0] == {
        "verdict": "supported", "reviews": 0, "supported": 0, "contradicted": 0,
        "unsupported": 0, "precision": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"reviewer": "a\0b"}, "body reviewer: has a NUL character at position 1"),
        ({"reviewer": ""}, "body reviewer: "),
        ({"reviewer": " ada"}, "body reviewer: starts or ends with white space"),
        ({"reviewer": "x" * 201}, "body reviewer: String should have at most 200 characters"),
        ({"reviewer": "ada\n"}, "body reviewer: has a control or invisible character (U+000A)"),
        ({"reviewer": "a\x1bda"}, "body reviewer: has a control or invisible character"),
        ({"reviewer": "ada\u200b"}, "body reviewer: has a control or invisible character (U+200B)"),
        ({"reviewer": "a\u2028da"}, "body reviewer: has a control or invisible character"),
        ({"reviewer": "a\u2029da"}, "body reviewer: has a control or invisible character"),
        ({"reviewer": "ada\u3000"}, "body reviewer: starts or ends with white space"),
        ({"reviewer": 7}, "body reviewer: "),
        ({"verdict": "wrong"}, "body verdict: "),
        ({"note": "n\0"}, "body note: has a NUL character at position 1"),
        ({"note": "n" * 10_001}, "body note: String should have at most 10000 characters"),
        ({"mood": "bad"}, "body mood: "),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(post, fields, told):
    answer = post(1, **fields)
    assert answer.status_code == 422
    assert told in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"reviewer": "ada", "verdict": "supported", "verdict": "unsupported"}',
        b'{"reviewer": "\\ud800", "verdict": "supported"}',
        b'{"reviewer": "\xff"}',
    ],
)
def test_a_body_that_is_no_object_is_refused(client, body):
    answer = client.post(
        "/v1/claims/1/reviews", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422


def test_what_is_not_there_is_told(client, post):
    assert post(999).status_code == 404
    assert post("x").status_code == 404
    for path in ("claims/999/reviews", "reviews/999", "batches/999/review-summary"):
        assert client.get(f"/v1/{path}").status_code == 404
    query = {"reviewer": "ada"}
    assert client.get("/v1/batches/999/flagged-claims", params=query).status_code == 404


@pytest.mark.parametrize("path", ["flagged-claims", "review-summary"])
def test_nobody_is_asked_for_by_a_name_that_nobody_can_have(client, batch, path):
    answer = client.get(f"/v1/batches/{batch}/{path}", params={"reviewer": "ada\u200b"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "reviewer"


@pytest.mark.parametrize("query", [{}, {"reviewer": ""}, {"reviewer": "ada", "limit": 101}])
def test_a_list_of_flagged_claims_is_somebodys(client, query):
    answer = client.get("/v1/batches/1/flagged-claims", params=query)
    assert answer.status_code == 422


def test_a_claim_without_verdict_cannot_be_reviewed(client, sessions, auditor, post, monkeypatch):
    submit_batch(sessions, FALSE)
    monkeypatch.setattr("stored_audits.claim_verification", lambda *_, **__: [])
    complete_waiting(sessions, auditor)
    answer = post(1)
    assert answer.status_code == 422
    assert "no verdict yet" in answer.json()["detail"]
