from __future__ import annotations

import json

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from api.problem_handlers import add_problem_handlers
from api.problems import Kind, Problem
from db.engine import DatabaseUnavailable
from db.idempotency import KeyInProgress, KeyReused
from halldetect.errors import InputError, LimitError, PolicyError


@pytest.fixture
def answer_to():
    """Return the answer of a route that raises an error."""

    def answer(error):
        app = FastAPI()
        add_problem_handlers(app)

        @app.get("/")
        def route():
            raise error

        return TestClient(app, raise_server_exceptions=False).get("/")

    return answer


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (InputError("the text is wrong"), 422, "invalid-request"),
        (PolicyError("the text is wrong"), 422, "invalid-request"),
        (LimitError("the text is wrong"), 413, "too-large"),
        (KeyReused("the text is wrong"), 422, "idempotency-key-reused"),
        (KeyInProgress("the text is wrong"), 409, "idempotency-key-in-progress"),
        (Problem(418, Kind.NOT_FOUND, "the text is wrong"), 418, "not-found"),
    ],
)
def test_errors_become_problem_documents(answer_to, error, status, kind):
    answer = answer_to(error)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    document = answer.json()
    assert document["type"] == f"urn:halldetect:problem:{kind}"
    assert document["status"] == status
    assert document["detail"] == "the text is wrong"
    assert document["title"]


def test_what_may_be_tried_again_says_when(answer_to):
    assert int(answer_to(KeyInProgress("wait")).headers["Retry-After"]) > 0
    assert int(answer_to(DatabaseUnavailable("gone")).headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("error", "status"),
    [(DatabaseUnavailable("host db.internal, user root"), 503), (RuntimeError("db.internal"), 500)],
)
def test_what_only_the_operator_should_read_is_not_told(answer_to, error, status):
    answer = answer_to(error)
    assert answer.status_code == status
    assert "db.internal" not in answer.text
    assert "Traceback" not in answer.text


def test_half_a_surrogate_pair_is_told_in_proper_utf8(answer_to):
    answer = answer_to(InputError("the field \ud800 is unknown"))
    assert json.loads(answer.content.decode("utf-8"))["detail"] == "the field ? is unknown"


def test_members_are_json_without_nan(answer_to):
    with pytest.raises(ValueError, match="JSON compliant"):
        Problem(422, Kind.NOT_FOUND, "x", members={"errors": [float("nan")]}).response()
