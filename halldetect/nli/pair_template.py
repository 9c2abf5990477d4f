"""How an encoder's tokenizer builds a pair, read off pairs that it built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from halldetect.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class PairTemplate:
    """Special tokens around premise and hypothesis, and the type ids of every part."""

    before: NDArray[np.int64]
    between: NDArray[np.int64]
    after: NDArray[np.int64]
    types_before: NDArray[np.int64]
    types_between: NDArray[np.int64]
    types_after: NDArray[np.int64]
    type_premise: int
    type_hypothesis: int


def derive_template(tokenizer: Tokenizer) -> PairTemplate:
    """Read the pair template off one encoded pair and check it against a second one.

    Raises
    ------
    ModelError
        When the tokenizer puts nothing between premise and hypothesis, or builds pairs in a way
        that is not "specials, premise, specials, hypothesis, specials".
    """
    encoding = tokenizer.encode("premise text", "a hypothesis")
    sides = encoding.sequence_ids
    if 0 not in sides or 1 not in sides:
        raise ModelError("the tokenizer cannot encode a pair of plain English texts")
    first, second = _extent(sides, 0), _extent(sides, 1)
    if second[0] < first[1]:
        raise ModelError("the tokenizer does not build pairs of premise first, hypothesis second")
    ids = np.array(encoding.ids, dtype=np.int64)
    types = np.array(encoding.type_ids, dtype=np.int64)
    template = PairTemplate(
        before=ids[: first[0]],
        between=ids[first[1] : second[0]],
        after=ids[second[1] :],
        types_before=types[: first[0]],
        types_between=types[first[1] : second[0]],
        types_after=types[second[1] :],
        type_premise=int(types[first[0]]),
        type_hypothesis=int(types[second[0]]),
    )
    if len(template.between) == 0:
        raise ModelError(
            "the tokenizer puts no separator between premise and hypothesis: it was not made for "
            "text pairs; choose a model trained on pairs"
        )
    _check_template(tokenizer, template)
    return template


def _extent(sides: Sequence[int | None], side: int) -> tuple[int, int]:
    positions = [position for position, found in enumerate(sides) if found == side]
    return positions[0], positions[-1] + 1


def _check_template(tokenizer: Tokenizer, template: PairTemplate) -> None:
    premise, hypothesis = "one premise of another length", "and its claim"
    pair = tokenizer.encode(premise, hypothesis)
    alone = [tokenizer.encode(text, add_special_tokens=False).ids for text in (premise, hypothesis)]
    ids = [*template.before, *alone[0], *template.between, *alone[1], *template.after]
    types = [
        *template.types_before,
        *[template.type_premise] * len(alone[0]),
        *template.types_between,
        *[template.type_hypothesis] * len(alone[1]),
        *template.types_after,
    ]
    if pair.ids != ids or pair.type_ids != types:
        raise ModelError("the tokenizer does not build pairs in a way that this project supports")
