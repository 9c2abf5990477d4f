"""Commands that start the service and give it work: up, demo, and batches from end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.consoles import tell
from cli.options import LARGEST_ID, BatchArgument, ExtractorOption, FailOn, refuse_options
from halldetect.errors import InputError
from halldetect.settings import ExtractorBackend


def add_service_commands(app: typer.Typer) -> None:
    """Make them commands of `app`."""
    for command in (submit, status, results, cancel, demo, up):
        app.command()(command)


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


def status(
    batch: Annotated[
        int | None,
        typer.Argument(metavar="BATCH", min=1, max=LARGEST_ID, help="Number of a batch."),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the batch to its end and sum it up.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> int:
    """Show how a batch is doing or, without one, what runs on this machine.

    Where no stack runs here, and DATABASE_URL is set, the workers and lines of that service.
    """
    from halldetect.settings import load_settings

    settings = load_settings()
    if batch is not None:
        from cli.client.status_command import show_batch

        return show_batch(batch, settings, wait=wait, as_json=as_json)
    refuse_options("without a batch there is nothing to wait for", {"--wait": wait})
    if settings.api_url is not None:
        tell("this is the stack of this machine; HALLDETECT_API_URL counts for `status BATCH`")
    from cli.stack.status_command import show_stack

    return show_stack(settings, as_json=as_json)


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


def cancel(
    batch: BatchArgument,
    as_json: Annotated[bool, typer.Option("--json", help="Print the batch as JSON.")] = False,
) -> int:
    """Cancel what is still waiting of a batch; what is finished stays."""
    from cli.client.cancel_command import cancel_batch
    from halldetect.settings import load_settings

    return cancel_batch(batch, load_settings(), as_json=as_json)


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

    Everything listens on loopback (but for HALLDETECT_API_HOST and HALLDETECT_METRICS_HOST), and
    the data outlives the command. DATABASE_URL and REDIS_URL make it use servers that you already
    have, unless `halldetect env` printed them of an embedded stack. A port that is taken is
    replaced by a free one.
    """
    from cli.stack.up_command import run_up
    from halldetect.settings import load_settings

    settings = load_settings(home=home, api_port=port, extractor=extractor)
    return run_up(settings, extraction_workers=extraction_workers, nli_workers=nli_workers)
