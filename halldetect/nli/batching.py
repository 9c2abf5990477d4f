"""Batches of similar length under a budget of padded tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]

# On a CPU larger batches bring more padding and little else: benchmarks/nli_throughput.py found
# 5, 11, 21 and 34 % of padding at 1024, 2048, 4096 and 8192 tokens among 200 mixed pairs.
DEFAULT_TOKEN_BUDGET = 2048


@dataclass(frozen=True, slots=True)
class BatchStatistics:
    """What a plan makes an encoder compute.

    Parameters
    ----------
    batches, pairs : int
        How many of each.
    tokens : int
        Tokens of the pairs themselves.
    padded_tokens : int
        Tokens with padding: what the encoder works through.
    token_budget : int
        Most padded tokens a batch was allowed.
    """

    batches: int
    pairs: int
    tokens: int
    padded_tokens: int
    token_budget: int

    def __add__(self, other: BatchStatistics) -> BatchStatistics:
        """Add the counts of two plans made under the same budget.

        Raises
        ------
        ValueError
            When the budgets differ: the fill of the sum would mean nothing.
        """
        if self.token_budget != other.token_budget:
            raise ValueError(
                f"plans under budgets of {self.token_budget} and {other.token_budget} tokens "
                "have no common fill"
            )
        return BatchStatistics(
            batches=self.batches + other.batches,
            pairs=self.pairs + other.pairs,
            tokens=self.tokens + other.tokens,
            padded_tokens=self.padded_tokens + other.padded_tokens,
            token_budget=self.token_budget,
        )

    @property
    def padding_ratio(self) -> float:
        """Share of the computed tokens that is padding, 0 to 1."""
        return 1 - self.tokens / self.padded_tokens if self.padded_tokens else 0.0

    @property
    def fill(self) -> float:
        """Mean share of the budget that the batches use; above 1 where one item exceeds it."""
        return self.padded_tokens / (self.batches * self.token_budget) if self.batches else 0.0


def plan_batches(lengths: NDArray[np.integer], token_budget: int) -> list[Indices]:
    """Cut items into batches of similar length.

    Longest first: a machine too small for the plan fails on the first batch and not after
    hours, and every batch is padded to its first item.

    Parameters
    ----------
    lengths : integer array (n,)
        Tokens of each item, special tokens included; at least 1.
    token_budget : int
        Most padded tokens (longest times count) in a batch. An item that alone exceeds it is a
        batch of its own.

    Returns
    -------
    list of int64 array
        Indices into `lengths`; every item is in exactly one batch.

    Raises
    ------
    ValueError
        When the budget or a length is below 1.
    """
    if token_budget < 1:
        raise ValueError(f"token_budget must be at least 1, not {token_budget}")
    if len(lengths) and int(np.min(lengths)) < 1:
        raise ValueError("every length must be at least 1")
    longest_first = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    batches: list[Indices] = []
    start = 0
    while start < len(longest_first):
        longest = int(lengths[longest_first[start]])
        count = max(1, token_budget // longest)
        batches.append(longest_first[start : start + count])
        start += count
    return batches


def batch_statistics(
    lengths: NDArray[np.integer], batches: Sequence[Indices], token_budget: int
) -> BatchStatistics:
    """Count what a plan costs.

    Parameters
    ----------
    lengths : integer array (n,)
        Tokens of each item.
    batches : sequence of int64 array
        The plan, from `plan_batches` or elsewhere.
    token_budget : int
        The budget it was made for.

    Returns
    -------
    BatchStatistics
        Tokens, padding and fill of the whole plan.
    """
    sizes = [lengths[batch] for batch in batches]
    return BatchStatistics(
        batches=len(batches),
        pairs=sum(len(size) for size in sizes),
        tokens=sum(int(size.sum()) for size in sizes),
        padded_tokens=sum(int(size.max()) * len(size) for size in sizes),
        token_budget=token_budget,
    )
