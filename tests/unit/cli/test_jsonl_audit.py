import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from cli.jsonl_audit import audit_jsonl
from halldetect.auditor import AuditOptions, Progress, Stage
from halldetect.errors import InputError
from halldetect.provenance import ModelProvenance
from halldetect.scoring.policy import EMBEDDED, PAPER
from halldetect.scoring.verdict import Label
from halldetect.settings import load_settings
from halldetect.trail import Status


class EchoAuditor:
    """Answers in loads of four; the response decides what it finds."""

    def __init__(self, make_result, policy, on_progress):
        self.policy = policy
        self.options = AuditOptions()
        provenance = ModelProvenance("echo", "onnx", "", "float32", "cpu")
        self.extractor = self.nli = SimpleNamespace(provenance=provenance)
        self._make_result = make_result
        self._on_progress = on_progress
        self.audited = []

    def audit_many(self, records):
        load = []
        for number, record in enumerate(records, start=1):
            self._on_progress(Progress(Stage.EXTRACTION, number, None))
            load.append(record)
            if len(load) == 4:
                yield from self._answers(load)
                load = []
        yield from self._answers(load)

    def _answers(self, load):
        self._on_progress(Progress(Stage.VERIFICATION, 1, 1))
        for record in load:
            if record.response == "interrupt":
                raise KeyboardInterrupt
            self.audited.append(record.response)
            yield self._make_result(**self._fields(record))

    def _fields(self, record):
        fields = {"custom_id": record.custom_id, "metadata": {"said": record.response}}
        if record.response == "fail":
            return fields | {
                "status": Status.FAILED, "outcome": None, "error": "too long", "claims": [],
                "fedscore": None, "label": None, "deciding_claim": None, "counts": None,
            }  # fmt: skip
        if record.response == "lie":
            return fields | {"fedscore": 0.875, "label": Label.HALLUCINATED}
        return fields


@pytest.fixture
def batch(tmp_path, monkeypatch, make_result):
    """Runs a batch over `lines` and keeps what was audited in `batch.audited`."""

    class Batch:
        source = tmp_path / "in.jsonl"
        out = tmp_path / "out.jsonl"
        policy = PAPER
        audited = ()

        def run(self, lines=None, **options):
            if lines is not None:
                self.source.write_bytes(b"".join(line + b"\n" for line in lines))
            fail_on = options.get("fail_on", False)
            try:
                return audit_jsonl(
                    str(self.source), str(self.out), load_settings(), fail_on_hallucinated=fail_on
                )
            finally:
                self.audited = self.auditor.audited if hasattr(self, "auditor") else ()

        def load(self, settings, on_progress):
            self.auditor = EchoAuditor(make_result, self.policy, on_progress)
            return self.auditor

        def answers(self):
            return [json.loads(line) for line in self.out.read_bytes().splitlines()]

    made = Batch()
    monkeypatch.setattr("halldetect.model_loading.load_auditor", made.load)
    return made


def line(response="fine", **fields):
    return json.dumps({"source": "A source.", "response": response, **fields}).encode()


GOOD = [line(f"answer {n}", custom_id=f"id-{n}") for n in range(10)]


def test_answers_stand_in_order_and_name_their_lines(batch):
    assert batch.run([GOOD[0], b"", b"  ", GOOD[1] + b"\r"]) == 0
    first, second = batch.answers()
    assert (first["line"], second["line"]) == (1, 4)
    assert first["line_sha256"] == hashlib.sha256(GOOD[0]).hexdigest()
    assert second["line_sha256"] == hashlib.sha256(GOOD[1]).hexdigest()
    assert (first["custom_id"], second["custom_id"]) == ("id-0", "id-1")


