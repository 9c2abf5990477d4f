"""The commands and the output that the documents show are real."""

import json
import os
import pty
import re
import shlex
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import halldetect as package
from cli.stack.run_file import read_running_stack

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    \.venv/bin/halldetect (.+)$", README, flags=re.MULTILINE)
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the README's commands work, with a file of records."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "cli").symlink_to(REPOSITORY / "cli")
    record = {"source": "The mill closed in 1998.", "response": "The mill closed.", "id": "a"}
    (folder / "answers.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def service(folder):
    """The service, started with the README's own command."""
    home = folder / "home"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("HALLDETECT_")}
    command = Path(sys.executable).with_name("halldetect")
    with (folder / "up.txt").open("wb") as output:
        up = subprocess.Popen(
            [command, *SERVICE_COMMANDS[0].split()],
            stdout=output,
            stderr=output,
            env={**inherited, "HALLDETECT_HOME": str(home), "HALLDETECT_EXTRACTOR": "sentences"},
        )
    try:
        while not ((running := read_running_stack(home)) and running.is_ready):
            assert up.poll() is None, (folder / "up.txt").read_text()
            time.sleep(0.2)
        yield running
    finally:
        up.terminate()
        up.wait()


SERVICE_COMMANDS = [line for line in COMMANDS if line.split()[0] not in ("audit", "models")]


@pytest.mark.parametrize("line", [line for line in COMMANDS if line not in SERVICE_COMMANDS])
def test_every_command_of_the_readme_runs(halldetect, folder, line):
    done = halldetect(*line.split(), cwd=folder)
    lacks_paper_models = "--profile paper" in line
    assert done.returncode == (3 if lacks_paper_models else 0), done.stderr.decode()


def test_the_readmes_commands_for_the_service_run_in_their_order(halldetect, folder, service):
    assert SERVICE_COMMANDS[0] == "up"
    for line in SERVICE_COMMANDS[1:]:
        done = halldetect(*line.split(), cwd=folder, HALLDETECT_HOME=folder / "home")
        assert done.returncode == 0, done.stderr.decode()
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["status"] for line in lines} == {"completed"}


def test_the_readmes_request_is_accepted(folder, service):
    (request,) = re.findall(r"^    (curl .+)$", README, flags=re.MULTILINE)
    address = request.split()[-1]
    assert address.startswith("http://127.0.0.1:8000/")  # what `up` takes if it is free
    here = request.replace("http://127.0.0.1:8000", service.api_url)
    done = subprocess.run(shlex.split(here), cwd=folder, capture_output=True, check=True)
    assert json.loads(done.stdout)["status"] == "in_progress"


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 6


def _printed_on_a_terminal(arguments, folder):
    """Run a command on a terminal of 110 columns, without colours."""
    reading, terminal = pty.openpty()
    process = subprocess.Popen(
        [Path(sys.executable).with_name("halldetect"), *arguments],
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "110", "LINES": "40"},
    )
    os.close(terminal)
    printed = b""
    with os.fdopen(reading, "rb", buffering=0) as output, suppress(OSError):  # at the end
        while piece := output.read(65_536):
            printed += piece
    assert process.wait(300) == 0
    return printed.decode().replace("\r\n", "\n")


def test_the_output_in_the_readme_is_what_the_command_prints(folder):
    line = next(command for command in COMMANDS if "ferry" in command)
    printed = _printed_on_a_terminal(line.split(), folder)
    shown = README.split("prints\n\n```\n")[1].split("\n```")[0]
    # The last digits of a probability differ between processors.
    assert _without_digits(shown) == _without_digits(printed)


def _without_digits(text):
    lines = [re.sub(r"\d\.\d{2,}", "N", line).rstrip() for line in text.strip().splitlines()]
    return [line for line in lines if line]


def test_the_python_of_the_readme_runs(capsys, monkeypatch):
    monkeypatch.setenv("HALLDETECT_THREADS", "2")
    code = README.split("```python\n")[1].split("```")[0]
    texts = {"source": "The mill closed in 1998.", "response": "The mill closed in 1998."}
    exec(compile(code, "README.md", "exec"), texts)
    assert texts["result"].claims
    assert capsys.readouterr().out.startswith(str(texts["result"].fedscore))
    assert package.audit is texts["halldetect"].audit


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))
    missing = [link for link in links if not (document.parent / link).exists()]
    assert missing == []


def named_commands():
    """List (document, command, options) of every command line that the documents show."""
    found = set()
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for line in re.findall(r"(?:\.venv/bin/|`|\$ |    )halldetect ([a-z][^`\n]*)", text):
            command, *words = line.split()
            options = tuple(
                word.strip("[].,;") for word in words if word.lstrip("[").startswith("--")
            )
            found.add((document.name, command.strip(".,;:"), options))
    return sorted(found)


@pytest.mark.parametrize(("document", "command", "options"), named_commands())
def test_every_command_that_a_document_names_exists(halldetect, document, command, options):
    shown = halldetect(command, "--help", COLUMNS="200")
    assert shown.returncode == 0, shown.stderr.decode()
    assert [option for option in options if option.encode() not in shown.stdout] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_document_names_exists(document):
    names = re.findall(
        r"(?:benchmarks|models|tests|worker|db|queues|api|cli|halldetect|migrations)/[\w./-]+\.(?:py|sh|md|jsonl)",
        document.read_text(encoding="utf-8"),
    )
    assert [name for name in names if not (REPOSITORY / name).exists()] == []


def test_every_test_that_the_operations_page_names_exists():
    page = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page)) - {"test_compose"}
    written = "\n".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    assert [name for name in named if f"def {name}(" not in written] == []
    assert len(named) > 10
