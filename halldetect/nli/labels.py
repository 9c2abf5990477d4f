"""Which output column of a classifier means what."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from halldetect.errors import ModelError

LABELS_SETTING = "HALLDETECT_NLI_LABELS"


class NliLabel(IntEnum):
    """The three relations of premise and hypothesis, in the column order used everywhere."""

    ENTAILMENT = 0
    NEUTRAL = 1
    CONTRADICTION = 2


# Wordings of the three labels found in published checkpoints, letters only and lower case.
_WORDINGS = {
    **dict.fromkeys(("entailment", "entail", "entails", "entailed"), NliLabel.ENTAILMENT),
    **dict.fromkeys(("neutral", "neutrality"), NliLabel.NEUTRAL),
    **dict.fromkeys(
        ("contradiction", "contradict", "contradicts", "contradicted", "contradictory"),
        NliLabel.CONTRADICTION,
    ),
}


def label_columns(
    id2label: Mapping[int, str], label_mapping: Mapping[str, str] | None = None
) -> tuple[int, int, int]:
    """Find the output columns that hold entailment, neutral and contradiction.

    Parameters
    ----------
    id2label : mapping of int to str
        Column number to label, from the model's configuration.
    label_mapping : mapping of str to str, optional
        The model's label to ``entailment``, ``neutral`` or ``contradiction``, for models whose
        own labels say nothing. Labels that it does not name are read as usual.

    Returns
    -------
    tuple of int
        The model's columns in the order entailment, neutral, contradiction.

    Raises
    ------
    ModelError
        When there are other than three labels, or one of them cannot be read, or two mean the
        same. The message lists the labels found and names the setting that maps them.
    """
    found = ", ".join(repr(label) for _, label in sorted(id2label.items()))
    if len(id2label) != len(NliLabel):
        raise ModelError(
            f"the NLI model has {len(id2label)} labels ({found}), but entailment, neutral and "
            "contradiction are needed: choose a 3-way NLI model"
        )
    mapping = _checked_mapping(label_mapping or {}, id2label, found)
    columns: dict[NliLabel, int] = {}
    for column, label in id2label.items():
        meaning = mapping.get(_letters(label), _WORDINGS.get(_letters(label)))
        if meaning is None:
            raise ModelError(f"the NLI model's label {label!r} {_unreadable(found)}")
        if meaning in columns:
            raise ModelError(
                f"two labels of the NLI model mean {meaning.name.lower()} {_unreadable(found)}"
            )
        columns[meaning] = column
    return (
        columns[NliLabel.ENTAILMENT],
        columns[NliLabel.NEUTRAL],
        columns[NliLabel.CONTRADICTION],
    )


def _checked_mapping(
    label_mapping: Mapping[str, str], id2label: Mapping[int, str], found: str
) -> dict[str, NliLabel]:
    known = {_letters(label) for label in id2label.values()}
    mapping = {}
    for label, meaning in label_mapping.items():
        if _letters(label) not in known:
            raise ModelError(
                f"{LABELS_SETTING} maps {label!r}, but the NLI model's labels are {found}"
            )
        if _letters(meaning) not in _WORDINGS:
            raise ModelError(
                f"{LABELS_SETTING} maps {label!r} to {meaning!r}; "
                "write entailment, neutral or contradiction"
            )
        mapping[_letters(label)] = _WORDINGS[_letters(meaning)]
    return mapping


def _letters(label: str) -> str:
    return re.sub(r"[\W_]+", "", label.casefold())


def _unreadable(found: str) -> str:
    return (
        f"(labels found: {found}); say what each means with {LABELS_SETTING}, for example "
        f"""{LABELS_SETTING}='{{"LABEL_0": "entailment", "LABEL_1": "neutral", """
        """"LABEL_2": "contradiction"}'"""
    )
