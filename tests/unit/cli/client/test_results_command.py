import pytest

from cli.client import patience
from cli.client.errors import ServiceError, ServiceUnavailable
from cli.client.results_command import write_results
from halldetect.errors import InputError
from halldetect.settings import Settings

LINES = b'{"id":"1"}\n' * 10


@pytest.fixture
def results(serving, steps, batch, tmp_path, monkeypatch):
    """Writes the results that a server gives after it has described the batch."""
    monkeypatch.chdir(tmp_path)

    def run(*last_steps, out="out.jsonl", state=None, with_matrix=False):
        with serving(steps["answer"](200, state or batch()), *last_steps) as (address, script):
            settings = Settings(api_url=address)
            code = write_results(12, settings, out=out, with_matrix=with_matrix)
            return code, script

    return run


def test_all_lines_are_written_as_they_are(results, steps, tmp_path, capsys):
    code, script = results(steps["answer"](200, LINES), with_matrix=True)
    assert code == 0
    assert (tmp_path / "out.jsonl").read_bytes() == LINES
    assert script.requests[1][1] == "/v1/batches/12/results?include=matrix"
    assert "4 of its 10 audits were waiting" in capsys.readouterr().err


def test_standard_output_gets_them_byte_by_byte(results, steps, capfdbinary):
    code, _ = results(steps["answer"](200, LINES), out="-")
    assert code == 0
    assert capfdbinary.readouterr().out == LINES


@pytest.mark.parametrize("content", [LINES[:-5], LINES + LINES])
def test_another_number_of_lines_is_an_error_and_leaves_no_file(results, steps, tmp_path, content):
    (tmp_path / "out.jsonl").write_bytes(b"older")
    with pytest.raises(ServiceError, match="run the command again"):
        results(steps["answer"](200, content))
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert (tmp_path / "out.jsonl").read_bytes() == b"older"


def test_a_stream_that_is_cut_is_an_error(results, steps, tmp_path):
    with pytest.raises(ServiceError, match=r"connection was lost.*before the last of 10 lines"):
        results(steps["cut"](LINES[:40]))
    assert list(tmp_path.iterdir()) == []


def test_a_service_that_is_away_says_so(results, steps, monkeypatch):
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.0)
    with pytest.raises(ServiceUnavailable, match="away"):
        results(steps["problem"](503, "away"))


def test_a_pipe_or_device_is_written_to_as_it_is(results, steps):
    code, _ = results(steps["answer"](200, LINES), out="/dev/null")
    assert code == 0


@pytest.mark.parametrize(
    ("out", "message"),
    [(".", "directory"), ("none/out.jsonl", "there is no folder .*none"), ("/dev/full", "space")],
)
def test_what_cannot_be_written_is_named(results, steps, out, message):
    with pytest.raises(InputError, match=f"^{out}: .*{message}"):
        results(steps["answer"](200, LINES), out=out)


def test_a_file_without_a_name_is_told(results, steps):
    with pytest.raises(InputError, match="the file to write is empty"):
        results(steps["answer"](200, LINES), out="")


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_one_and_its_file_is_written(results, steps, tmp_path, exists):
    target = tmp_path / "elsewhere" / "target.jsonl"
    target.parent.mkdir()
    if exists:
        target.write_bytes(b"old")
    link = tmp_path / "out.jsonl"
    link.symlink_to(target)
    results(steps["answer"](200, LINES))
    assert link.is_symlink()
    assert target.read_bytes() == LINES
    assert [path.name for path in target.parent.iterdir()] == ["target.jsonl"]


def test_a_link_in_a_circle_is_told(results, steps, tmp_path):
    (tmp_path / "out.jsonl").symlink_to("out.jsonl")
    with pytest.raises(InputError, match=r"^out\.jsonl: .*leads back to itself"):
        results(steps["answer"](200, LINES))
