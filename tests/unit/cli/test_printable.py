import pytest

from cli.printable import printable, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m", "\\x9b31m"),
        ("bell\x07 back\x08", "bell\\x07 back\\x08"),
        ("\u202eeticxe", "\\u202eeticxe"),
        ("\u2066hidden\u2069", "\\u2066hidden\\u2069"),
        ("\ufeffmark", "\\ufeffmark"),
        ("\U000e0041tag", "\\U000e0041tag"),
        ("two\r\nlines\tand\u2028three", "two lines and three"),
        ("lone \udc00", "lone \\udc00"),
    ],
)
def test_control_characters_are_escaped_and_line_ends_become_spaces(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text", ["café — 9 €", "图书馆八点开门。", "👩‍💻 works", "ware\u00adhouse", "می‌خواهم"]
)
def test_letters_of_any_script_and_emoji_stay_as_they_are(text):
    assert printable(text) == text


def test_a_shortened_text_says_how_much_is_left_out():
    assert shortened("abcdef", 4) == "abcd… [2 more characters]"
    assert shortened("abcd", 4) == "abcd"
    assert shortened("abcdef", None) == "abcdef"
