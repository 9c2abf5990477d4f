"""Commands over audits that are stored: review, verify, rescore, export and prune them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.export_formats import ExportFormat
from cli.options import LARGEST_ID, BatchArgument
from db.exported import Exported
from halldetect.scoring.verdict import Label


def add_trail_commands(app: typer.Typer) -> None:
    """Make them commands of `app`."""
    for command in (review, verify, rescore, policies, export, prune):
        app.command()(command)


def review(
    batch: BatchArgument,
    reviewer: Annotated[
        str | None,
        typer.Option("--reviewer", metavar="NAME", help="Who reviews; by default the login name."),
    ] = None,
) -> int:
    """Walk through the flagged claims of a batch and say whether the source bears them out.

    Keys: a agree, c correct after all (supported), u unsupported, d contradicted, s skip for now,
    q quit. What you said is stored at once and never asked again.
    """
    from cli.review_command import review_batch
    from halldetect.settings import load_settings

    return review_batch(batch, load_settings(), reviewer=reviewer)


def verify(
    audit: Annotated[
        int, typer.Argument(metavar="AUDIT", min=1, max=LARGEST_ID, help="Number of the audit.")
    ],
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", min=0.0, max=1.0, help="Largest difference that is none."),
    ] = 1e-5,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Run a stored audit again with the models that its trail names, and compare.

    Exit codes: 0 reproduced, 1 differs, 3 a model is not here.
    """
    from cli.verify_command import verify_audit
    from halldetect.settings import load_settings

    return verify_audit(audit, load_settings(), tolerance=tolerance, as_json=as_json)


def rescore(
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="NAME", help="Rules to score with.")
    ] = None,
    policy_file: Annotated[
        Path | None,
        typer.Option("--policy-file", metavar="FILE", help="JSON of rules to store, and use."),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="B", min=1, max=LARGEST_ID, help="Only of this batch."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="D", help="Only those submitted then or later; UTC."),
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="D", help="Only those submitted earlier; UTC.")
    ] = None,
    ids: Annotated[
        str | None, typer.Option("--ids", metavar="N,...", help="Only these audits.")
    ] = None,
    label: Annotated[
        Label | None, typer.Option("--label", help="Only those labelled so under their own policy.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="NAME", help="Compare with this policy, not their own."),
    ] = None,
    examples: Annotated[
        int, typer.Option("--examples", min=0, max=100, help="Most audits shown of each kind.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Score completed audits under another policy, from what is stored, and show what changes.

    No model runs. Scores stand side by side: none is replaced, and the default policy stays what
    it is until HALLDETECT_POLICY names another. Without a selection all audits are scored.
    A policy file is one object: {"name": "strict", "rules": {"claim_value": ...}}.
    """
    from cli.rescore_command import Selected, rescore_audits
    from halldetect.settings import load_settings

    return rescore_audits(
        Selected(ids=ids, batch_id=batch, label=label, since=since, before=before),
        load_settings(),
        policy=policy,
        policy_file=policy_file,
        against=against,
        examples=examples,
        as_json=as_json,
    )


def policies(
    as_json: Annotated[bool, typer.Option("--json", help="Print them as JSON.")] = False,
) -> int:
    """List the policies of the service, each in its newest version."""
    from cli.policies_command import show_policies
    from halldetect.settings import load_settings

    return show_policies(load_settings(), as_json=as_json)


def export(
    batch: Annotated[
        int, typer.Option("--batch", metavar="B", min=1, max=LARGEST_ID, help="Which batch.")
    ],
    file_format: Annotated[ExportFormat, typer.Option("--format", help="Of the file.")],
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Where to; - is standard output.")
    ],
    what: Annotated[Exported, typer.Option("--what", help="What a row is.")] = Exported.CLAIMS,
) -> int:
    """Write a batch as a table, with the columns of docs/sql.md."""
    from cli.export_command import export_batch
    from halldetect.settings import load_settings

    return export_batch(batch, load_settings(), file_format=file_format, out=out, what=what)


def prune(
    before: Annotated[
        str, typer.Option("--before", metavar="DATE", help="A day, as 2026-03-01; UTC.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what goes, and what went, as JSON.")
    ] = False,
) -> int:
    """Delete audits that finished before a day, with all that only they need; reviews stay.

    It says first what will go. A batch goes as a whole, when all of it is old. Interrupted, it
    goes on when it is called again.
    """
    from cli.prune_command import prune_database
    from halldetect.settings import load_settings

    return prune_database(before, load_settings(), agreed=yes, as_json=as_json)
