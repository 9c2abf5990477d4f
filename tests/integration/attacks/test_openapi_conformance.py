"""schemathesis against a live API: what it answers is what its OpenAPI document says.

The requests are the same in every run. More of them, and others in each run:
``REQUESTS_TO_TRY=1000 pytest tests/integration/attacks/test_openapi_conformance.py``.
"""

from __future__ import annotations

import json
import os
import re

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from api.app import create_app
from api.bodies import JSON_LINES
from db.scopes import Scope
from db.trails import StoredAudit
from halldetect.settings import load_settings

SECONDS_AT_MOST = 60  # for an answer
EXAMPLES = os.environ.get("REQUESTS_TO_TRY")
SEARCH = settings(
    max_examples=int(EXAMPLES or 10),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
FEW = settings(SEARCH, max_examples=int(EXAMPLES or 5))
CONFORMANCE = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# What a schema cannot say of a request, and descriptions do: (in which addresses, reason).
REASONS = (
    ("", r"the cursor is (damaged|of other filters)"),
    ("", r"this Idempotency-Key was used for another request"),
    ("", r"no policy is called"),
    ("/v1/audits", r"source: is empty, or only white space and invisible"),
    ("/v1/audits", r"alias .* differ: give one of them"),
    ("/v1/audits", r"metadata: has (a NUL character|a number that is too large)"),
    ("/v1/audits", r"metadata: is nested more than 100 levels"),
    ("/v1/audits", r"priority: Input should be a valid integer"),  # 7.0, which JSON Schema takes
    ("/v1/batches", r"this service runs the profile"),
    ("/v1/policies", r"row-max (averages entailment|reads the finest stored granularity)"),
    ("/v1/policies", r"had these rules .* before it got others|comes with the program"),
    ("/v1/scorings", r"there is no batch"),
    ("/v1/webhooks", r"^url: "),
    ("review", r"reviewer: .*(control or invisible character|white space)"),
    ("flagged-claims", r"reviewer: .*(control or invisible character|white space)"),
)

load_all_checks()


def document():
    # Neither server is asked for anything here.
    address = "postgresql://nobody@127.0.0.1:1/none"
    app = create_app(load_settings(database_url=address, redis_url="redis://127.0.0.1:1/0"))
    return json.loads(json.dumps(app.openapi()))


records = st.fixed_dictionaries(
    {"source": st.text("ab. é\U0001f375", min_size=1).map("A".__add__), "response": st.text("ab.")},
    optional={
        "custom_id": st.uuids().map(str),
        "metadata": st.dictionaries(st.text("ab"), st.none()),
    },
)
json_lines = st.lists(records, min_size=1, max_size=3).map(
    lambda found: b"".join(json.dumps(record).encode() + b"\n" for record in found)
)
schemathesis.openapi.media_type(JSON_LINES[0], json_lines, aliases=JSON_LINES[1:])


@schemathesis.deserializer(*JSON_LINES)
def first_line(_, response):
    return json.loads(response.content.splitlines()[0])


@schemathesis.check
def is_accepted_or_told_why(ctx, response, case):
    """As `positive_data_acceptance`, but for reasons that no schema can give."""
    try:
        positive_data_acceptance(ctx, response, case)
    except AssertionError:
        detail = response.json()["detail"]
        if not any(place in case.path and re.search(why, detail) for place, why in REASONS):
            raise


@schemathesis.check
def asks_for_a_key_or_for_patience(ctx, response, case):
    """As `ignored_auth`; so many wrong keys come from here that some are not even looked at."""
    try:
        ignored_auth(ctx, response, case)
    except AssertionError as error:
        if "got `429 Too Many Requests`" not in str(error):
            raise


schema = schemathesis.openapi.from_dict(document())
by_chance = schemathesis.openapi.from_dict(document())
by_chance.config.phases.coverage.enabled = False  # each request is sent with every key
by_chance.config.generation.with_security_parameters = False  # and with no other


def test_the_live_document_is_the_one_that_is_tested(live):
    assert (
        httpx.get(f"{live.url}/openapi.json", timeout=SECONDS_AT_MOST).json() == schema.raw_schema
    )


@schema.parametrize()
@SEARCH
def test_answers_are_as_documented(case, live):
    aim_at_what_is_stored(case, live)
    who = "admin" if case.path.startswith("/v1/policies") else "user"
    response = case.call_and_validate(
        base_url=live.url,
        headers=live.headers(who),
        timeout=SECONDS_AT_MOST,
        excluded_checks=[positive_data_acceptance, ignored_auth],
    )
    assert_is_proper_json(response)


@by_chance.include(path_regex="^/v1").parametrize()
@FEW
def test_nothing_about_a_request_opens_what_a_key_is_not_for(case, live, answers_by_key):
    aim_at_what_is_stored(case, live)
    for who in ("nobody", *Scope):
        response = case.call(base_url=live.url, headers=live.headers(who), timeout=SECONDS_AT_MOST)
        if "nothing is found at this address" in response.text:
            return  # an id with a slash in it, for example
        case.validate_response(response, checks=[not_a_server_error, *CONFORMANCE])
        assert_is_proper_json(response)
        if response.status_code == 422 and response.json()["detail"].startswith("query "):
            assert who != "nobody"
            continue  # parameters that mean nothing are told before the scope is asked for
        # Let in or kept out, and the same for every request to an address.
        let_in = response.status_code not in (401, 403)
        assert answers_by_key.setdefault((case.operation.label, who), let_in) == let_in


@pytest.fixture(scope="module")
def answers_by_key():
    """Whether each key was let in at each address: at some and not at others, in the end."""
    answers = {}
    yield answers
    for who in Scope:
        seen = {let_in for (_, key), let_in in answers.items() if key == who}
        assert seen == ({True} if who is Scope.ADMIN else {True, False})
    assert not any(let_in for (_, key), let_in in answers.items() if key == "nobody")


def aim_at_what_is_stored(case, live):
    """Let ids that something could have be ids that something has, every other time."""
    wanted = case.path_parameters or {}
    place = case.meta.components.get(ParameterLocation.PATH)
    if wanted and place is not None and place.mode.is_positive and len(str(wanted)) % 2:
        case.path_parameters = {name: live.ids[name] for name in wanted}


def assert_is_proper_json(response):
    [kind] = response.headers.get("content-type", [""])
    if "jsonl" in kind:
        for line in response.content.splitlines():
            StoredAudit.model_validate_json(line)
    elif "json" in kind:
        json.loads(response.content.decode("utf-8"), parse_constant=pytest.fail)
