"""The `halldetect` command: its options, and the one place where errors become exit codes.

0: done, whatever the verdict. 1: flagged, and asked to tell by ``--fail-on``. 2: bad usage or
input, or audits that failed. 3: a model is missing or broken. 4: the service cannot be reached or
is not ready. 70: a fault of the program itself. 130: interrupted.
"""

from __future__ import annotations

import sys
import traceback
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.consoles import OutputError, prepare_streams, tell
from cli.key_commands import keys
from cli.operation_commands import add_operation_commands
from cli.trail_commands import add_trail_commands
from cli.webhook_commands import webhooks
from halldetect.claims.model import ExtractionMode
from halldetect.errors import HallDetectError, InputError, UnavailableError
from halldetect.settings import ExtractorBackend, NliBackend, Profile

EXIT_INPUT = 2
EXIT_MODEL = 3
EXIT_SERVICE = 4
EXIT_INTERNAL = 70  # not 1, which says "flagged"
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141  # what a shell shows for a program that a closed pipe ended
_LARGEST_ID = 2**63 - 1


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
        except UnavailableError as error:
            tell(str(error))
            code = EXIT_SERVICE
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
    "3 model missing or broken, 4 service not there. Settings come from HALLDETECT_* variables; "
    "options win.",
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


BatchArgument = Annotated[
    int, typer.Argument(metavar="BATCH", min=1, max=_LARGEST_ID, help="Number of the batch.")
]


@app.command()
def submit(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="One JSON object a line; - is standard input.")
    ],
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the batch to its end and sum it up.")
    ] = False,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="NAME", help="For lines that name none.")
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option("--priority", min=-100, max=100, help="For lines that have none."),
    ] = None,
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="With --wait: exit with 1 if any response is flagged."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the batch as JSON.")] = False,
) -> int:
    """Submit a file of records to the service, as one batch: all of it or nothing.

    Lines are those of `halldetect audit --jsonl`. With --wait the exit code is 2 if any audit
    failed. Ctrl-C ends the waiting and not the batch.
    """
    if fail_on is not None and not wait:
        raise InputError("--fail-on needs --wait: without it nothing is known yet")
    from cli.client.submit_command import submit_file
    from halldetect.settings import load_settings

    return submit_file(
        source,
        load_settings(),
        policy=policy,
        priority=priority,
        wait=wait,
        as_json=as_json,
        fail_on_hallucinated=fail_on is not None,
    )


@app.command()
def status(
    batch: Annotated[
        int | None,
        typer.Argument(metavar="[BATCH]", min=1, max=_LARGEST_ID, help="Number of a batch."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the batch to its end and sum it up.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Show how a batch is doing or, without one, what runs on this machine."""
    from halldetect.settings import load_settings

    settings = load_settings()
    if batch is not None:
        from cli.client.status_command import show_batch

        return show_batch(batch, settings, wait=wait, as_json=as_json)
    _refuse("without a batch there is nothing to wait for", {"--wait": wait})
    if settings.api_url is not None:
        tell("this is the stack of this machine; HALLDETECT_API_URL counts for `status BATCH`")
    from cli.stack.status_command import show_stack

    return show_stack(settings, as_json=as_json)


@app.command()
def results(
    batch: BatchArgument,
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="Where to; - is standard output.")
    ] = "-",
    matrix: Annotated[
        bool, typer.Option("--matrix", help="With every probability; most of a trail.")
    ] = False,
) -> int:
    """Print the trail of every audit of a batch, one JSON object a line, in the file's order."""
    from cli.client.results_command import write_results
    from halldetect.settings import load_settings

    return write_results(batch, load_settings(), out=out, with_matrix=matrix)


@app.command()
def cancel(
    batch: BatchArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print the batch as JSON.")] = False,
) -> int:
    """Cancel what is still waiting of a batch; what is finished stays."""
    from cli.client.cancel_command import cancel_batch
    from halldetect.settings import load_settings

    return cancel_batch(batch, load_settings(), as_json=as_json)


@app.command()
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the service running, for a look around.")
    ] = False,
    extractor: ExtractorOption = ExtractorBackend.SENTENCES,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the trails as JSON lines.")
    ] = False,
) -> int:
    """Start the service, submit the answers that come with it, and show what is found.

    Some of them have a planted fault. The demo has a home folder of its own,
    halldetect-demo beside the usual one, and touches no other.
    """
    from cli.demo_command import run_demo

    return run_demo(extractor or ExtractorBackend.SENTENCES, keep=keep, as_json=as_json)


@app.command()
def up(
    home: Annotated[
        Path | None, typer.Option("--home", metavar="DIR", help="Where data and logs are kept.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Where the API listens.")
    ] = None,
    extractor: ExtractorOption = None,
    extraction_workers: Annotated[
        int, typer.Option("--extraction-workers", min=1, help="Processes that extract claims.")
    ] = 1,
    nli_workers: Annotated[
        int, typer.Option("--nli-workers", min=1, help="Processes that verify claims.")
    ] = 1,
) -> int:
    """Run the service on this machine: Postgres, Valkey, API, workers and Flower, until Ctrl-C.

    Everything listens on loopback, and the data outlives the command. DATABASE_URL and REDIS_URL
    make it use servers that you already have. A port that is taken is replaced by a free one.
    """
    from cli.stack.up_command import run_up
    from halldetect.settings import load_settings

    settings = load_settings(home=home, api_port=port, extractor=extractor)
    return run_up(settings, extraction_workers=extraction_workers, nli_workers=nli_workers)


add_trail_commands(app)
add_operation_commands(app)
app.add_typer(keys, name="keys")
app.add_typer(webhooks, name="webhooks")


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
