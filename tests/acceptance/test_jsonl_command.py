import json
import os
import signal
import subprocess
import time

import pytest

from halldetect.trail import AuditResult

SOURCE = "The council approved the transit plan on Tuesday. Work begins in March — at 9 €."
TRUE = "The council approved the transit plan on Tuesday."
FALSE = "There will be no work in March."
ARGUMENTS = ("audit", "--jsonl", "in.jsonl", "--out", "out.jsonl")


def line(response, **fields):
    return json.dumps({"source": SOURCE, "response": response, **fields}, ensure_ascii=False)


@pytest.fixture
def write_lines(tmp_path):
    def write(*lines):
        (tmp_path / "in.jsonl").write_bytes("".join(f"{line}\n" for line in lines).encode())
        return tmp_path

    return write


def answers(folder):
    return [json.loads(text) for text in (folder / "out.jsonl").read_bytes().splitlines()]


def trail(answer):
    own = ("line", "line_sha256", "settings_sha256")
    assert set(own) <= answer.keys()
    return AuditResult.model_validate({k: v for k, v in answer.items() if k not in own})


def test_a_batch_answers_every_line_resumes_and_tells_failures(halldetect, write_lines):
    folder = write_lines(
        line(TRUE, custom_id="true"),
        line(FALSE, id="false", metadata={"note": "é\u2028"}),
        "{broken",
        "",
        line("Thanks!", custom_id="silent"),
        line(TRUE, custom_id="true"),
    )
    done = halldetect(*ARGUMENTS, "--fail-on", "hallucinated", cwd=folder, LC_ALL="C")
    assert done.returncode == 2
    errors = done.stderr.decode()
    assert "in.jsonl line 3: column 2" in errors
    assert "in.jsonl line 6: custom_id 'true' was already given in line 1" in errors
    first, second, third, fourth, fifth = answers(folder)
    assert trail(first).label == "faithful"
    assert trail(second).label == "hallucinated"
    assert second["metadata"] == {"note": "é\u2028"}
    assert (third["line"], third["custom_id"], third["status"]) == (3, None, "failed")
    assert trail(fourth).outcome == "no_checkable_claims"
    assert (fifth["line"], fifth["custom_id"]) == (6, "true")
    assert "no checkable claims" in done.stdout.decode()

    whole = (folder / "out.jsonl").read_bytes()
    cut = whole.index(b"\n") + 200
    (folder / "out.jsonl").write_bytes(whole[:cut])
    again = halldetect(*ARGUMENTS, cwd=folder)
    assert again.returncode == 2
    assert "its last line was cut short" in again.stderr.decode()
    assert "(1 kept)" in again.stdout.decode()
    assert (folder / "out.jsonl").read_bytes().startswith(whole[: whole.index(b"\n") + 1])
    assert [without_id(answer) for answer in answers(folder)] == [
        without_id(json.loads(text)) for text in whole.splitlines()
    ]

    other = halldetect(*ARGUMENTS, "--policy", "paper", cwd=folder)
    assert other.returncode == 2
    assert "other models, another policy" in other.stderr.decode()
    (folder / "in.jsonl").write_text(line(FALSE) + "\n", encoding="utf-8")
    other = halldetect(*ARGUMENTS, cwd=folder)
    assert other.returncode == 2
    assert "belongs to another input" in other.stderr.decode()


def without_id(answer):
    return {key: value for key, value in answer.items() if key != "id"}


def test_standard_streams_and_the_flagged_exit_code(halldetect, tmp_path):
    content = f"\ufeff{line(TRUE)}\n{line(FALSE)}".encode()
    done = halldetect(
        "audit", "--jsonl", "-", "--out", "-", "--fail-on", "hallucinated",
        stdin=content, cwd=tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0",
    )  # fmt: skip
    assert done.returncode == 1
    labels = [trail(json.loads(text)).label for text in done.stdout.splitlines()]
    assert labels == ["faithful", "hallucinated"]
    assert "mean FEDscore" in done.stderr.decode()


def test_batched_results_equal_single_ones(halldetect, write_lines):
    folder = write_lines(line(TRUE), line(f"{FALSE} {TRUE}"))
    assert halldetect(*ARGUMENTS, cwd=folder).returncode == 0
    (folder / "S.txt").write_text(SOURCE, encoding="utf-8")
    (folder / "R.txt").write_text(f"{FALSE} {TRUE}", encoding="utf-8")
    alone = halldetect("audit", "--source", "S.txt", "--response", "R.txt", "--json", cwd=folder)
    single = AuditResult.model_validate_json(alone.stdout)
    batched = trail(answers(folder)[1])
    assert batched.fedscore == pytest.approx(single.fedscore, abs=1e-5)
    assert [c.verdict for c in batched.claims] == [c.verdict for c in single.claims]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--jsonl", "none.jsonl", "--out", "o"), "none.jsonl: there is no such file"),
        (("--jsonl", ".", "--out", "o"), ".: is a directory"),
        (("--jsonl", "in.jsonl", "--out", "."), ".: is a directory"),
        (("--jsonl", "in.jsonl", "--out", "none/o"), "none/o: there is no such"),
        (("--jsonl", "in.jsonl", "--out", "in.jsonl"), "is the input itself"),
        (("--jsonl", "in.jsonl", "--out", "o", "--json"), "leave out --json"),
    ],
)
def test_bad_files_are_refused_before_anything_is_loaded(
    halldetect, write_lines, arguments, message
):
    done = halldetect("audit", *arguments, cwd=write_lines(line(TRUE)))
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_an_interrupted_batch_says_how_to_go_on(write_lines, command):
    lines = 50_000  # which take minutes
    folder = write_lines(*(line(TRUE, id=str(number)) for number in range(lines)))
    environment = {**os.environ, "HALLDETECT_EXTRACTOR": "sentences"}
    process = subprocess.Popen(
        [command, *ARGUMENTS], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    while process.poll() is None:
        if (folder / "out.jsonl").exists() and (folder / "out.jsonl").stat().st_size:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert output == b""
    last = errors.decode().splitlines()[-1]
    assert last.startswith("halldetect: interrupted after ")
    assert last.endswith("the same command again goes on from there")
    content = (folder / "out.jsonl").read_bytes()
    assert content.endswith(b"\n")
    assert content.count(b"\n") < lines
    assert [json.loads(text)["line"] for text in content.splitlines()] == list(
        range(1, content.count(b"\n") + 1)
    )
