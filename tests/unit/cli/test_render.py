import io

import pytest
from rich.console import Console

from cli.render import print_result
from halldetect.scoring.verdict import Label, Verdict
from halldetect.trail import Counts, Outcome


def shown(result, *, verbose=False, width=160, colour=False):
    stream = io.StringIO()
    colours = "standard" if colour else None
    console = Console(file=stream, width=width, force_terminal=colour, color_system=colours)
    print_result(console, result, verbose=verbose)
    return stream.getvalue()


def test_headline_names_score_label_threshold_and_policy(make_result):
    output = shown(make_result(fedscore=0.98765, label=Label.HALLUCINATED))
    assert "FEDscore 0.9877" in output
    assert "hallucinated" in output
    assert "hallucinated from 0.5; policy paper" in output


SUPPORTING = "“The bridge opened in May.”", "source 10–35, chunk 4/1, entailment 0.875"
OPPOSING = "“The tunnel is closed.”", "source 40–61, chunk 4/1, contradiction 0.250"


@pytest.mark.parametrize(
    ("verdict", "quote", "details"),
    [
        (Verdict.SUPPORTED, *SUPPORTING),
        (Verdict.UNSUPPORTED, *SUPPORTING),
        (Verdict.CONTRADICTED, *OPPOSING),
    ],
)
def test_each_verdict_quotes_the_evidence_that_led_to_it(
    make_result, make_claim, verdict, quote, details
):
    output = shown(make_result([make_claim(verdict=verdict)]))
    assert verdict.value in output
    assert quote in output
    assert details in output


def test_verdicts_are_coloured(make_result, make_claim):
    output = shown(make_result([make_claim(verdict=v) for v in Verdict]), colour=True)
    for colour, verdict in (("32", "supported"), ("31", "contradicted"), ("33", "unsupported")):
        assert f"\x1b[1;{colour}m{verdict}" in output


def test_the_deciding_claim_and_the_counts_are_told(make_result, make_claim):
    claims = [make_claim(), make_claim(verdict=Verdict.UNSUPPORTED)]
    output = shown(make_result(claims, deciding_claim=1))
    assert "2 claims: 1 supported, 0 contradicted, 1 unsupported" in output
    assert output.count("decides the score") == 1


def test_a_claim_verified_with_its_antecedent_shows_what_was_verified(make_result, make_claim):
    claim = make_claim("It opened.", verified_text="The bridge is new. It opened.")
    assert "verified as: The bridge is new. It opened." in shown(make_result([claim]))


def test_without_checkable_claims_there_is_a_sentence_and_no_number(make_result, make_unaudited):
    result = make_result(
        [],
        outcome=Outcome.NO_CHECKABLE_CLAIMS,
        fedscore=None,
        label=None,
        deciding_claim=None,
        unaudited=[make_unaudited("Here you are:")],
    )
    output = shown(result)
    assert "no checkable claims" in output
    assert "FEDscore" not in output
    assert "0.0" not in output
    assert "lead in: “Here you are:” (response 0–13)" in output


def test_markup_in_texts_is_printed_as_it_is(make_result, make_claim, make_unaudited):
    result = make_result(
        [make_claim("The [red]bridge[/red] :smile: opened.")],
        unaudited=[make_unaudited("[bold]So:[/bold]")],
        warnings=["[link=x]odd[/link]"],
    )
    output = shown(result)
    for text in ("The [red]bridge[/red] :smile: opened.", "[bold]So:[/bold]", "[link=x]odd[/link]"):
        assert text in output


def test_no_control_code_of_a_text_reaches_the_terminal(
    make_result, make_claim, make_unaudited, make_rejected
):
    evil = "a\x1b]0;title\x07b\u202ec\x9b2J"
    claim = make_claim(evil, verified_text=evil + ".")
    quoted = claim.entailment.model_copy(update={"text": evil})
    claim = claim.model_copy(update={"entailment": quoted})
    result = make_result(
        [claim],
        unaudited=[make_unaudited(evil)],
        rejected=[make_rejected(evil, evil)],
        warnings=[evil],
        models={key: {"name": evil, "backend": evil, "dtype": ""} for key in ("extractor", "nli")},
    )
    output = shown(result, verbose=True)
    assert not set("\x1b\x07\x9b\u202e") & set(output)
    assert "\\x1b]0;title\\x07b\\u202ec\\x9b2J" in output


def test_rejected_lines_are_counted_and_listed_on_request(make_result, make_rejected):
    result = make_result(rejected=[make_rejected("first line"), make_rejected("second line")])
    brief = shown(result)
    assert "rejected 2 lines" in brief
    assert "--verbose" in brief
    assert "first line" not in brief
    whole = shown(result, verbose=True)
    assert "over cap: “first line” (grant)" in whole
    assert "second line" in whole


def test_long_evidence_is_cut_visibly_and_whole_on_request(make_result, make_claim):
    claim = make_claim()
    long = claim.entailment.model_copy(update={"text": "word " * 200 + "end"})
    result = make_result([claim.model_copy(update={"entailment": long})])
    assert "[683 more characters]" in shown(result)
    assert "end”" not in shown(result)
    assert "end”" in shown(result, verbose=True)


def test_warnings_and_models_are_shown(make_result):
    output = shown(make_result(warnings=["3 tokens are unknown"]))
    assert "warning: 3 tokens are unknown" in output
    assert "models: extractor sentences; NLI tiny (onnx, float32)" in output


def test_a_narrow_terminal_is_no_reason_to_fail(make_result):
    assert "supported" in shown(make_result(), width=60)


def test_counts_may_be_missing(make_result):
    assert "claims" in shown(make_result(counts=None))
    assert isinstance(make_result().counts, Counts)
