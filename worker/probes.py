"""Whose fault an unexpected error is: a model that fails on plain English is broken itself.

A device can fail for good (memory that is gone, a kernel that crashed); blaming every audit that
comes after would fail a whole batch over night.
"""

from __future__ import annotations

import numpy as np

from halldetect.claims.extractor import ClaimExtractor
from halldetect.nli.entailment import pair_probabilities
from halldetect.nli.model import NliModel

_TEXT = "The lamp in the hall is lit."


def encoder_fault(nli: NliModel) -> Exception | None:
    """Return what the encoder raises for one short pair, or None."""
    try:
        ids = nli.tokenizer.encode([_TEXT])[0].ids
        pair_probabilities(nli, [ids], [ids], np.array([(0, 0)]))
    except Exception as error:  # anything at all means that it does not work
        return error
    return None


def extractor_fault(extractor: ClaimExtractor) -> Exception | None:
    """Return what the extractor raises for one short text, or None."""
    try:
        extractor.extract(_TEXT, 1)
    except Exception as error:  # anything at all means that it does not work
        return error
    return None
