import csv
import io
import json

import psycopg
import pyarrow
import pytest
from pyarrow import parquet
from sqlalchemy import text
from stored_audits import complete_waiting, submit_batch

from cli.export_command import export_batch
from cli.export_formats import ExportFormat
from db.audits import stream_results
from db.export import open_export
from db.exported import Exported
from halldetect.errors import InputError, UnavailableError
from halldetect.settings import load_settings

RESPONSES = (
    'The mill "opened" in 1900,\r\nthey say.\u2028So it is.',
    "Thanks!",
    "=A dragon lives.",
)
METADATA = {"model": "writer-7b", "n": [1, 2.5, None], "t": "\\N, \u2028"}


@pytest.fixture
def batch(store):
    return store(*RESPONSES, metadata=METADATA)


@pytest.fixture
def export(batch, settings, tmp_path):
    def run(file_format, what="claims", out=None):
        path = tmp_path / "out" if out is None else out
        code = export_batch(
            batch,
            settings,
            file_format=ExportFormat(file_format),
            out=str(path),
            what=Exported(what),
        )
        assert code == 0
        return path

    return run


@pytest.fixture
def trails(batch, sessions):
    with sessions() as session:
        return list(stream_results(session, batch, with_matrix=True))


def read(file_format, path):
    """Return rows as JSON lines would give them."""
    if file_format == "jsonl":
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    if file_format == "csv":
        rows = csv.DictReader(io.StringIO(path.read_bytes().decode(), newline=""))
        # An apostrophe before what a spreadsheet would take for a formula.
        return [
            {
                name: text.removeprefix("'") if text[:2] == "'=" else text
                for name, text in row.items()
            }
            for row in rows
        ]
    return parquet.read_table(path).to_pylist()


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "parquet"])
def test_a_row_a_claim_with_the_audit_it_stands_in(export, trails, file_format):
    rows = read(file_format, export(file_format))
    expected = [(audit, claim) for audit in trails for claim in audit.claims]
    assert len(rows) == len(expected) > 2
    for row, (audit, claim) in zip(rows, expected, strict=True):
        assert str(row["claim_id"]) == claim.id
        assert str(row["audit_id"]) == audit.id
        assert str(row["line"]) == str(audit.line)
        assert row["text"] == claim.text
        assert row["response_text"] == audit.response[claim.span.start : claim.span.end]
        assert row["entailment_text"] == claim.entailment.text
        assert row["contradiction_chunk"] == claim.contradiction.chunk
        assert float(row["score"]) == claim.score
        assert float(row["response_score"]) == audit.fedscore
        assert row["label"] == audit.label
        assert row["policy_version"] == audit.policy.version
        given = row["metadata"]
        assert (given if file_format == "jsonl" else json.loads(given)) == METADATA


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "parquet"])
def test_a_row_an_audit_whatever_it_came_to(export, trails, file_format):
    rows = read(file_format, export(file_format, "audits"))
    assert [row["response"] for row in rows] == list(RESPONSES)
    nothing = "" if file_format == "csv" else None
    assert rows[1]["outcome"] == "no_checkable_claims"
    assert rows[1]["score"] == rows[1]["label"] == nothing
    assert [float(row["score"]) for row in rows[::2]] == [trails[0].fedscore, trails[2].fedscore]


def test_a_row_a_probability_of_every_chunk(export, trails):
    rows = read("parquet", export("parquet", "probabilities"))
    assert len(rows) == sum(len(a.claims) * len(a.matrix.chunks) for a in trails)
    cells = {
        (claim.id, f"{chunk.granularity}/{chunk.index}"): audit.matrix.entailment[n][chunk.spans[0]]
        for audit in trails
        for n, claim in enumerate(audit.claims)
        for chunk in audit.matrix.chunks
    }
    found = {(str(row["claim_id"]), row["chunk"]): row["entailment"] for row in rows}
    assert found == pytest.approx(cells)


def test_parquet_has_the_types_of_the_views(export):
    schema = parquet.read_schema(export("parquet", "audits"))
    types = {name: schema.field(name).type for name in schema.names}
    assert types["audit_id"] == pyarrow.int64()
    assert types["line"] == pyarrow.int32()
    assert types["score"] == pyarrow.float64()
    assert types["submitted_at"] == pyarrow.timestamp("us", tz="UTC")
    assert types["month"] == pyarrow.date32()
    assert types["warnings"] == pyarrow.list_(pyarrow.string())
    claims = parquet.read_schema(export("parquet"))
    assert claims.field("entailment").type == pyarrow.float32()
    assert claims.field("has_name").type == pyarrow.bool_()


