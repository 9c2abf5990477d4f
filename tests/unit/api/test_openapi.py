from __future__ import annotations

import json
import re

import pytest
from pydantic import BaseModel
from starlette.testclient import TestClient

from api import examples
from api.app import create_app
from halldetect.record import parse_record
from halldetect.settings import load_settings


def models_below(base):
    for model in base.__subclasses__():
        if model.__module__.split(".")[0] in ("api", "db", "halldetect"):
            yield model.__name__, model
        yield from models_below(model)


@pytest.fixture(scope="module")
def app():
    # Neither server is asked for anything here.
    return create_app(
        load_settings(
            database_url="postgresql://nobody@127.0.0.1:1/none", redis_url="redis://127.0.0.1:1/0"
        )
    )


@pytest.fixture(scope="module")
def document(app):
    return TestClient(app, base_url="http://localhost").get("/openapi.json").json()


def contents(document):
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status, answer in operation["responses"].items():
                for media_type, content in answer.get("content", {}).items():
                    yield f"{method} {path} {status}", media_type, content


def test_every_address_is_described(document):
    assert set(document["paths"]) >= {
        *("/v1/audits", "/v1/audits/{audit_id}"),
        *("/v1/batches", "/v1/batches/{batch_id}", "/v1/batches/{batch_id}/results"),
        *("/v1/batches/{batch_id}/cancel", "/v1/policies", "/v1/policies/{name}"),
        *("/healthz", "/readyz"),
    }


def test_every_reference_leads_to_a_schema(document):
    names = re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document))
    assert set(names) <= set(document["components"]["schemas"])
    assert "Record" in names


def test_every_answer_has_an_example_that_is_one(document):
    models = dict(models_below(BaseModel))
    checked = 0
    for place, media_type, content in contents(document):
        model = models[content["schema"]["$ref"].rsplit("/", 1)[1]]
        example = content["example"]
        lines = example.splitlines() if isinstance(example, str) else [json.dumps(example)]
        for line in lines:
            model.model_validate_json(line)
        assert "problem" in media_type or place.split()[-1].startswith("2"), place
        checked += 1
    assert checked > 40


def test_every_operation_describes_its_problems(document):
    for place, operations in document["paths"].items():
        for operation in operations.values():
            if place.startswith("/v1"):
                assert {"422", "500", "503"} <= set(operation["responses"]), place


def test_the_examples_of_bodies_are_accepted(document):
    paths = document["paths"]
    single = paths["/v1/audits"]["post"]["requestBody"]["content"]["application/json"]
    record = parse_record(json.dumps(single["example"]).encode(), unknown_fields="refuse")
    assert record.custom_id == examples.TRAIL["custom_id"]
    contents = paths["/v1/batches"]["post"]["requestBody"]["content"]
    assert "application/jsonl" in contents
    for content in contents.values():
        for line in content["example"].splitlines():
            parse_record(line.encode(), unknown_fields="refuse")


def test_the_offsets_of_the_example_are_right():
    trail, source = examples.TRAIL, examples.RECORD["source"]
    for claim in trail["claims"]:
        assert trail["response"][claim["span"]["start"] : claim["span"]["end"]] == claim["text"]
        for evidence in (claim["entailment"], claim["contradiction"]):
            span = evidence["span"]
            assert source[span["start"] : span["end"]] == evidence["text"]


def test_properties_are_described_from_the_docstrings(document):
    record = document["components"]["schemas"]["Record"]
    assert "Parameters" not in record["description"]
    assert record["properties"]["source"]["description"].startswith("The document")
    assert record["additionalProperties"] is False


def test_the_docs_page_needs_nothing_from_elsewhere(app):
    client = TestClient(app, base_url="http://localhost")
    home = client.get("/")
    assert str(home.url).endswith("/docs")
    addresses = re.findall(r'(?:src|href)="([^"]+)"', home.text)
    assert len(addresses) == 3
    for address in addresses:
        if address != "data:,":
            assert client.get(address).status_code == 200
    assert "//" not in re.sub(r"<!--.*?-->|//.*", "", home.text)
    assert "url: 'openapi.json'" in home.text
