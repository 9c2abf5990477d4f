"""The `halldetect` command: its options, and the one place where errors become exit codes.

0: done, whatever the verdict. 1: flagged, and asked to tell by ``--fail-on``. 2: bad usage or
input, or audits that failed. 3: a model is missing or broken. 4: the service cannot be reached or
is not ready. 70: a fault of the program itself. 130: interrupted.
"""

from __future__ import annotations

import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.audit_commands import add_audit_commands
from cli.consoles import OutputError, prepare_streams, tell
from cli.key_commands import keys
from cli.operation_commands import add_operation_commands
from cli.printed_addresses import forget_printed_addresses
from cli.service_commands import add_service_commands
from cli.trail_commands import add_trail_commands
from cli.webhook_commands import webhooks
from halldetect.errors import HallDetectError, InputError, UnavailableError

EXIT_INPUT = 2
EXIT_MODEL = 3
EXIT_SERVICE = 4
EXIT_INTERNAL = 70  # not 1, which says "flagged"
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141  # what a shell shows for a program that a closed pipe ended
# Of help where no terminal shows it: nothing is wrapped, and so nothing is cut short to fit.
_WHOLE_LINES = 10_000


class _ExitCodes(TyperGroup):
    """Runs a command and turns its answer or its error into the exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            _show_unframed(error)
            raise typer.Exit(EXIT_INPUT) from None

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
                _show_unframed(error)  # a usage error, which the library words
                raise typer.Exit(EXIT_INPUT) from None
            traceback.print_exc()
            tell("this is a fault of halldetect, not of your input")
            code = EXIT_INTERNAL
        raise typer.Exit(code or 0)


def _show_unframed(error: Exception) -> None:
    """Show a usage error where no terminal does; in the library's frame its lines would break."""
    show = getattr(error, "show", None)
    if show is None or sys.stderr.isatty():
        raise error
    show()


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
    context_settings={"terminal_width": _WHOLE_LINES},
    help="Audit LLM answers against their sources: claims, evidence, and one FEDscore.",
    epilog="Exit codes: 0 done, 1 flagged (with --fail-on), 2 bad usage or input, "
    "3 model missing or broken, 4 service not there. Settings come from HALLDETECT_* variables; "
    "options win.",
)


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
    printed = forget_printed_addresses()
    if printed and ctx.invoked_subcommand == "up":
        names = ", ".join(printed)
        tell(
            f"not used, since `halldetect env` printed it for other programs: {names}; "
            "HALLDETECT_DATABASE_URL and HALLDETECT_REDIS_URL name servers of your own"
        )


add_audit_commands(app)
add_service_commands(app)
add_trail_commands(app)
add_operation_commands(app)
app.add_typer(keys, name="keys")
app.add_typer(webhooks, name="webhooks")


def main() -> None:
    """Run the command; the console script."""
    prepare_streams()
    if not sys.stdout.isatty():
        app.rich_markup_mode = None  # no frames around help
    try:
        app(prog_name="halldetect")
    except OutputError as error:  # from a help page, which no command prints
        sys.exit(_output_lost(error))
