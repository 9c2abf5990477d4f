"""The commands and the output that the documents show are real."""

import json
import re
from pathlib import Path

import pytest

import halldetect as package

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    \.venv/bin/halldetect (.+)$", README, flags=re.MULTILINE)
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


@pytest.fixture
def folder(tmp_path):
    """A folder in which the README's commands work, with a file of records."""
    (tmp_path / "cli").symlink_to(REPOSITORY / "cli")
    record = {"source": "The mill closed in 1998.", "response": "The mill closed.", "id": "a"}
    (tmp_path / "answers.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_the_readme_runs(halldetect, folder, line):
    done = halldetect(*line.split(), cwd=folder)
    lacks_paper_models = "--profile paper" in line
    assert done.returncode == (3 if lacks_paper_models else 0), done.stderr.decode()


def test_the_readme_has_commands():
    assert len(COMMANDS) >= 3


def test_the_output_in_the_readme_is_what_the_command_prints(halldetect, folder):
    line = next(command for command in COMMANDS if "ferry" in command)
    printed = halldetect(*line.split(), cwd=folder).stdout.decode()
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
