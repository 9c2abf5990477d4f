"""The protocol every NLI backend follows."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from halldetect.nli.pair_tokenizer import PaddedBatch, PairTokenizer
from halldetect.provenance import ModelProvenance


class NliModel(Protocol):
    """A 3-way classifier of text pairs, loaded once and used for every batch."""

    @property
    def tokenizer(self) -> PairTokenizer:
        """The tokenizer that this encoder was trained with."""

    @property
    def max_tokens(self) -> int:
        """Most tokens a pair may have, special tokens included; the encoder's own limit."""

    @property
    def provenance(self) -> ModelProvenance:
        """Identity of the model behind the probabilities."""

    def logits(self, batch: PaddedBatch) -> NDArray[np.float32]:
        """Run the encoder once.

        Parameters
        ----------
        batch : PaddedBatch
            Pairs, none longer than `max_tokens`.

        Returns
        -------
        float32 array (n_pairs, 3)
            Scores before the softmax: entailment, neutral, contradiction.
        """
