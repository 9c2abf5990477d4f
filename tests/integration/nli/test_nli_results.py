"""What the real encoders compute: agreement, independence of batch mates, true pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from halldetect.errors import LimitError
from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.model import NliModel
from halldetect.nli.onnx_model import OnnxNliModel
from halldetect.nli.torch_model import TorchNliModel

PREMISE = "The lighthouse on Gull Rock was built in 1874 and is painted red and white."
HYPOTHESIS = "The lighthouse was built in 1874."
FILLER = "A keeper lived beside it with two goats until the lamp was made automatic. "
HUGE_BUDGET = 10**6


def probabilities(
    model: NliModel, pairs: list[tuple[str, str]], budget: int = HUGE_BUDGET
) -> NDArray[np.float32]:
    premises = [text.ids for text in model.tokenizer.encode([premise for premise, _ in pairs])]
    hypotheses = [text.ids for text in model.tokenizer.encode([claim for _, claim in pairs])]
    rows = np.arange(len(pairs))
    return pair_probabilities(model, premises, hypotheses, np.stack([rows, rows], 1), budget)


MIXED = [
    (PREMISE, HYPOTHESIS),
    (PREMISE, "The lighthouse was built in 1901."),
    (FILLER * 25, "Two goats lived on the rock."),
    ("No.", "Yes."),
    ("東京 ☃ crème brûlée", "Dessert [SEP] </s> [CLS]"),
    (FILLER * 5 + PREMISE, HYPOTHESIS),
]


def test_onnx_and_torch_agree(onnx_model: OnnxNliModel, torch_model: TorchNliModel) -> None:
    difference = np.abs(probabilities(onnx_model, MIXED) - probabilities(torch_model, MIXED))
    assert difference.max() <= 1e-4


@pytest.fixture(params=["onnx", "torch", "tiny-deberta"])
def any_model(
    request: pytest.FixtureRequest,
    onnx_model: OnnxNliModel,
    torch_model: TorchNliModel,
    tiny_deberta: Path,
) -> NliModel:
    if request.param == "tiny-deberta":
        return TorchNliModel.load(str(tiny_deberta), device="cpu")
    return onnx_model if request.param == "onnx" else torch_model


LETTERS = "abcdefghijklmnopqrstuvwxyzabcde"  # 31 batch mates
PAIR = ("a lamp is red.", "a lamp is not red.")
SHORT = [(f"{word} is here.", f"{word} is.") for word in LETTERS]
LONG = [(f"{word} lamp " * 4, "a keeper lit it.") for word in "abcdefghijklmnopqrstuvwxyzabcde"]


@pytest.mark.parametrize("mates", [SHORT, LONG, SHORT + LONG], ids=["short", "long", "both"])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_a_pair_does_not_depend_on_its_batch(
    any_model: NliModel, mates: list[tuple[str, str]], place: int
) -> None:
    at = place % (len(mates) + 1)
    batch = [*mates[:at], PAIR, *mates[at:]]
    alone = probabilities(any_model, [PAIR])[0]
    together = probabilities(any_model, batch)
    np.testing.assert_allclose(together[at], alone, rtol=0, atol=1e-5)
    backwards = probabilities(any_model, batch[::-1])[::-1]
    np.testing.assert_allclose(backwards, together, rtol=0, atol=1e-5)


def test_a_pair_does_not_depend_on_mates_of_five_hundred_tokens(onnx_model: OnnxNliModel) -> None:
    alone = probabilities(onnx_model, [MIXED[0]])[0]
    together = probabilities(onnx_model, [MIXED[0]] + [(FILLER * 28, HYPOTHESIS)] * 8)[0]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize("budget", [1, 300, HUGE_BUDGET])
def test_the_budget_changes_no_result(onnx_model: OnnxNliModel, budget: int) -> None:
    np.testing.assert_allclose(
        probabilities(onnx_model, MIXED, budget),
        probabilities(onnx_model, MIXED),
        rtol=0,
        atol=1e-5,
    )


def test_columns_are_entailment_neutral_contradiction(any_model: NliModel) -> None:
    if any_model.provenance.name.startswith("deberta"):
        pytest.skip("random weights have no opinion")
    found = probabilities(
        any_model,
        [
            ("A man is asleep on a bench.", "A man is sleeping."),
            ("A man is asleep on a bench.", "Nobody is asleep on a bench."),
        ],
    )
    assert found[0].argmax() == 0
    assert found[1].argmax() == 2


@pytest.mark.parametrize("marker", ["[SEP]", "[CLS]", "</s>", "<pad>", "[SEP] [CLS] </s> <pad>"])
def test_a_written_marker_cannot_move_the_border(onnx_model: OnnxNliModel, marker: str) -> None:
    """The verdict is the same as with the marker replaced by a dash."""
    told = f"The ticket office is closed. {marker} The ticket office is open."
    dashed = f"The ticket office is closed. {'-'} The ticket office is open."
    claim = "The ticket office is open."
    marked, plain = probabilities(onnx_model, [(told, claim), (dashed, claim)])
    assert marked.argmax() == plain.argmax()
    separators = onnx_model.tokenizer.assemble(
        [onnx_model.tokenizer.encode([told])[0].ids],
        [onnx_model.tokenizer.encode([f"{claim} {marker}"])[0].ids],
    )
    assert int(np.isin(separators.input_ids, [101, 102]).sum()) == 3


def test_a_pair_over_the_limit_is_refused_and_one_at_the_limit_runs(
    onnx_model: OnnxNliModel,
) -> None:
    word = onnx_model.tokenizer.encode(["stone"])[0].ids
    room = onnx_model.max_tokens - onnx_model.tokenizer.overhead - 1
    fits, over = np.repeat(word, room), np.repeat(word, room + 1)
    found = pair_probabilities(onnx_model, [fits], [word], np.array([(0, 0)]))
    assert np.isfinite(found).all()
    with pytest.raises(LimitError, match="reads at most 512"):
        pair_probabilities(onnx_model, [over], [word], np.array([(0, 0)]))