@pytest.mark.parametrize(
    ("bad", "custom_id", "message"),
    [
        (b"not json", None, "not valid JSON"),
        (b'{"source": "s", }', None, "column 17"),
        (b"[1]", None, "JSON object"),
        (b"\xff", None, "byte 1 is not UTF-8"),
        (b"[" * 100_000, None, "nested too deeply"),
        (b'{"custom_id": "x", "source": "s"}', "x", "field response"),
        (b'{"id": "x", "source": 7, "response": "r"}', "x", "field source"),
        (b'{"id": 7, "source": "s", "response": "r"}', None, "field"),
        (line("r", source=" "), None, "white space"),
        (b'{"id": "\\udc00", "source": "s", "response": "r"}', None, "surrogate"),
        (line("r", custom_id="x", metadata={"a": ["\ud800"]}), "x", "surrogate"),
        (line("r", custom_id="x", metadata={"a\0": 1}), "x", "NUL"),
        (b'{"source": "s", "response": "r", "metadata": {"a": 1e999}}', None, "too large"),
        (line("r", metadata={"a": json.loads("[" * 300 + "]" * 300)}), None, "levels deep"),
    ],
)
def test_a_bad_line_is_answered_in_its_place_and_spoils_no_other(
    batch, capsys, bad, custom_id, message
):
    assert batch.run([GOOD[0], bad, GOOD[1]]) == 2
    answers = batch.answers()
    assert [answer["status"] for answer in answers] == ["completed", "failed", "completed"]
    assert answers[1]["line"] == 2
    assert answers[1]["custom_id"] == custom_id
    assert message in answers[1]["error"]
    assert f"{batch.source} line 2: " in capsys.readouterr().err


def test_a_repeated_custom_id_is_an_error_of_the_later_line(batch):
    assert batch.run([line(custom_id="x"), line(), line(), line(id="x")]) == 2
    assert [answer["status"] for answer in batch.answers()] == ["completed"] * 3 + ["failed"]
    assert "already given in line 1" in batch.answers()[3]["error"]


def test_only_bad_lines(batch):
    assert batch.run([b"x"] * 12) == 2
    assert [answer["line"] for answer in batch.answers()] == list(range(1, 13))


def test_only_the_first_failures_are_told_one_by_one(batch, capsys):
    batch.run([b"x"] * 50)
    told = capsys.readouterr().err
    assert told.count("line ") == 10
    assert "more lines failed" in told


def test_an_empty_input_has_no_answers(batch):
    assert batch.run([]) == 0
    assert batch.answers() == []


def test_exit_code_tells_flagged_only_when_asked_and_failures_first(batch):
    assert batch.run([line("lie")]) == 0
    batch.out.unlink()
    assert batch.run([line("lie")], fail_on=True) == 1
    assert batch.run(fail_on=True) == 1  # kept answers count
    batch.out.unlink()
    assert batch.run([line("lie"), line("fail")], fail_on=True) == 2


def test_summary_counts_every_answer(batch, capsys):
    batch.run([line("lie"), line("fine"), line("fail"), b"bad"])
    output = capsys.readouterr().out
    rows = [row.rsplit(maxsplit=1) for row in output.splitlines()]
    for row in (["audits", "4"], ["hallucinated", "1"], ["faithful", "1"], ["failed", "2"]):
        assert row in rows
    assert "0.5000 of 2" in output
    assert "audits/s" in output


def test_a_finished_batch_is_not_audited_again(batch):
    batch.run(GOOD)
    before = batch.out.read_bytes()
    assert batch.run() == 0
    assert batch.audited == []
    assert batch.out.read_bytes() == before


@pytest.mark.parametrize("cut", [1, 40, 700, 2000, 5000, -1, -2])
def test_a_cut_results_file_is_completed(batch, cut):
    batch.run(GOOD)
    whole = batch.answers()
    content = batch.out.read_bytes()
    batch.out.write_bytes(content[:cut])
    kept = content[:cut].count(b"\n")
    assert batch.run() == 0
    assert batch.audited == [f"answer {n}" for n in range(kept, 10)]
    assert batch.answers() == whole


def test_failed_answers_are_kept_too(batch):
    lines = [line("fail"), b"bad", GOOD[0]]
    assert batch.run(lines) == 2
    assert batch.run() == 2
    assert batch.audited == []
    assert len(batch.answers()) == 3


def test_lines_that_were_added_to_the_input_are_audited(batch):
    batch.run(GOOD[:3])
    assert batch.run(GOOD[:5]) == 0
    assert batch.audited == ["answer 3", "answer 4"]


def test_an_id_of_a_kept_line_still_counts_as_given(batch):
    batch.run([line(custom_id="x")])
    assert batch.run([line(custom_id="x"), line(custom_id="x")]) == 2
    assert "already given in line 1" in batch.answers()[1]["error"]


