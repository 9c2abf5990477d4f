import json

from cli.result_json import object_line, trail_json, trail_line
from halldetect.trail import AuditResult

ODD = "a\u2028b\u2029c\x85d\nе\x7f\x80\x9b31m\x9f\xa0"


def test_a_trail_reads_back_and_has_no_line_ends_but_its_own(make_result):
    result = make_result(warnings=[ODD])
    text = trail_json(result)
    assert len(text.splitlines()) == 1
    assert AuditResult.model_validate_json(text) == result
    assert AuditResult.model_validate_json(trail_json(result, indent=2)) == result


def test_a_trail_line_leads_with_its_own_fields(make_result):
    line = trail_line({"line": 3, "note": ODD}, make_result(custom_id=ODD))
    assert line.endswith(b"}\n")
    assert len(line.decode().splitlines()) == 1
    value = json.loads(line)
    assert list(value)[:4] == ["line", "note", "id", "custom_id"]
    assert (value["note"], value["custom_id"]) == (ODD, ODD)


def test_an_object_line_is_one_line():
    assert json.loads(object_line({"error": ODD})) == {"error": ODD}
    line = object_line({"error": ODD}).decode()
    assert len(line.splitlines()) == 1
    assert not set("\x1b\x7f\x80\x9b\x9f") & set(line)
