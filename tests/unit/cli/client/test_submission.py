import gzip

import pytest

from cli.client import patience
from cli.client.errors import ServiceUnavailable
from cli.client.submission import send_batch
from cli.client.upload import open_upload
from halldetect.errors import InputError

ACCEPTED = {"id": "12", "total": 2, "status": "in_progress"}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(patience, "SHORTEST_PAUSE", 0.0)


@pytest.fixture
def upload(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"{}\n{}\n")
    with open_upload(str(path)) as opened:
        yield opened


def keys(script):
    return [headers["Idempotency-Key"] for _, _, headers, _ in script.requests]


def test_the_file_and_its_options_arrive(service, steps, upload):
    with service(steps["answer"](202, ACCEPTED)) as (client, script):
        assert send_batch(client, upload, policy="mean", priority=-5) == ACCEPTED
    [(method, path, headers, body)] = script.requests
    assert (method, path) == (
        "POST",
        "/v1/batches?unknown_fields=ignore&policy=mean&priority=-5",
    )
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Content-Type"] == "application/x-ndjson"
    assert gzip.decompress(body) == b"{}\n{}\n"


def test_a_lost_connection_is_tried_again_with_the_same_key(service, steps, upload, capsys):
    failures = (steps["cut"](), steps["problem"](503, "the database is away"))
    with service(*failures, steps["answer"](202, ACCEPTED)) as (client, script):
        assert send_batch(client, upload, policy=None, priority=None) == ACCEPTED
    assert len(set(keys(script))) == 1
    assert [gzip.decompress(body) for *_, body in script.requests] == [b"{}\n{}\n"] * 3
    assert "the database is away; trying again" in capsys.readouterr().err


def test_an_earlier_try_that_is_still_being_stored_is_waited_for(service, steps, upload):
    running = steps["problem"](
        409,
        "the first request is still running",
        type="urn:halldetect:problem:idempotency-key-in-progress",
    )
    with service(running, steps["answer"](202, ACCEPTED)) as (client, script):
        assert send_batch(client, upload, policy=None, priority=None) == ACCEPTED
    assert len(set(keys(script))) == 1


def test_a_second_submission_has_a_key_of_its_own(service, steps, upload):
    with service(steps["answer"](202, ACCEPTED)) as (client, script):
        for _ in range(2):
            send_batch(client, upload, policy=None, priority=None)
    assert len(set(keys(script))) == 2


def test_the_service_says_how_long_to_leave_it_alone(service, steps, upload, monkeypatch):
    pauses = []
    monkeypatch.setattr(patience.time, "sleep", pauses.append)
    much = steps["problem"](429, "much waits", retry_after=30)
    with service(much, much, steps["answer"](202, ACCEPTED)) as (client, _):
        assert send_batch(client, upload, policy=None, priority=None) == ACCEPTED
    assert pauses == [30.0, 30.0]


@pytest.mark.parametrize(
    ("kind", "may_be_stored"), [("urn:halldetect:problem:unavailable", False), ("urn:odd", True)]
)
def test_it_gives_up_after_a_minute_but_not_before_the_third_try(
    service, steps, upload, clock, kind, may_be_stored
):
    def late(handler):
        clock.now += 70.0  # as a large file may take
        steps["problem"](503, "away", type=kind)(handler)

    with service(late) as (client, script), pytest.raises(ServiceUnavailable) as told:
        send_batch(client, upload, policy=None, priority=None)
    assert len(script.requests) == 3
    assert "away" in str(told.value)
    assert ("look there before you submit" in str(told.value)) is may_be_stored


def test_what_is_refused_is_not_tried_again(service, steps, upload):
    with (
        service(steps["problem"](413, "too large")) as (client, script),
        pytest.raises(InputError, match="too large"),
    ):
        send_batch(client, upload, policy=None, priority=None)
    assert len(script.requests) == 1
