"""`halldetect policies`: the rules that audits can be scored with."""

from __future__ import annotations

import json
import sys

from rich.table import Table
from rich.text import Text

from cli.consoles import results_console
from cli.printable import printable
from cli.scoring_service import PolicyVersion, ScoringService
from halldetect.settings import Settings

_EXIT_DONE = 0
_RULES = {
    "claim_value": "claim value",
    "aggregation": "aggregation",
    "granularities": "m",
    "margin": "margin",
    "entailment_threshold": "E ≥",
    "contradiction_threshold": "C ≥",
    "response_threshold": "flag ≥",
}


def show_policies(settings: Settings, *, as_json: bool) -> int:
    """Print the policies of the service, each in its newest version.

    Raises
    ------
    ServiceError
        The service cannot be reached, or failed.
    """
    with ScoringService.of(settings) as service:
        policies = service.policies()
    if as_json:
        items = [policy.model_dump(mode="json") for policy in policies]
        sys.stdout.write(json.dumps({"items": items}, ensure_ascii=False) + "\n")
    else:
        results_console().print(_table(policies))
    return _EXIT_DONE


def _table(policies: list[PolicyVersion]) -> Table:
    table = Table()
    table.add_column("policy")
    table.add_column("version", no_wrap=True)
    for title in _RULES.values():
        table.add_column(title, overflow="fold")
    for policy in policies:
        rules = [Text(_shown(policy.rules.get(rule))) for rule in _RULES]
        table.add_row(Text(printable(policy.name)), Text(printable(policy.version)), *rules)
    return table


def _shown(rule: object) -> str:
    if rule is None:
        return "all"
    if isinstance(rule, list):
        return ", ".join(map(str, rule))
    return printable(str(rule))
