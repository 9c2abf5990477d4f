"""Statements of not knowing are told from assertions about what something lacks."""

from __future__ import annotations

import pytest

from halldetect.claims.refusals import is_refusal


@pytest.mark.parametrize(
    "clause",
    [
        "I have no details on the method",
        "I don't know.",
        "I'm unable to answer that.",
        "The document does not mention opening hours.",
        "There is no information about fees in the provided context.",
        "The passage doesn’t specify a date.",
        "None of the sources mention a price.",
        "The fee is not stated in the text.",
        "Le texte ne dit rien à ce sujet.",
        "El documento no menciona las tarifas.",
        "Il testo non contiene informazioni sulle tariffe.",
        "O texto não menciona as taxas.",
        "De tekst zegt niets over de kosten.",
        "Das Dokument enthält keine Angaben zu Gebühren.",
        "Based on the provided context, I cannot determine the price.",
        "The article is silent on costs.",
        "It cannot be determined from the given information.",
        "No information is provided about fees.",
        "I'm not sure.",
        "Unfortunately, the document does not contain that information.",
        "The two documents do not mention fees.",
        "I was not able to find any mention of fees.",
        "I couldn't find any information on this.",
        "There is nothing about fees in the sources.",
        "The requested information is not available in the document.",
        "As an AI language model, I do not have access to that information.",
        "The answer is not found in the text.",
        "The provided text does not include the fee.",
        "The wording of the lease is not included here [4].",
        "Dazu steht leider nichts im Dokument.",
        "I'm sorry, the documents say nothing about parking.",
        "I could not find an answer in the text.",
    ],
)
def test_refusal(clause):
    assert is_refusal(clause)


@pytest.mark.parametrize(
    "clause",
    [
        "The report does not include a budget.",
        "The council did not approve the document.",
        "The source of the fire has not been disclosed.",
        "I have no brothers.",
        "The text of the treaty was not disclosed.",
        "Smoking is not allowed here.",
        "The article was not included in the 2020 edition.",
        "In the document, the mayor did not mention the fee.",
        "The plan gives no date for the works.",
        "There is no evidence that the drug works.",
        "The museum has no information desk.",
        "The contract does not contain a penalty clause.",
        "The document lists 12 fees, not 14.",
        "The sources of the river are not known.",
        "He could not find his keys in the drawer.",
        "The mill closed in 1998.",
        "Brandt does not know the answer.",
        "The law does not mention dogs.",
        "The label does not list sugar.",
        "Their figure in the article has no source.",
        "The witness said nothing about fees.",
        "The text is printed on both sides.",
        "The document was not signed by the mayor.",
        "Dogs are not welcome here.",
        "Nothing grows here.",
        "There is no parking here.",
        "Lions are not found here.",
        "Bikes cannot be parked here.",
        "Breakfast is not provided here.",
        "No information was given to passengers.",
        "No answer was given by the mayor.",
        "There was no information at the station.",
        "I could not find my keys, and that made me late.",
        "We did not provide data to the police.",
        "The documents were not in the safe.",
        "The material is not flammable.",
        "The content of the box was not listed.",
        "The text does not mention the 3 fires of 1998.",
        "",
    ],
)
def test_assertion(clause):
    assert not is_refusal(clause)
