import io
import re

import pytest
from starlette.testclient import TestClient

from api.app import create_app
from cli.client.errors import ServiceError
from cli.review_command import review_batch
from cli.review_service import ReviewService
from db.review_agreement import agreement
from db.reviews import reviews_of_claim
from halldetect.errors import InputError
from halldetect.scoring.verdict import Verdict
from halldetect.settings import load_settings

RESPONSES = (
    "The mill was founded by monks. A \x1b[31mdragon lives in it.",
    "The mill opened in 1900.",
    "Ghosts haunt it. They sing.",
)
CLAIM = re.compile(r"^claim (\d+) of (\d+), audit (\d+) \((r\d)\): (\w+)", re.MULTILINE)


@pytest.fixture
def batch(store):
    return store(*RESPONSES, context="Tell me of the [mill].")


@pytest.fixture
def client(database, redis_url, monkeypatch):
    """The real application, without a socket in between."""
    with TestClient(
        create_app(load_settings(database_url=database, redis_url=redis_url)),
        base_url="http://localhost",
    ) as client:
        original = ReviewService.__init__

        def connect(self, address):
            original(self, address)
            self._client.close()
            self._client = client

        monkeypatch.setattr(ReviewService, "__init__", connect)
        monkeypatch.setattr(ReviewService, "__exit__", lambda *_: None)  # it is needed again
        yield client


@pytest.fixture
def review(client, batch, monkeypatch, capsys):
    def run(*keys, reviewer="ada", batch_id=batch):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{key}\n" for key in keys)))
        settings = load_settings(api_url="http://127.0.0.1:9")
        assert review_batch(batch_id, settings, reviewer=reviewer) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def said(sessions):
    def of(claim_id):
        with sessions() as session:
            return [
                (one.reviewer, one.reviewer_verdict) for one in reviews_of_claim(session, claim_id)
            ]

    return of


def shown(output):
    return [tuple(map(int, found.group(1, 2))) for found in CLAIM.finditer(output)]


def test_a_walk_shows_every_flagged_claim_and_stores_what_is_said(review, sessions):
    output = review("a", "c", "u", "d")
    assert shown(output) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert "that is all there is to review" in output
    assert (
        "reviewed now: 4 (agreed 1, correct after all 1, unsupported 1, contradicted 1)" in output
    )
    with sessions() as session:
        said = agreement(session)
    assert sum(one.reviews for one in said) == 4
    assert sum(one.supported for one in said) == 1
    assert "precision of the flags: 75%" in output


def test_claim_and_evidence_stand_together(review):
    output = review("q")
    assert "asked: Tell me of the [mill]." in output
    claim, evidence = output.partition("what the source says\n")[2].splitlines()[:2]
    assert claim.startswith("The mill was founded by monks.")
    assert "it 0." in claim + evidence
    assert "The mill opened in 1900." in output
    assert "a agree" in output


def test_the_next_walk_goes_on_and_brings_back_only_what_was_skipped(review):
    assert shown(review("a", "s", "c", "q")) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    second = review("d")
    assert shown(second) == [(3, 4), (4, 4)]
    assert "dragon" in second
    third = review("a")
    assert shown(third) == [(4, 4)]
    assert "They sing." in third
    assert shown(review()) == []
    assert shown(review(reviewer="bob"))[0] == (1, 4)


def test_an_unknown_key_is_asked_again(review):
    output = review("x", "", "a")
    assert output.count("press one of a, c, u, d, s, q") == 2
    assert "reviewed now: 1 (agreed 1" in output


def test_the_end_of_the_input_quits(review, said):
    output = review()
    assert shown(output) == [(1, 4)]
    assert "reviewed now: 0" in output
    assert "nothing of the batch is reviewed yet" in output
    assert said(1) == []


def test_nothing_a_model_wrote_reaches_the_terminal(review):
    output = review("s", "q")
    assert "\x1b" not in output
    assert "\\x1b[31mdragon" in output


def test_agreeing_says_what_the_verdict_says(client, batch, review, said):
    query = {"reviewer": "ada"}
    flagged = client.get(f"/v1/batches/{batch}/flagged-claims", params=query).json()["items"]
    review("a", "a", "q")
    for item in flagged[:2]:
        assert said(int(item["claim"]["id"])) == [("ada", Verdict(item["claim"]["verdict"]))]


def test_a_batch_without_flags_has_nothing_to_review(review, store):
    output = review(batch_id=store("The mill opened in 1900."))
    assert shown(output) == []
    assert "that is all there is to review" in output


def test_the_login_name_reviews_unless_another_is_given(review, said, monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: "grace")
    review("a", reviewer=None)
    assert [name for name, _ in said(1)] == ["grace"]


def test_without_any_name_it_asks_for_one(review, monkeypatch):
    def fail():
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr("getpass.getuser", fail)
    with pytest.raises(InputError, match="--reviewer NAME"):
        review("a", reviewer=None)


def test_a_reviewer_that_cannot_be_stored_is_refused_before_anything(review, said):
    with pytest.raises(InputError, match="reviewer"):
        review("a", reviewer=" ")
    assert said(1) == []


@pytest.mark.parametrize("name", ["\udcff\udcfe", "a\x1bda", "ada\u200b", "a\u2028da", "ada "])
def test_a_name_that_cannot_be_told_from_another_is_refused(review, said, monkeypatch, name):
    with pytest.raises(InputError, match="--reviewer: "):
        review("a", reviewer=name)
    monkeypatch.setattr("getpass.getuser", lambda: name)
    with pytest.raises(InputError, match=r"the login name .* give --reviewer NAME"):
        review("a", reviewer=None)
    assert said(1) == []


def test_an_unknown_batch_is_told(review):
    with pytest.raises(InputError, match="no batch 999"):
        review("a", batch_id=999)


def test_an_interruption_keeps_what_was_said(review, said, monkeypatch):
    answers = iter(["a"])

    def press(_):
        from cli.review_keys import Key

        for answer in answers:
            return Key(answer)
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.review_command.read_key", press)
    with pytest.raises(KeyboardInterrupt, match="what was said is stored"):
        review()
    assert len(said(1)) == 1


def test_an_answer_about_something_else_is_told(review, client, monkeypatch):
    monkeypatch.setattr(ReviewService, "_document", lambda *_: {"items": []})
    with pytest.raises(ServiceError, match="none about reviews"):
        review("a")
