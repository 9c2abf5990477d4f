import pytest

from halldetect.claims.decompose import decompose
from halldetect.claims.extractor import Extraction
from halldetect.claims.model import ClaimOrigin, FinishReason


class Proposing:
    """An extractor that says one line."""

    def __init__(self, line):
        self.line = line

    def extract(self, text, max_claims, ends_at):
        return Extraction(self.line, FinishReason.STOP)


def claims_of(response, line):
    result = decompose(response, Proposing(line), count_tokens=lambda text: len(text.split()))
    return [(claim.text.rstrip("."), claim.origin) for claim in result.claims]


@pytest.mark.parametrize(
    ("response", "line"),
    [
        ("Non-residents pay 9 pounds daily.", "residents pay 9 pounds daily"),
        ("The ex-mayor sued the council.", "The mayor sued the council"),
        ("Everyone except Keller resigned in 2001.", "Keller resigned in 2001"),
        ("It is a myth that the mill polluted the river.", "the mill polluted the river"),
        ("The mill polluted the river, Brandt said.", "The mill polluted the river"),
        ("Brandt wrote that the mill polluted the river.", "the mill polluted the river"),
        ("There is little evidence that Keller stole money.", "Keller stole money"),
        ("In the novel, Keller murdered Brandt.", "Keller murdered Brandt"),
        ("Either Keller or Brandt resigned in 2001.", "Brandt resigned in 2001"),
        ("The lake froze at minus 5 degrees.", "The lake froze at 5 degrees"),
        ("About 10-20 people died in the fire.", "20 people died in the fire"),
        ("They gave 1/2 of income to charity.", "They gave 1 of income to charity"),
        ("The man who shot Keller died in 2001.", "Keller died in 2001"),
        ("The board voted down the plan.", "The board voted the plan"),
        ("The union called off the strike.", "The union called the strike"),
        ("The bridge has yet to open.", "The bridge has to open"),
    ],
)
def test_a_line_that_drops_what_governs_it_is_not_the_response_s_assertion(response, line):
    assert claims_of(response, line) == [(response.rstrip("."), ClaimOrigin.SENTENCE)]


@pytest.mark.parametrize(
    ("response", "line"),
    [
        ("Mayor Ortiz, who leads the council, resigned.", "Mayor Ortiz resigned"),
        ("The mill opened in 1920 and closed in 1998.", "The mill opened in 1920"),
        ("The well-known mill closed in 1998.", "The mill closed in 1998"),
    ],
)
def test_a_line_that_drops_an_aside_is_still_accepted(response, line):
    assert (line, ClaimOrigin.LLM) in claims_of(response, line)