def test_a_line_is_a_line_in_every_reader(export):
    content = export("jsonl", "audits").read_bytes()
    assert len(content.decode().splitlines()) == len(RESPONSES)


@pytest.mark.parametrize("file_format", ["jsonl", "csv"])
def test_standard_output_takes_rows_and_nothing_else(export, file_format, capfdbinary):
    expected = export(file_format).read_bytes()
    capfdbinary.readouterr()
    export(file_format, out="-")
    assert capfdbinary.readouterr().out == expected


def test_parquet_needs_a_file(export):
    with pytest.raises(InputError, match="--out FILE"):
        export("parquet", out="-")


@pytest.mark.parametrize(
    ("out", "fault"),
    [("", "name of the file to write is empty"), ("none/out.csv", "there is no folder .*none")],
)
def test_a_place_where_no_file_can_be_is_named(export, tmp_path, monkeypatch, out, fault):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=fault):
        export("csv", out=out)


def test_a_link_is_written_through(export, tmp_path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    export("csv", out=link)
    assert link.is_symlink()
    assert target.read_bytes().startswith(b"claim_id,")


def test_many_rows_come_in_portions(export, batch, sessions, monkeypatch):
    monkeypatch.setattr("db.export._AUDITS_AT_A_TIME", 1)
    monkeypatch.setattr("db.export._ROWS_AT_A_TIME", 1)
    monkeypatch.setattr("cli.export_formats._ROW_GROUP", 2)
    path = export("parquet")
    file = parquet.ParquetFile(path)
    assert file.metadata.num_row_groups > 1
    with sessions() as session:
        claims = session.scalars(text("SELECT id FROM halldetect.claims ORDER BY id")).all()
    assert file.read().column("claim_id").to_pylist() == claims


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_nothing_half_written_stays(export, tmp_path, monkeypatch, file_format):
    (tmp_path / "out").write_text("older")
    monkeypatch.setattr("cli.progress_display.ProgressLines.show", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        export(file_format)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "older"


def _interrupt(*_):
    raise KeyboardInterrupt


def test_a_batch_that_is_not_over_says_so_and_has_its_columns(sessions, settings, tmp_path, capsys):
    batch = submit_batch(sessions, "The mill opened.")
    out = tmp_path / "out.parquet"
    export_batch(
        batch, settings, file_format=ExportFormat.PARQUET, out=str(out), what=Exported.CLAIMS
    )
    table = parquet.read_table(out)
    assert table.num_rows == 0
    assert "entailment_text" in table.column_names
    assert "1 of its 1 audit was waiting" in capsys.readouterr().err


def test_what_is_stored_meanwhile_is_not_in_it(sessions, settings, auditor, tmp_path, monkeypatch):
    monkeypatch.setattr("db.export._AUDITS_AT_A_TIME", 1)
    batch = submit_batch(sessions, "The mill opened.", "It closed.")
    monkeypatch.setattr(
        "cli.progress_display.ProgressLines.show", lambda *_: complete_waiting(sessions, auditor)
    )
    out = tmp_path / "out.jsonl"
    export_batch(
        batch, settings, file_format=ExportFormat.JSONL, out=str(out), what=Exported.AUDITS
    )
    assert [row["status"] for row in read("jsonl", out)] == ["queued", "queued"]


def test_it_cannot_write_to_the_database(engine, store):
    with (
        open_export(engine, Exported.AUDITS, store("The mill opened.")) as export,
        pytest.raises(psycopg.errors.ReadOnlySqlTransaction),
    ):
        export._connection.execute("DELETE FROM halldetect.claims")


def test_what_is_not_there_is_told(settings, tmp_path):
    def run(chosen):
        export_batch(
            999,
            chosen,
            file_format=ExportFormat.CSV,
            out=str(tmp_path / "out"),
            what=Exported.CLAIMS,
        )

    with pytest.raises(InputError, match="no batch 999"):
        run(settings)
    with pytest.raises(UnavailableError, match="set DATABASE_URL"):
        run(load_settings(home=tmp_path))
    with pytest.raises(UnavailableError, match="the database cannot be used"):
        run(load_settings(database_url="postgresql://u:p@127.0.0.1:9/x", home=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_another_version_is_refused(empty_database, tmp_path):
    with pytest.raises(InputError, match=r"revision none.*db\.migrate upgrade"):
        export_batch(
            1,
            load_settings(database_url=empty_database, home=tmp_path),
            file_format=ExportFormat.CSV,
            out="-",
            what=Exported.CLAIMS,
        )


def test_without_pyarrow_the_message_says_what_to_install(export, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"halldetect\[parquet\]"):
        export("parquet")
