"""The `halldetect` command: its options, and the one place where errors become exit codes.

0: done, whatever the verdict. 1: flagged, and asked to tell by ``--fail-on``. 2: bad usage or
input. 3: a model is missing or broken. 70: a fault of the program itself. 130: interrupted.
"""

from __future__ import annotations

import sys
import traceback
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.consoles import OutputError, prepare_streams, tell
from halldetect.claims.model import ExtractionMode
from halldetect.errors import HallDetectError, InputError
from halldetect.settings import ExtractorBackend, NliBackend, Profile

EXIT_INPUT = 2
EXIT_MODEL = 3
EXIT_INTERNAL = 70  # not 1, which says "flagged"
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141  # what a shell shows for a program that a closed pipe ended


class FailOn(StrEnum):
    """What makes the exit code 1."""

    HALLUCINATED = "hallucinated"


class _ExitCodes(TyperGroup):
    """Runs a command and turns its answer or its error into the exit code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe still gets its exit code
        except InputError as error:
            tell(str(error))
            code = EXIT_INPUT
        except HallDetectError as error:
            tell(str(error))
            code = EXIT_MODEL
        except KeyboardInterrupt as interrupt:
            tell(str(interrupt) or "interrupted")
            code = EXIT_INTERRUPTED
        except BrokenPipeError:
            _silence_output()
            code = EXIT_PIPE_CLOSED
        except OutputError as error:
            code = _output_lost(error)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("click", "typer"):
                raise  # a usage error, which the library words
            traceback.print_exc()
            tell("this is a fault of halldetect, not of your input")
            code = EXIT_INTERNAL
        raise typer.Exit(code or 0)


def _output_lost(error: OutputError) -> int:
    """Say that results cannot be written, and return the exit code."""
    _silence_output()
    tell(f"standard output cannot be written ({error.strerror})")
    return EXIT_INPUT


def _silence_output() -> None:
    """Let Python's own flush at the end write to nowhere instead of to what refused it."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=_ExitCodes,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Audit LLM answers against their sources: claims, evidence, and one FEDscore.",
    epilog="Exit codes: 0 done, 1 flagged (with --fail-on), 2 bad usage or input, "
    "3 model missing or broken. Settings come from HALLDETECT_* variables; options win.",
)

ExtractorOption = Annotated[
    ExtractorBackend | None,
    typer.Option("--extractor", help="Who proposes claims: a language model, or no model at all."),
]
ProfileOption = Annotated[
    Profile | None, typer.Option("--profile", help="A coherent choice of models and policy.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the whole trail as JSON.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="Quote evidence in full and list rejected lines.")
]


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"halldetect {version_of('halldetect')}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@app.command()
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
    profile: ProfileOption = None,
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
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
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
        _refuse(
            "--jsonl reads sources and responses from its lines and writes to --out",
            {"--source": source, "--response": response, "--json": as_json, "--verbose": verbose},
        )
        if out is None:
            raise InputError("--jsonl needs --out FILE (- for standard output)")
        from cli.jsonl_audit import audit_jsonl

        return audit_jsonl(jsonl, out, settings, fail_on_hallucinated=fail_on is not None)
    _refuse("--out goes with --jsonl", {"--out": out})
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


@app.command()
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


@app.command()
def demo(
    extractor: ExtractorOption = ExtractorBackend.SENTENCES,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the three trails as JSON lines.")
    ] = False,
    verbose: VerboseOption = False,
) -> int:
    """Audit three answers that come with the program: one faithful, two with a planted fault."""
    from cli.demo_command import run_demo

    return run_demo(extractor or ExtractorBackend.SENTENCES, as_json=as_json, verbose=verbose)


def _refuse(reason: str, options: dict[str, Any]) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(f"{reason}: leave out {', '.join(given)}")


def main() -> None:
    """Run the command; the console script."""
    prepare_streams()
    try:
        app(prog_name="halldetect")
    except OutputError as error:  # from a help page, which no command prints
        sys.exit(_output_lost(error))
