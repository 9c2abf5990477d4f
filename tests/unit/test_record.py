from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halldetect.errors import InputError
from halldetect.record import (
    Record,
    RecordError,
    jsonl_lines,
    make_record,
    parse_record,
)

TEXT = {"source": "The mill closed in 1998.", "response": "It closed."}
HALF = chr(0xD83D)


def line(**fields):
    return json.dumps({**TEXT, **fields}).encode()


def test_both_spellings_of_the_optional_fields_are_read():
    by_alias = parse_record(line(id="a-1", question="When?"))
    by_name = parse_record(line(custom_id="a-1", context="When?"))
    assert by_alias == by_name
    assert (by_name.custom_id, by_name.context) == ("a-1", "When?")


@pytest.mark.parametrize("fields", [{"custom_id": "a", "id": "b"}, {"context": "", "question": 1}])
def test_two_spellings_that_differ_are_refused(fields):
    with pytest.raises(InputError, match="alias"):
        parse_record(line(**fields))


def test_the_texts_are_kept_as_they_came():
    source = "A\u00a0fare of 12\u202f000\u00ad kr.\r\n\u200b The \u2019end\u2019 \U0001f35c"
    record = parse_record(line(source=source, response=source))
    assert record.source == source
    assert record.response == source


@pytest.mark.parametrize("response", ["", "  ", "\u200b"])
def test_a_response_may_be_empty(response):
    assert make_record(source="A.", response=response).response == response


@pytest.mark.parametrize("source", ["", " \n\t", "\u00a0"])
def test_a_blank_source_is_refused(source):
    with pytest.raises(InputError, match="field source: is empty"):
        make_record(source=source, response="A.")


@pytest.mark.parametrize("field", ["source", "response", "context", "custom_id", "policy"])
@pytest.mark.parametrize(("text", "fault"), [("a\0b", "NUL"), (f"a{HALF}b", "surrogate")])
def test_what_no_store_can_keep_is_refused_with_its_position(field, text, fault):
    with pytest.raises(InputError, match=rf"field {field}: .*{fault}.* position 1"):
        make_record(**{**TEXT, field: text})


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        ({"a": ["b", {"c": "x\0"}]}, "NUL"),
        ({"a": {HALF: 1}}, "surrogate"),
        ({"a": [float("inf")]}, "too large"),
        ({"a": float("nan")}, "too large"),
        ({"a": object()}, "object, which is not JSON"),
        ({"a": [(1, 2)]}, "tuple, which is not JSON"),
        ({"a": b"x"}, "bytes, which is not JSON"),
    ],
)
def test_metadata_that_a_trail_cannot_hold_is_refused(metadata, fault):
    with pytest.raises(InputError, match=fault):
        make_record(**TEXT, metadata=metadata)


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_metadata_may_be_deep_but_not_without_end():
    record = make_record(**TEXT, metadata={"a": nested(90)})
    assert json.loads(record.model_dump_json())["metadata"] == {"a": nested(90)}
    for levels in (101, 5_000):
        with pytest.raises(InputError, match="100 levels"):
            make_record(**TEXT, metadata={"a": nested(levels)})


def test_every_fault_is_told_at_once():
    with pytest.raises(InputError) as caught:
        make_record(source="", response=3, priority=101, custom_id="")
    for field in ("source", "response", "priority", "custom_id"):
        assert f"field {field}: " in str(caught.value)


@pytest.mark.parametrize("value", ["7", 7.0, True])
def test_nothing_is_converted_on_the_quiet(value):
    with pytest.raises(InputError, match="priority"):
        make_record(**TEXT, priority=value)


def test_a_record_cannot_be_changed():
    record = make_record(**TEXT)
    with pytest.raises(ValueError, match="frozen"):
        record.source = "B."


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"source": "a\xff"}', "byte 14 is not UTF-8"),
        ('{"source": "café"}'.encode("utf-16"), "byte 1 is not UTF-8"),
        (b'{"source": "a",}', "column 16: not valid JSON"),
        (b'{"source": "a"} {}', "column 17: not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'["a"]', "JSON object, not list"),
        (b"null", "JSON object, not NoneType"),
        (b'{"source": NaN}', "NaN is no JSON number"),
        (b'{"metadata": {"n": ' + b"1" * 5_000 + b"}}", "not valid JSON"),
        (b'{"source": "A.", "response": "A.", "response": "B."}', "'response' is given twice"),
        (b'{"metadata": {"k": 1, "k": 1}}', "'k' is given twice"),
        (b'{"source": "A."}', "field response: "),
    ],
)
def test_a_bad_line_says_what_is_wrong_and_where(raw, message):
    with pytest.raises(InputError, match=message):
        parse_record(raw)


@pytest.mark.parametrize(
    ("raw", "column"),
    [
        (b'{"source": "a",}', 16),
        ('{"source": "\u00e9\u20ac'.encode() + b"\xff", 15),
        (b'{\n "source": "a",\n}', 1),
        (b"[]", None),
        (b'{"a": NaN}', None),
    ],
)
def test_the_column_of_bad_json_counts_characters(raw, column):
    with pytest.raises(RecordError) as caught:
        parse_record(raw)
    assert caught.value.column == column


def test_a_body_of_several_lines_says_which_line_is_wrong():
    with pytest.raises(RecordError, match="line 3, column 1: not valid JSON"):
        parse_record(b'{\n "source": "a",\n}')


def test_unknown_fields_are_passed_over_or_refused_as_asked():
    raw = line(lable="x")
    assert parse_record(raw).source == TEXT["source"]
    with pytest.raises(RecordError, match="no field 'lable'; there are: context, custom_id, id"):
        parse_record(raw, unknown_fields="refuse")


def test_refused_names_are_told_briefly_and_as_proper_text():
    names = {HALF: 1, "n" * 100_000: 1} | {f"a{i}": 1 for i in range(50)}
    with pytest.raises(RecordError, match="and 47 others") as caught:
        parse_record(line(**names), unknown_fields="refuse")
    assert len(str(caught.value).encode()) < 400


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
            max_leaves=8,
        ),
        max_size=3,
    )
)
def test_metadata_is_refused_or_comes_back_equal(metadata):
    try:
        record = make_record(**TEXT, metadata=metadata)
    except InputError:
        return
    assert Record.model_validate_json(record.model_dump_json()).metadata == metadata


def test_lines_end_at_line_feeds_only():
    separators = "\u2028\u2029\x85\x0b\x0c\x1c\r"
    raw = b"\xef\xbb\xbf" + f"a{separators}b\r\n".encode() + b" \t\r\n\nc"
    assert list(jsonl_lines(io.BytesIO(raw))) == [(1, f"a{separators}b".encode()), (4, b"c")]


def test_a_byte_order_mark_is_dropped_before_the_first_line_only():
    lines = jsonl_lines([b"\xef\xbb\xbf{}\n", b"\xef\xbb\xbf{}\n"])
    assert list(lines) == [(1, b"{}"), (2, b"\xef\xbb\xbf{}")]


@pytest.mark.parametrize("source", ["", " \n", "\u200b\u200b", "\ufeff\u2060 \u00ad"])
def test_a_source_that_shows_nothing_is_refused(source):
    with pytest.raises(InputError, match="source: is empty, or only white space and invisible"):
        make_record(source=source, response="x")
