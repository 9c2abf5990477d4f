"""What a whole batch came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import Outcome, Status


class Tally:
    """Counts answers as they come, so that a batch of any size fits."""

    def __init__(self) -> None:
        self.audits = 0
        self.failed = 0
        self.without_claims = 0
        self.labels: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self._scores = 0
        self._score_sum = 0.0

    def add(self, answer: Mapping[str, Any]) -> None:
        """Count one answer, given by the fields of its JSON line."""
        self.audits += 1
        if answer["status"] == Status.FAILED:
            self.failed += 1
            return
        if answer["outcome"] == Outcome.NO_CHECKABLE_CLAIMS:
            self.without_claims += 1
            return
        self.labels[answer["label"]] += 1
        self._scores += 1
        self._score_sum += answer["fedscore"]
        self.verdicts.update({verdict: int(answer["counts"][verdict]) for verdict in Verdict})

    @property
    def hallucinated(self) -> int:
        """Number of responses that were flagged."""
        return self.labels[Label.HALLUCINATED]

    @property
    def mean_fedscore(self) -> float | None:
        """Mean over the audits that have a score, or None."""
        return self._score_sum / self._scores if self._scores else None

    def table(self, *, kept: int, seconds: float) -> Table:
        """Lay the counts out.

        Parameters
        ----------
        kept : int
            Answers of an earlier run among them.
        seconds : float
            Time that this run took, without loading models.
        """
        made = self.audits - kept
        table = Table(show_header=False)
        table.add_column()
        table.add_column(justify="right")
        table.add_row("audits", f"{self.audits:,}" + (f" ({kept:,} kept)" if kept else ""))
        table.add_row("hallucinated", f"{self.hallucinated:,}")
        table.add_row("faithful", f"{self.labels[Label.FAITHFUL]:,}")
        table.add_row("no checkable claims", f"{self.without_claims:,}")
        table.add_row("failed", f"{self.failed:,}", end_section=True)
        if self.mean_fedscore is not None:
            of_scored = f"{self.mean_fedscore:.4f} of {self._scores:,}"
            table.add_row("mean FEDscore", of_scored, end_section=True)
        for verdict in Verdict:
            table.add_row(f"claims {verdict.value}", f"{self.verdicts[verdict]:,}")
        if made and seconds > 0:
            table.add_section()
            table.add_row("rate", f"{made / seconds:,.1f} audits/s")
        return table
