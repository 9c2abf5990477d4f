import pytest

from halldetect.trail import AuditResult

PAIR = ("--source", "S.txt", "--response", "R.txt")
TRUE = "The council approved the transit plan on Tuesday."
FALSE = "There will be no work in March."
C_LOCALE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_a_supported_a_contradicted_and_a_silent_sentence_are_told_apart(halldetect, texts):
    folder = texts(response=f"{TRUE} {FALSE} Thank you!")
    done = halldetect("audit", *PAIR, cwd=folder, COLUMNS="200")
    output = done.stdout.decode()
    assert done.returncode == 0
    assert done.stderr == b""
    assert "FEDscore" in output
    assert "hallucinated" in output
    assert "2 claims: 1 supported, 1 contradicted, 0 unsupported" in output
    assert "“The council approved the transit plan on Tuesday.”" in output
    assert "source 0–49" in output
    assert "greeting: “Thank you!” (response 82–92)" in output
    assert "models: extractor sentences; NLI" in output
    assert "\x1b" not in output


def test_json_is_the_whole_trail_byte_true_in_any_locale(halldetect, texts):
    response = "The café at the terminus will stay open.\r\nRent is 9 €."
    folder = texts(response=response)
    done = halldetect("audit", *PAIR, "--json", cwd=folder, **C_LOCALE)
    assert done.returncode == 0
    result = AuditResult.model_validate_json(done.stdout)
    spans = [response[claim.span.start : claim.span.end] for claim in result.claims]
    assert spans == ["The café at the terminus will stay open.", "Rent is 9 €."]
    source = (folder / "S.txt").read_text(encoding="utf-8")
    for claim in result.claims:
        assert (
            claim.entailment.text
            == source[claim.entailment.span.start :][: len(claim.entailment.text)]
        )
    assert len(result.matrix.entailment) == 2


@pytest.mark.parametrize("side", ["source", "response"])
def test_standard_input_is_utf8_in_any_locale(halldetect, texts, side):
    folder = texts(response="The café at the terminus will stay open.")
    files = {"source": "S.txt", "response": "R.txt"}
    content = (folder / files[side]).read_bytes()
    files[side] = "-"
    done = halldetect(
        "audit", "--source", files["source"], "--response", files["response"],
        cwd=folder, stdin=b"\xef\xbb\xbf" + content, **C_LOCALE,
    )  # fmt: skip
    assert done.returncode == 0
    assert "café" in done.stdout.decode()


def test_fail_on_hallucinated_and_the_options_reach_the_trail(halldetect, texts):
    folder = texts(response=FALSE)
    options = ("--policy", "paper", "--preselect", "1", "--extraction-mode", "paper")
    done = halldetect(
        "audit", *PAIR, *options, "--extractor", "sentences", "--nli", "onnx", "--profile",
        "embedded", "--fail-on", "hallucinated", "--json", cwd=folder,
        HALLDETECT_EXTRACTOR="llama", HALLDETECT_POLICY="embedded",
    )  # fmt: skip
    assert done.returncode == 1
    result = AuditResult.model_validate_json(done.stdout)
    assert result.policy.name == "paper"
    assert result.extraction_mode == "paper"
    assert result.claims[0].checked_spans == 1
    assert result.models["extractor"]["backend"] == "sentences"


@pytest.mark.parametrize("response", ["", "Thanks! You're welcome.\n"])
def test_a_response_without_claims_has_no_number(halldetect, texts, response):
    folder = texts(response=response)
    done = halldetect("audit", *PAIR, "--fail-on", "hallucinated", cwd=folder)
    assert done.returncode == 0
    assert "no checkable claims" in done.stdout.decode()
    assert "FEDscore" not in done.stdout.decode()


