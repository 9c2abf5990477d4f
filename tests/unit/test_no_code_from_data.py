"""Nothing that comes in is run as code: what the sources call, and what they let through."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    *("halldetect", "db", "migrations", "queues", "worker", "api", "cli", "models", "benchmarks"),
)
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "runpy.run_path"}
# What may be called with the argument that makes it harmless.
NEEDS = {
    "torch.load": ("weights_only", True),
    "yaml.load": ("Loader", "SafeLoader"),
    "numpy.load": ("allow_pickle", False),
    "np.load": ("allow_pickle", False),
}
NEVER = {"shell": True, "allow_pickle": True, "trust_remote_code": True, "weights_only": False}


def name_of(node):
    """Return the dotted name of what is called, as it is written."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return ""


def value_of(node):
    return node.value if isinstance(node, ast.Constant) else name_of(node).rpartition(".")[2]


def faults(tree):
    """Yield (line, what) of everything that might run what it is given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in MODULES:
                    yield node.lineno, f"import {alias.name}"
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").partition(".")[0] in MODULES:
                yield node.lineno, f"from {node.module}"
        elif isinstance(node, ast.Call):
            name = name_of(node.func)
            arguments = {one.arg: value_of(one.value) for one in node.keywords}
            if name in CALLS or name.endswith(".load_pickle"):
                yield node.lineno, name
            if name in NEEDS and arguments.get(NEEDS[name][0]) != NEEDS[name][1]:
                yield node.lineno, name
            for argument, value in NEVER.items():
                if argument in arguments and arguments[argument] == value:
                    yield node.lineno, f"{name}({argument}={value})"


def test_the_sources_are_found():
    assert len(SOURCES) > 200


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_unpickled_evaluated_or_given_to_a_shell(folder):
    found = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in SOURCES
        if path.is_relative_to(ROOT / folder)
        for line, what in faults(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from marshal import loads",
        "import os\nos.system('x')",
        "eval('1')",
        "import torch\ntorch.load('x')",
        "torch.load('x', weights_only=False)",
        "yaml.load(text)",
        "np.load('x')",
        "subprocess.run('x', shell=True)",
        "AutoModel.from_pretrained('x', trust_remote_code=True)",
    ],
)
def test_each_of_them_would_be_found(source):
    assert [*faults(ast.parse(source))]


def test_no_request_and_no_message_names_a_model_or_a_file():
    """What loads models takes its places from settings, and what reads requests loads none."""
    loaders = {
        "load_extractor",
        "load_nli",
        "load_pair_tokenizer",
        "load_auditor",
        "LlamaExtractor",
    }
    for path in SOURCES:
        if path.relative_to(ROOT).parts[0] in ("api", "queues", "db"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {name_of(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
            assert not names & loaders, path
    for path in (ROOT / "worker").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and name_of(node.func) in loaders:
                assert [name_of(argument) for argument in node.args] == ["settings"], path
