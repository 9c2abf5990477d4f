import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "onnxruntime", "llama_cpp"}


def test_models_shows_what_is_installed_with_short_digests(halldetect):
    done = halldetect("models", HALLDETECT_EXTRACTOR="llama")
    output = done.stdout.decode()
    assert done.returncode == 0
    for text in ("model.onnx", "model.safetensors", ".gguf", "entailment, neutral", "512 tokens"):
        assert text in output
    for library in ("onnxruntime", "llama-cpp-python", "torch", "transformers"):
        assert library in output
    assert "differs" not in output
    assert "profile embedded: complete" in output
    assert "profile paper lacks:" in output
    assert "HALLDETECT_EXTRACTOR_MODEL" in output


def test_models_names_a_setting_that_cannot_be_used(halldetect):
    done = halldetect("models", HALLDETECT_PROFILE="best")
    assert done.returncode == 2
    assert done.stderr.startswith(b"halldetect: HALLDETECT_PROFILE: ")


def test_models_as_json_has_whole_digests(halldetect):
    done = halldetect("models", "--json")
    inventory = json.loads(done.stdout)
    assert all(len(file["sha256"]) == 64 for file in inventory["nli"]["files"])
    assert all(file["intact"] for file in inventory["nli"]["files"])
    assert inventory["nli"]["labels"] == ["entailment", "neutral", "contradiction"]
    assert {state["profile"] for state in inventory["profiles"]} == {"embedded", "paper"}


@pytest.mark.parametrize(
    ("profile", "environment", "code", "message"),
    [
        ("embedded", {"HALLDETECT_EXTRACTOR": "llama"}, 0, "complete"),
        ("embedded", {"HALLDETECT_NLI_MODEL": "nowhere"}, 3, "nowhere/config.json"),
        ("embedded", {"HALLDETECT_EXTRACTOR": "llama", "HALLDETECT_EXTRACTOR_MODEL": "x.gguf"}, 3,
         "x.gguf"),
        ("paper", {"HALLDETECT_EXTRACTOR": "llama"}, 3, "instruct model"),
    ],
)  # fmt: skip
def test_models_of_a_profile_says_what_it_lacks(
    halldetect, tmp_path, profile, environment, code, message
):
    done = halldetect("models", "--profile", profile, cwd=tmp_path, **environment)
    assert done.returncode == code
    assert message in done.stdout.decode()


@pytest.mark.parametrize("arguments", [["--help"], ["audit", "--help"], ["--version"], ["models"]])
def test_help_and_models_load_no_model_library(arguments):
    program = (
        "import sys\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "from cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"loaded = {HEAVY!r} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_version_and_help(halldetect):
    assert halldetect("--version").stdout.decode().startswith("halldetect 0.")
    bare = halldetect()
    assert b"audit" in bare.stdout + bare.stderr
    assert b"byte order mark" in halldetect("audit", "--help", COLUMNS="200").stdout


@pytest.mark.parametrize("arguments", [["models"], ["models", "--json"]])
def test_a_closed_pipe_is_not_taken_for_a_verdict(halldetect_piped, tmp_path, arguments):
    code, errors = halldetect_piped(*arguments, cwd=tmp_path)
    assert code == 141
    assert errors == b""
