from __future__ import annotations

import itertools

import pytest

from halldetect.errors import ModelError
from halldetect.nli.labels import label_columns

ENTAILMENT_WORDS = ["entailment", "ENTAILMENT", "Entailment ", "entail", "entails"]
NEUTRAL_WORDS = ["neutral", "NEUTRAL", "Neutral"]
CONTRADICTION_WORDS = ["contradiction", "Contradictory", "CONTRADICT", "contradicts"]


@pytest.mark.parametrize(
    ("entails", "neutral", "contradicts"),
    list(itertools.product(ENTAILMENT_WORDS, NEUTRAL_WORDS, CONTRADICTION_WORDS)),
)
def test_usual_wordings_are_read_whatever_their_case(
    entails: str, neutral: str, contradicts: str
) -> None:
    assert label_columns({0: contradicts, 1: entails, 2: neutral}) == (1, 2, 0)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_order_follows_the_configuration(order: tuple[int, int, int]) -> None:
    names = ("entailment", "neutral", "contradiction")
    assert label_columns(dict(zip(order, names, strict=True))) == order


@pytest.mark.parametrize(
    "labels",
    [
        ("LABEL_0", "LABEL_1", "LABEL_2"),
        ("entailment", "neutral", "other"),
        ("positive", "neutral", "negative"),
        ("not_entailment", "neutral", "entailment"),
    ],
)
def test_unreadable_labels_are_refused_with_the_setting(labels: tuple[str, str, str]) -> None:
    with pytest.raises(ModelError, match="HALLDETECT_NLI_LABELS") as caught:
        label_columns(dict(enumerate(labels)))
    assert all(label in str(caught.value) for label in labels)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "labels",
    [
        ("entailment", "not_entailment"),
        ("entailment",),
        ("entailment", "neutral", "contradiction", "unrelated"),
    ],
)
def test_other_than_three_labels_are_refused_as_such(labels: tuple[str, ...]) -> None:
    with pytest.raises(ModelError, match=f"has {len(labels)} labels") as caught:
        label_columns(dict(enumerate(labels)))
    assert labels[-1] in str(caught.value)


def test_two_labels_of_one_meaning_are_refused() -> None:
    with pytest.raises(ModelError, match=r"two labels .* mean entailment"):
        label_columns({0: "entailment", 1: "entails", 2: "neutral"})


def test_a_mapping_names_anonymous_labels() -> None:
    labels = {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
    mapping = {"label_0": "Contradiction", "LABEL_1": "neutral", "LABEL_2": "entailment"}
    assert label_columns(labels, mapping) == (2, 1, 0)


def test_a_mapping_may_name_only_the_odd_label() -> None:
    labels = {0: "entailment", 1: "unsure", 2: "contradiction"}
    assert label_columns(labels, {"unsure": "neutral"}) == (0, 1, 2)


def test_a_mapping_overrides_a_label_that_lies() -> None:
    labels = {0: "entailment", 1: "neutral", 2: "contradiction"}
    mapping = {"entailment": "contradiction", "contradiction": "entailment"}
    assert label_columns(labels, mapping) == (2, 1, 0)


@pytest.mark.parametrize(
    ("mapping", "complaint"),
    [
        ({"LABEL_7": "neutral"}, "maps 'LABEL_7', but"),
        ({"LABEL_0": "maybe"}, "write entailment, neutral or contradiction"),
    ],
)
def test_a_wrong_mapping_is_refused(mapping: dict[str, str], complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        label_columns({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, mapping)