def test_the_language_model_extracts_claims(halldetect, texts):
    folder = texts(response=f"{TRUE} {FALSE}")
    done = halldetect("audit", *PAIR, "--extractor", "llama", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    result = AuditResult.model_validate_json(done.stdout)
    assert result.models["extractor"]["backend"] == "llama"
    assert result.generations[0].output_tokens > 0
    assert {claim.verdict.value for claim in result.claims} == {"supported", "contradicted"}


def test_escape_codes_and_markup_in_the_texts_are_shown_as_text(halldetect, texts):
    hostile = "[red]The council[/red] approved \x1b[2J\x1b]0;pwned\x07 the transit plan on Tuesday."
    done = halldetect("audit", *PAIR, cwd=texts(source=hostile, response=hostile))
    output = done.stdout.decode()
    assert done.returncode == 0
    assert not {"\x1b", "\x07"} & set(output)
    assert "[red]The council[/red]" in output
    assert "\\x1b[2J" in output


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("café".encode("latin-1"), "S.txt: byte 4 (0xe9) is not UTF-8"),
        (b"A\0B", "S.txt: has a NUL character at position 1"),
        (b"", "S.txt: the source is empty or only white space"),
        (b" \n\n", "S.txt: the source is empty or only white space"),
    ],
)
def test_unusable_sources_are_refused_in_one_line(halldetect, texts, source, message):
    assert_refused(halldetect("audit", *PAIR, cwd=texts(source=source)), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--source", "none.txt", "--response", "R.txt"), "none.txt: there is no such file"),
        (("--source", ".", "--response", "R.txt"), ".: is a directory"),
        (("--source", "S.txt", "--response", "."), ".: is a directory"),
        (("--source", "-", "--response", "-"), "cannot both be standard input"),
        (("--source", "S.txt"), "give --source FILE and --response FILE"),
        ((), "give --source FILE and --response FILE"),
        ((*PAIR, "--out", "x"), "leave out --out"),
        (("--jsonl", "S.txt"), "--jsonl needs --out"),
        ((*PAIR, "--jsonl", "S.txt", "--out", "o"), "leave out --source, --response"),
        ((*PAIR, "--policy", "nope"), "no policy is called 'nope'"),
    ],
)
def test_bad_usage_is_refused_in_one_line(halldetect, texts, arguments, message):
    assert_refused(halldetect("audit", *arguments, cwd=texts()), message)


@pytest.mark.parametrize("arguments", [("--extractor", "none"), ("--preselect", "0"), ("--nope",)])
def test_unknown_options_are_usage_errors(halldetect, texts, arguments):
    done = halldetect("audit", *PAIR, *arguments, cwd=texts())
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_settings_that_cannot_be_used_are_named(halldetect, texts):
    done = halldetect("audit", *PAIR, cwd=texts(), HALLDETECT_TOKEN_BUDGET="many")
    assert_refused(done, "HALLDETECT_TOKEN_BUDGET")
    done = halldetect("audit", *PAIR, cwd=texts(), HALLDETECT_MAX_CHARACTERS="10")
    assert_refused(done, "HALLDETECT_MAX_CHARACTERS")


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ((), {"HALLDETECT_NLI_MODEL": "nowhere"}, "nowhere"),
        (("--extractor", "llama"), {"HALLDETECT_EXTRACTOR_MODEL": "none.gguf"}, "none.gguf"),
        (("--extractor", "llama"), {"HALLDETECT_EXTRACTOR_MODEL": "S.txt"}, "no GGUF file"),
        (("--profile", "paper", "--extractor", "llama"), {}, "HALLDETECT_EXTRACTOR_MODEL"),
    ],
)
def test_missing_and_broken_models_exit_with_three(
    halldetect, texts, arguments, environment, message
):
    done = halldetect("audit", *PAIR, *arguments, cwd=texts(), **environment)
    assert_refused(done, message, code=3)


def assert_refused(done, message, code=2):
    errors = done.stderr.decode()
    assert done.returncode == code, errors
    assert done.stdout == b""
    assert errors.startswith("halldetect: ")
    assert errors.count("\n") == 1
    assert message in errors
