"""Sentences: nothing lost, nothing twice, and the ends that readers see."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halldetect.errors import LimitError
from halldetect.text.sentences import SentenceKind, split_sentences


def texts(text: str) -> list[str]:
    return [sentence.span.of(text) for sentence in split_sentences(text)]


def kinds(text: str) -> list[SentenceKind]:
    return [sentence.kind for sentence in split_sentences(text)]


def assert_tiles(text: str) -> None:
    owners = [0] * len(text)
    before = 0
    for sentence in split_sentences(text):
        piece = sentence.span.of(text)
        assert piece == piece.strip() != ""
        assert sentence.span.start >= before
        before = sentence.span.end
        for offset in range(sentence.span.start, sentence.span.end):
            owners[offset] += 1
    for character, count in zip(text, owners, strict=True):
        assert count == 1 or (character.isspace() and count == 0)


FRAGMENTS = st.sampled_from(
    [
        *'.!?…。！？।؟"”’)]}*_`>|#-:~ \n\t\r',
        *("\r\n", "\n\n", "e.g. ", "No. 5", "A: ", "AGENT: ", "```\n", "~~~~", "|---|"),
        *("| a | b |\n", "1. ", "- ", "Dr. ", "U.S. ", "[2] ", "\u200b", "😀", "2.5"),
        *("the town", "The Town", "https://a.example.", "\u2028", "\x85", "\x1f", "\u00a0"),
    ]
)


@given(st.one_of(st.text(), st.lists(FRAGMENTS, max_size=40).map("".join)))
@settings(max_examples=400, deadline=None)
def test_every_visible_character_is_in_exactly_one_sentence(text: str) -> None:
    assert_tiles(text)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Glues, e.g. epoxy, were compared by Okafor et al. in spring.", "One, i.e. resin, held."],
        ["Valve no. 7 leaks.", "Valve no. 8 does not."],
        ["See nos. 3 and 4 in vol. 2, pp. 11-12.", "Then read Fig. 3 and Sec. 4."],
        ["She voted no.", "We left at noon."],
        ["The shirt is a size M.", "Shipping takes a week."],
        ["He flew to the U.S.A.", "She stayed in Quito."],
        ["It is law in the U.S.", "The rest differs."],
        ["The Ph.D.'s subject was snow.", "He is an M.D.: a dentist.", "They met in Oslo."],
        ["George W. Bush met J. R. Smith.", "They spoke."],
        ["The book by P. Lang is old.", "Vitamin C helps."],
        ["They lack vitamin C.", "It helps."],
        ["Dr. Smith and Mrs. Jones came at 5 p.m. on Jan. 4.", "They left."],
        ["Forms are at https://forms.example.org.", "The desk opens at ten."],
        ["Version 3.11.2 is needed.", "Write to help@town.example.", "Then wait."],
        ["The price rose to 4.2 million.", "It fell."],
        ["Bring tents, ropes, etc.", "The hut is closed."],
        ["Ok.", "He fell ill.", "Nobody knew."],
        ["Prices rise…", "Wages fall…"],
        ["Well... maybe it works.", "Maybe not..."],
        ["Wait . . .", "Then go."],
        ["Is it open?!", "Yes!", "Good."],
        ["“Why?” she asked.", "“No!”", "He left."],
        ['He said "Go."', "Then he left.", "(It rained.)", "[See note 4.]", "It dried."],
        ["(It snowed. )", "Then it thawed."],
        ["The mast is high.[2]", "It was built early. [3][4]", "Later it fell."],
        ["**Note.**", "*It is late.*", "`x = 1.`", "Stop."],
        ["Great news! 🎉"],
        ["Done.🎉", "Next."],
        ["See Roe v. The Town of Ely.", "He lives at 12 W. Elm Street."],
        ["It is by K. I. Berg and E. B. White."],
        ["It lowers the weight (W).", "It's known."],
        ["they moved in 1991 .", "she says so .", "it is late ."],
        ["Yahoo! said it grew.", "Fine."],
        ["really?", "yes.", "ok."],
        ["1. Shut the door.", "2. Turn the key."],
    ],
)
def test_sentences_on_one_line(sentences: list[str]) -> None:
    assert texts(" ".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["He left.", '"The rest stayed," she said.'],
        ['"We won."', "She smiled."],
        ["He left.", "“Others stayed.”", "Nobody won."],
        ["It is high.[2]"],
    ],
)
def test_quotations_without_a_space_around_them(sentences: list[str]) -> None:
    assert texts("".join(sentences)) == sentences


@pytest.mark.parametrize(
    "sentences",
    [
        ["博物馆九点开门。", "周一休息！", "你来吗？", "来。"],
        ["“快走！”他说。", "她走了。"],
        ["駅は近い｡", "店は遠い。"],
        ["स्कूल आठ बजे खुलता है।", "सोमवार को बंद है।"],
    ],
)
def test_scripts_that_need_no_space_after_a_stop(sentences: list[str]) -> None:
    assert texts("".join(sentences)) == sentences
    assert texts(" ".join(sentences)) == sentences


def test_arabic_and_armenian_ends() -> None:
    assert len(texts("هل المكتب مفتوح؟ نعم هو مفتوح. شكرا.")) == 3
    assert len(texts("دفتر کھلا ہے۔ کل بند ہے۔")) == 2


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\u2028"])
def test_a_list_item_keeps_its_marker(newline: str) -> None:
    text = newline.join(["Do this:", "1. Open the lid.", "2. Fill it. Then wait.", "- Close it"])
    assert texts(text) == [
        "Do this:",
        "1. Open the lid.",
        "2. Fill it.",
        "Then wait.",
        "- Close it",
    ]
    assert kinds(text) == [SentenceKind.PROSE] + [SentenceKind.LIST_ITEM] * 4


def test_a_bare_number_is_an_item_only_within_a_list() -> None:
    assert kinds("42.") == [SentenceKind.PROSE]
    assert kinds("- \n* \n1.") == [SentenceKind.LIST_ITEM] * 3


def test_wrapped_list_items_and_quoted_lines_stay_whole() -> None:
    text = "- The lid must be\n  closed at night\n- Done\n> a quoted line that\n> goes on"
    assert len(texts(text)) == 3


FENCE = "Keep 20.\n\n```sh\nrun. it. now\n\n# done\n```\n\nIt works."


def test_fenced_code_is_code_line_by_line() -> None:
    assert kinds(FENCE) == [SentenceKind.PROSE] + [SentenceKind.CODE] * 4 + [SentenceKind.PROSE]
    assert kinds(FENCE.replace("```", "~~~~"))[1] is SentenceKind.CODE


@pytest.mark.parametrize("fence", ["```", "```python", "~~~", "````"])
def test_nothing_hides_behind_a_fence_that_is_never_closed(fence: str) -> None:
    assert SentenceKind.CODE not in kinds(f"It is 5.\n{fence}\nThe town has nine bridges.")


@pytest.mark.parametrize(
    "table",
    ["| a | b |\n|---|:-:|\n| 1 | 2. x |\n| 3 | 4 |", "a | b\n--|--\n1 | 2\n3 | 4"],
)
def test_tables(table: str) -> None:
    text = f"Before.\n{table}\n\nAfter."
    row, rule = SentenceKind.TABLE_ROW, SentenceKind.TABLE_RULE
    prose = SentenceKind.PROSE
    assert kinds(text) == [prose, row, rule, row, row, prose]


@pytest.mark.parametrize(
    "turns",
    [
        ["AGENT: Your parcel left on Monday.", "CUSTOMER: I want it back.", "AGENT: It is done."],
        ["user: is it open", "assistant: yes it is", "user: thanks"],
        ["Anna Lee: we start at nine", "Bo: and then", "Anna Lee: we eat"],
        ["[00:00:01] the lamp is broken", "[00:00:09] which lamp"],
        ["**Q:** Is it open?", "**A:** Yes."],
        ["kim lo: is it open?", "bob: yes", "kim lo: good", "bob: ok"],
        ["Dr. Roy: take two", "Patient 1: of what"],
    ],
)
def test_each_turn_of_a_transcript_is_its_own(turns: list[str]) -> None:
    assert texts("\n".join(turns)) == turns


def test_turns_on_one_line() -> None:
    turns = ["A: is it open", "B: yes, at plan B.", "A: thanks"]
    assert texts(" ".join(turns)) == turns
    assert len(texts("Guide: mind the sign: no pets")) == 1
    assert texts("Kim: hi Lou: hello\nLou: bye") == ["Kim: hi", "Lou: hello", "Lou: bye"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The council approved a plan to extend the tram line to\nHarbour Square in May.", 1),
        ("The bridge was\nbuilt in 1920 by\nErn Holm.", 1),
        ("The bridge opened in the year\n1920 and was closed.", 2),
        ("Opening hours\nThe museum opens at nine.", 2),
        ("# Bridges of the town\nThe town has nine.", 2),
        ("Bridges\n=======\nThe town has nine.", 3),
        ("First line without a stop\n\nsecond one", 2),
        ("It cost 5 million (see\nAnnex 2), e.g.\nfor paint.", 1),
        ("It ended.\nIt began.", 2),
        ("Is it open?\nyes it is", 2),
    ],
)
def test_line_breaks(text: str, count: int) -> None:
    assert len(texts(text)) == count
    assert len(texts(text.replace("\n", "\r\n"))) == count


@pytest.mark.parametrize("text", ["", " ", "\n\t \u00a0\u2003\r\n"])
def test_whitespace_has_no_sentences(text: str) -> None:
    assert split_sentences(text) == ()


def test_too_many_sentences_are_refused_early() -> None:
    begin = time.process_time()
    with pytest.raises(LimitError, match="max_sentences = 50000"):
        split_sentences("So. " * 750_000)
    assert time.process_time() - begin < 60  # a quadratic one takes many minutes
    assert len(split_sentences("So. " * 3, max_sentences=3)) == 3
    with pytest.raises(LimitError, match="max_sentences = 2"):
        split_sentences("So. " * 3, max_sentences=2)


@pytest.mark.parametrize(
    "text",
    [
        "Begin. " + "k" * 900_000 + " end.",
        "." * 1_000_000,
        ". " * 500_000,
        "1." * 500_000,
        "a?" + '"' * 1_000_000,
        "```a\n" * 40_000,
        "a." + " " * 1_000_000 + "b",
        " [" * 500_000,
        "|" * 1_000_000,
        "- . " * 250_000,
        "A" * 1_000_000 + ":",
        "> " * 500_000,
        "*" * 1_000_000,
        "`" * 1_000_000,
    ],
    ids=range(14),
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    begin = time.process_time()
    split_sentences(text, max_sentences=10**6)
    assert time.process_time() - begin < 60  # a quadratic one takes many minutes


def test_plain_prose_is_cut_as_punkt_cuts_it() -> None:
    from halldetect.text.punkt_parameters import english_punkt

    text = (
        "The harbour was dredged in 1904. Ships of Acme Corp. came from Norway, mostly with wood. "
        "Mr. Holm, the master, kept a book (now in the archive). Who wrote the rest? Nobody knows! "
        "By Dec. 3 the ice had closed the port. It opened in March."
    )
    assert texts(text) == english_punkt().tokenize(text)
