import io
from functools import partial

import pytest

from cli import text_input
from halldetect.errors import InputError, LimitError

read_source = partial(text_input.read_source, max_characters=100)
read_text = partial(text_input.read_text, max_characters=100)


@pytest.fixture
def write(tmp_path):
    def write(content, name="text.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        return str(path)

    return write


@pytest.mark.parametrize(
    "content",
    [
        "one\r\ntwo\rthree\n",
        "café — 9 €",
        "  blanks around \t",
        "a\u2028b\x85c",
        "mid\ufeffdle",
        "",
    ],
)
def test_every_character_stays(write, content):
    assert read_text(write(content.encode())) == content


def test_a_byte_order_mark_at_the_start_is_dropped_once(write):
    assert read_text(write(b"\xef\xbb\xbf\xef\xbb\xbfx")) == "\ufeffx"


@pytest.mark.parametrize("content", [b"", b" \n\t ", b"\xef\xbb\xbf\n", "\u3000\u00a0".encode()])
def test_a_blank_source_is_refused(write, content):
    with pytest.raises(InputError, match=r"text\.txt: the source is empty or only white space"):
        read_source(write(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9 ok", r"byte 4 \(0xe9\) is not UTF-8.*iconv"),
        (b"ok\xff", r"byte 3 \(0xff\)"),
        (b"cut \xe2\x82", r"byte 5 \(0xe2\)"),
        ("text".encode("utf-16"), "is UTF-16"),
        ("text".encode("utf-16-be"), "NUL character at position 0"),
        (b"a\0b", "NUL character at position 1"),
        (b"\xed\xb0\x80", "byte 1"),
    ],
)
def test_other_encodings_and_nul_are_refused_with_file_and_position(write, content, message):
    with pytest.raises(InputError, match=rf"text\.txt: .*{message}"):
        read_text(write(content))


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(InputError, match=r"none\.txt: there is no such file"):
        read_text(str(tmp_path / "none.txt"))
    with pytest.raises(InputError, match="is a directory"):
        read_text(str(tmp_path))
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be read"):
        read_text(str(tmp_path / "file" / "below"))


def test_standard_input_is_named_in_errors(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xe9"), encoding="ascii"))
    with pytest.raises(InputError, match=r"^standard input: byte 1"):
        read_text("-")


def test_no_more_is_read_than_the_limit_allows(write):
    longest = "\ufeff" + "\U0001f309" * 100
    assert read_text(write(longest.encode())) == longest[1:]
    with pytest.raises(LimitError, match=r"/dev/zero: .*100 characters.*_MAX_CHARACTERS"):
        read_text("/dev/zero")
