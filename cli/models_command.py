"""`halldetect models`: what is installed, and what a profile still lacks."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.consoles import results_console
from cli.inventory import BundledNli, Extractor, Inventory, ModelFile, ProfileState, take_inventory
from cli.printable import printable
from halldetect.settings import Profile

_EXIT_DONE, _EXIT_LACKS = 0, 3


def show_models(profile: Profile | None, *, as_json: bool) -> int:
    """Print the inventory.

    Parameters
    ----------
    profile : Profile or None
        The one to look at; None looks at all and never changes the exit code.
    as_json : bool
        Print JSON, with whole digests.

    Returns
    -------
    int
        3 when `profile` lacks something, else 0.

    Raises
    ------
    InputError
        When a setting in the environment cannot be used.
    """
    inventory = take_inventory(list(Profile) if profile is None else [profile])
    if as_json:
        sys.stdout.write(inventory.model_dump_json(indent=2) + "\n")
    else:
        _print(results_console(), inventory)
    lacks = profile is not None and any(state.lacks for state in inventory.profiles)
    return _EXIT_LACKS if lacks else _EXIT_DONE


def _print(console: Console, inventory: Inventory) -> None:
    _print_nli(console, inventory.nli)
    _print_extractor(console, inventory.extractor)
    _print_libraries(console, inventory.libraries)
    for state in inventory.profiles:
        _print_profile(console, state)


def _print_nli(console: Console, nli: BundledNli) -> None:
    console.print(Text("bundled NLI encoder", style="bold"))
    console.print(Text(f"  in {printable(nli.path)}"), soft_wrap=True)
    if nli.fault:
        console.print(Text(f"  {printable(nli.fault)}", style="bold red"), soft_wrap=True)
    else:
        console.print(f"  labels {', '.join(nli.labels)}; reads {nli.max_tokens} tokens")
    _print_files(console, nli.files)


def _print_extractor(console: Console, extractor: Extractor) -> None:
    console.print(Text("bundled extractor", style="bold"))
    if extractor.file is None:
        fault = printable(extractor.fault or "not installed")
        console.print(Text(f"  {fault}", style="bold red"), soft_wrap=True)
        return
    folder, _, _ = extractor.file.path.rpartition("/")
    console.print(Text(f"  in {printable(folder)}"), soft_wrap=True)
    _print_files(console, [extractor.file])


def _print_files(console: Console, files: list[ModelFile]) -> None:
    table = Table()
    table.add_column("file")
    table.add_column("what it is")
    table.add_column("size", justify="right")
    table.add_column("SHA-256")
    for file in files:
        damaged = file.intact is False
        shown = f"{file.sha256[:12]}…" if console.is_terminal else file.sha256
        digest = shown + (" differs from the manifest" if damaged else "")
        table.add_row(
            Text(printable(file.path.rpartition("/")[2])),
            file.role,
            _size(file.bytes),
            Text(digest, style="bold red" if damaged else ""),
        )
    console.print(table)


def _print_libraries(console: Console, libraries: dict[str, str | None]) -> None:
    table = Table(title=Text("libraries", style="bold"), title_justify="left", show_header=False)
    for name, version in libraries.items():
        table.add_row(name, version or Text("not installed", style="yellow"))
    console.print(table)


def _print_profile(console: Console, state: ProfileState) -> None:
    if not state.lacks:
        console.print(Text(f"profile {state.profile.value}: complete", style="green"))
        return
    console.print(Text(f"profile {state.profile.value} lacks:", style="yellow"))
    for lack in state.lacks:
        console.print(Text(f"  {printable(lack)}"), soft_wrap=True)


def _size(count: int) -> str:
    if count < 100_000:
        return f"{count:,} B"
    return f"{count / 1_000_000:,.1f} MB"
