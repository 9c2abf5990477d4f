"""Commands that need no service: audit texts in this process, and show the models."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import ExtractorOption, FailOn, refuse_options
from halldetect.claims.model import ExtractionMode
from halldetect.errors import InputError
from halldetect.settings import NliBackend, Profile


def add_audit_commands(app: typer.Typer) -> None:
    """Make them commands of `app`."""
    for command in (audit, models):
        app.command()(command)


def audit(
    source: Annotated[
        str | None,
        typer.Option("--source", metavar="FILE", help="The document; - is standard input."),
    ] = None,
    response: Annotated[
        str | None,
        typer.Option("--response", metavar="FILE", help="The answer; - is standard input."),
    ] = None,
    jsonl: Annotated[
        str | None,
        typer.Option("--jsonl", metavar="FILE", help="Many records, one JSON object a line."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Results of --jsonl; - is standard output."),
    ] = None,
    extractor: ExtractorOption = None,
    nli: Annotated[NliBackend | None, typer.Option("--nli", help="What runs the encoder.")] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="NAME", help="Rules to score with.")
    ] = None,
    profile: Annotated[
        Profile | None, typer.Option("--profile", help="A coherent choice of models and policy.")
    ] = None,
    preselect: Annotated[
        int | None,
        typer.Option(
            "--preselect", min=1, metavar="K", help="Check only the K best spans a claim (BM25)."
        ),
    ] = None,
    extraction_mode: Annotated[
        ExtractionMode | None,
        typer.Option("--extraction-mode", help="With repair, or the paper's single pass."),
    ] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option("--fail-on", help="Exit with 1 if any response is flagged.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole trail as JSON.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Quote evidence in full and list rejected lines.")
    ] = False,
) -> int:
    r"""Audit a response against its source: --source and --response, or --jsonl and --out.

    Texts are UTF-8 whatever the locale. A byte order mark at the start of a file is dropped; all
    other characters stay as they are, and offsets count characters.

    A line of --jsonl has "source" and "response" and may have "custom_id", "context", "metadata"
    and "policy"; blank lines are passed over. Each line of --out answers one line: its number
    and SHA-256, then the trail, or the error. The same command again goes on where it was
    stopped; lines that have an answer keep it, failed ones too: delete the file to start over.
    """
    from halldetect.settings import load_settings

    settings = load_settings(
        extractor=extractor,
        nli=nli,
        policy=policy,
        profile=profile,
        preselected_spans=preselect,
        extractor_mode=extraction_mode,
    )
    if jsonl is not None:
        refuse_options(
            "--jsonl reads sources and responses from its lines and writes to --out",
            {"--source": source, "--response": response, "--json": as_json, "--verbose": verbose},
        )
        if out is None:
            raise InputError("--jsonl needs --out FILE (- for standard output)")
        from cli.jsonl_audit import audit_jsonl

        return audit_jsonl(jsonl, out, settings, fail_on_hallucinated=fail_on is not None)
    refuse_options("--out goes with --jsonl", {"--out": out})
    if source is None or response is None:
        raise InputError("give --source FILE and --response FILE, or --jsonl FILE and --out FILE")
    from cli.audit_command import audit_texts

    return audit_texts(
        source,
        response,
        settings,
        as_json=as_json,
        verbose=verbose,
        fail_on_hallucinated=fail_on is not None,
    )


def models(
    profile: Annotated[
        Profile | None,
        typer.Option("--profile", help="Say what this profile lacks; exit with 3 if it does."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Show which models and libraries are installed, and what each profile still lacks."""
    from cli.models_command import show_models

    return show_models(profile, as_json=as_json)