def test_an_interrupted_batch_keeps_what_is_done_and_goes_on(batch):
    lines = [*GOOD[:5], line("interrupt")]
    with pytest.raises(KeyboardInterrupt, match="after 5 lines; the same command again goes on"):
        batch.run(lines)
    assert len(batch.answers()) == 5
    with pytest.raises(KeyboardInterrupt):
        batch.run()
    assert batch.audited == []


@pytest.mark.parametrize(
    "lines",
    [
        [GOOD[0], line("changed"), GOOD[2]],
        [GOOD[0], b"", GOOD[1], GOOD[2]],
        GOOD[:2],
        [],
        [b"bad", *GOOD],
    ],
)
def test_results_of_another_input_are_never_mixed(batch, lines):
    batch.run(GOOD[:3])
    before = batch.out.read_bytes()
    with pytest.raises(InputError, match=r"another input.*another --out"):
        batch.run(lines)
    assert batch.out.read_bytes() == before


def test_results_under_other_settings_are_never_mixed(batch):
    batch.run(GOOD[:3])
    before = batch.out.read_bytes()
    batch.policy = EMBEDDED
    with pytest.raises(InputError, match=r"policy, another pre-selection or.*policy paper"):
        batch.run(GOOD)
    assert batch.out.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"my notes", b"my notes\n", b"{}\n", b"[1]\n", b'{"line":1}\n', b"\n", b"\xff\xfe\n"],
)
def test_a_file_that_holds_something_else_is_left_alone(batch, content):
    batch.out.write_bytes(content)
    with pytest.raises(InputError, match="no result of"):
        batch.run(GOOD)
    assert batch.out.read_bytes() == content


def test_two_runs_cannot_write_one_file(batch):
    from cli.jsonl_output import ResultsFile

    with (
        ResultsFile(batch.out),
        pytest.raises(InputError, match="another run is writing it"),
    ):
        batch.run(GOOD)


@pytest.mark.parametrize("device", ["/dev/full", "/dev/zero"])
def test_an_output_without_an_end_is_refused(batch, device):
    batch.out = Path(device)
    with pytest.raises(InputError, match=f"{device}: is no regular file; give a file, or -"):
        batch.run(GOOD)


def test_the_null_device_can_be_the_output(batch):
    batch.out = Path("/dev/null")
    assert batch.run(GOOD) == 0


@pytest.mark.parametrize(
    "damage",
    [{"outcome": "scored", "counts": 7}, {"counts": {}}, {"label": []}, {"fedscore": "high"}],
)
def test_a_damaged_answer_is_named(batch, damage):
    batch.run(GOOD[:1])
    batch.out.write_text(json.dumps(batch.answers()[0] | damage) + "\n")
    with pytest.raises(InputError, match=r"out\.jsonl: its answer to line 1 is damaged"):
        batch.run(GOOD)


def test_input_and_output_cannot_be_one_file(batch):
    batch.source.write_bytes(GOOD[0] + b"\n")
    batch.out = batch.source
    with pytest.raises(InputError, match="is the input itself"):
        batch.run()
    assert batch.source.read_bytes() == GOOD[0] + b"\n"


def test_missing_input_creates_no_output(batch):
    with pytest.raises(InputError, match="there is no such file"):
        batch.run()
    assert not batch.out.exists()


def test_unwritable_output_is_named(batch, tmp_path):
    batch.out = tmp_path / "none" / "out.jsonl"
    with pytest.raises(InputError, match=r"none/out\.jsonl"):
        batch.run(GOOD)
    batch.out = tmp_path
    with pytest.raises(InputError, match="is a directory"):
        batch.run(GOOD)


def test_a_result_is_one_line_in_every_reader(batch):
    odd = "one\u2028two\u2029three\x85four\x0bfive\x0csix"
    batch.run([line(custom_id="x", metadata={"text": odd}, response=odd), b'{"id": "\\u2028"}'])
    text = batch.out.read_text(encoding="utf-8")
    assert len(text.splitlines()) == 2
    assert json.loads(text.splitlines()[0])["metadata"] == {"said": odd}


def test_line_separators_inside_an_input_line_do_not_end_it(batch):
    raw = '{"custom_id": "a", "source": "one\u2028two\x85three.", "response": "two\u2029three."}'
    assert batch.run([raw.encode()]) == 0
    assert batch.audited == ["two\u2029three."]


def test_a_byte_order_mark_before_the_first_line_is_dropped(batch):
    assert batch.run([b"\xef\xbb\xbf" + GOOD[0]]) == 0
