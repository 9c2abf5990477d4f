from __future__ import annotations

import os
from typing import get_args

import pytest

from halldetect.auditor import AuditOptions
from halldetect.claims.llama_extractor import DEFAULT_CONTEXT_TOKENS
from halldetect.errors import InputError
from halldetect.settings import ExtractorBackend, NliBackend, Profile, Settings, load_settings


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch):
    for name in list(os.environ):
        if name.upper().startswith("HALLDETECT_"):
            monkeypatch.delenv(name)


def test_defaults_agree_with_the_modules_that_use_them():
    settings, options = Settings(), AuditOptions()
    assert settings.extractor_context_tokens == DEFAULT_CONTEXT_TOKENS
    assert settings.token_budget == options.token_budget
    assert settings.max_characters == options.max_characters
    assert settings.max_sentences == options.max_sentences
    assert settings.extractor_mode is options.mode
    assert settings.preselected_spans is options.preselected_spans is None


@pytest.mark.parametrize("profile", list(Profile))
def test_the_policy_is_the_profiles_unless_one_is_named(profile):
    assert load_settings(profile=profile).policy_name == profile.value
    assert load_settings(profile=profile, policy="mine").policy_name == "mine"


def test_every_field_is_read_from_its_variable(monkeypatch):
    values = {
        "PROFILE": "paper",
        "EXTRACTOR": "sentences",
        "NLI": "torch",
        "NLI_LABELS": '{"entailment": "LABEL_2"}',
        "PRESELECTED_SPANS": "20",
    }
    for name, value in values.items():
        monkeypatch.setenv(f"HALLDETECT_{name}", value)
    settings = load_settings()
    assert settings.profile is Profile.PAPER
    assert settings.extractor is ExtractorBackend.SENTENCES
    assert settings.nli is NliBackend.TORCH
    assert settings.nli_labels == {"entailment": "LABEL_2"}
    assert settings.preselected_spans == 20


def test_an_override_wins_over_the_environment_and_none_does_not(monkeypatch):
    monkeypatch.setenv("HALLDETECT_THREADS", "3")
    assert load_settings(threads=2).threads == 2
    assert load_settings(threads=None).threads == 3


NUMBERS = [
    name
    for name, field in Settings.model_fields.items()
    if {int, float} & {field.annotation, *get_args(field.annotation)}
]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("number", ["-2", "1" + "0" * 20, "nan"])
def test_a_number_that_nothing_could_use_is_refused_where_it_is_set(monkeypatch, name, number):
    monkeypatch.setenv(f"HALLDETECT_{name.upper()}", number)
    with pytest.raises(InputError, match=name.upper()):
        load_settings()


def test_every_bad_variable_is_named(monkeypatch):
    monkeypatch.setenv("HALLDETECT_PROFILE", "large")
    monkeypatch.setenv("HALLDETECT_THREADS", "0")
    with pytest.raises(InputError) as caught:
        load_settings(extractor_context_tokens=10)
    for name in ("PROFILE", "THREADS", "EXTRACTOR_CONTEXT_TOKENS"):
        assert f"HALLDETECT_{name}: " in str(caught.value)


@pytest.mark.parametrize("value", ["{", "[1]", "7"])
def test_labels_that_are_no_mapping_are_a_fault_of_their_variable(monkeypatch, value):
    monkeypatch.setenv("HALLDETECT_NLI_LABELS", value)
    with pytest.raises(InputError, match="NLI_LABELS"):
        load_settings()


@pytest.mark.parametrize("name", ["extracter", "Policy", "preselect"])
def test_a_mistyped_setting_is_no_default(name):
    with pytest.raises(InputError, match=rf"no setting is called {name}; there are: .*extractor"):
        load_settings(**{name: "paper"})


def test_a_misspelt_variable_is_refused_and_not_ignored(monkeypatch):
    monkeypatch.setenv("HALLDETECT_PRESELECTED", "5")
    with pytest.raises(InputError, match="preselected"):
        load_settings()


@pytest.mark.parametrize(
    ("host", "required", "asks"),
    [
        ("127.0.0.1", None, False),
        ("127.0.0.2", None, False),
        ("::1", None, False),
        ("localhost", None, False),
        ("0.0.0.0", None, True),
        ("::", None, True),
        ("", None, True),
        ("192.0.2.7", None, True),
        ("audits.example.org", None, True),
        ("127.0.0.1", True, True),
        ("0.0.0.0", True, True),
        ("127.0.0.1", False, False),
    ],
)
def test_keys_are_asked_for_unless_the_api_listens_on_loopback(host, required, asks):
    settings = load_settings(api_host=host, api_keys_required=required)
    assert settings.asks_for_api_keys() is asks


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.7", "audits.example.org"])
def test_nobody_is_let_in_from_elsewhere_without_a_key(host):
    settings = load_settings(api_host=host, api_keys_required=False)
    with pytest.raises(InputError, match="leave out HALLDETECT_API_KEYS_REQUIRED"):
        settings.asks_for_api_keys()


def test_secrets_are_not_shown():
    settings = load_settings(api_key="hd_secret", database_url="postgresql://a:secret@b/c")
    assert "secret" not in repr(settings) + str(settings)


def test_the_room_for_uploads_is_that_of_four_unless_it_is_set_and_never_less_than_one(monkeypatch):
    assert load_settings(max_upload_bytes=10).spooled_bytes == 40
    assert load_settings(max_upload_bytes=10, max_spooled_bytes=10).spooled_bytes == 10
    with pytest.raises(InputError, match=r"HALLDETECT_MAX_SPOOLED_BYTES: .* set it to 10 or more"):
        load_settings(max_upload_bytes=10, max_spooled_bytes=9)
