from rich.table import Table
from rich.text import Text

from cli.plain_tables import plain_table


def lines(table):
    return plain_table(table).plain.split("\n")


def test_columns_are_padded_and_the_last_is_not():
    table = Table()
    table.add_column("name")
    table.add_column("count", justify="right")
    table.add_column("rest")
    table.add_row("a", "1,000", Text("x", style="red"))
    table.add_row("観客", "7")
    table.add_row("longest", "", "y")
    assert lines(table) == [
        "name     count  rest",
        "a        1,000  x",
        "観客         7",
        "longest         y",
    ]


def test_a_title_stands_above_and_sections_apart():
    table = Table(title=Text("what was found, and more than fits"), show_header=False)
    table.add_row("audits", "3", end_section=True)
    table.add_row("failed", "1", end_section=True)
    assert lines(table) == ["what was found, and more than fits", "audits  3", "", "failed  1"]


def test_cells_of_several_lines_go_on_below():
    table = Table()
    for title in ("#", "claim", "evidence"):
        table.add_column(title)
    table.add_row("1", "It opened.\nresponse 0–10", Text("“The mill opened.”\nsource 0–16"))
    table.add_row("2", "It closed.", "“It closed in 1950.”\nsource 17–36")
    assert lines(table) == [
        "#  claim       evidence",
        "1  It opened.",
        "    response 0–10",
        "    “The mill opened.”",
        "    source 0–16",
        "2  It closed.  “It closed in 1950.”",
        "    source 17–36",
    ]


def test_a_table_without_rows_or_heads_is_empty():
    assert lines(Table()) == [""]
    table = Table()
    table.add_column("policy")
    assert lines(table) == ["policy"]
