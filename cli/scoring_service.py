"""The policy and scoring part of the service's API."""

from __future__ import annotations

import uuid
from datetime import datetime
from functools import partial
from typing import Any

from cli.client.answers import Answer, read_answer
from cli.client.service import Service
from db.comparison import Comparison, PolicyName
from db.models import RescoringState

_JSON = {"Content-Type": "application/json"}
_COMPARISON_SECONDS = 600.0

_read = partial(read_answer, about="scorings")


class Skip(Answer):
    """Audits that cannot be scored under the policy."""

    reason: str
    audits: int
    example: str


class Scoring(Answer):
    """A rescoring, as it stands."""

    id: str
    status: RescoringState
    policy: PolicyName
    total: int
    scored: int
    present: int
    skipped: int
    skips: list[Skip]
    error: str | None

    @property
    def done(self) -> int:
        """Audits that were looked at."""
        return self.scored + self.present + self.skipped

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be done."""
        return self.status in (RescoringState.COMPLETED, RescoringState.FAILED)


class PolicyVersion(Answer):
    """A policy in its newest version."""

    name: str
    version: str
    created_at: datetime
    rules: dict[str, Any]


class _PolicyList(Answer):
    items: list[PolicyVersion]


class ScoringService(Service):
    """A running service, as somebody who tries policies uses it; raises as `Service` does."""

    def policies(self) -> list[PolicyVersion]:
        """Return all policies by name."""
        return _read(_PolicyList, self._document(self._request("GET", "/v1/policies"))).items

    def create_policy(self, body: bytes) -> PolicyVersion:
        """Store a policy that stands in a JSON document, unless it is there."""
        answer = self._request(
            "POST", "/v1/policies", is_repeatable=True, content=body, headers=_JSON
        )
        return _read(PolicyVersion, self._document(answer))

    def submit_scoring(self, policy: str, selection: dict[str, Any]) -> Scoring:
        """Ask for a selection to be scored under a policy."""
        body = {"policy": policy, "selection": selection}
        answer = self._request(
            "POST",
            "/v1/scorings",
            is_repeatable=True,
            json=body,
            headers={"Idempotency-Key": str(uuid.uuid4())},
        )
        return _read(Scoring, self._document(answer))

    def scoring(self, scoring_id: str) -> Scoring:
        """Return how far a rescoring is."""
        path = f"/v1/scorings/{scoring_id}"
        return _read(Scoring, self._document(self._request("GET", path)))

    def comparison(self, scoring_id: str, *, against: str | None, examples: int) -> Comparison:
        """Return what a rescoring changes; a million claims take the service some seconds."""
        query: dict[str, str | int] = {"examples": examples}
        if against is not None:
            query["against"] = against
        path = f"/v1/scorings/{scoring_id}/comparison"
        answer = self._request("GET", path, params=query, timeout=_COMPARISON_SECONDS)
        return _read(Comparison, self._document(answer))
