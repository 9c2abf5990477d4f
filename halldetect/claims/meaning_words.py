"""Words that turn, weaken or tie what a clause asserts; the copy check never lets them go."""

from __future__ import annotations

from halldetect.text.function_words import NEGATIONS as ENGLISH_NEGATIONS
from halldetect.text.function_words import STOPWORDS


def word_set(text: str) -> frozenset[str]:
    """Return the words of `text`, which is written as running text to be read."""
    return frozenset(text.split())


FREE = word_set("a an the that which who whom and")
"""Words a claim may drop or add: without them it says the same."""

FUNCTION = STOPWORDS | FREE
"""Words that coverage does not ask for."""

PRONOUNS = word_set(
    "he she it they this that these those his her hers its their theirs him them we our us"
)

NEGATIONS = ENGLISH_NEGATIONS | word_set(
    """
    hardly barely scarcely rarely seldom
    nicht nichts kein keine keinen keinem keiner keines nie niemals weder
    ne pas jamais rien aucun aucune nunca ningún ninguna nada
    não nunca nenhum nenhuma niet niets geen nooit inte ikke nie
    不 没 沒 無 无 非 未 нет не никогда
    """
)
"""English first; the others are those of the languages most answers come in."""

QUALIFIERS = word_set(
    """
    may might can could will would shall should must ought
    allegedly reportedly supposedly apparently perhaps possibly probably potentially likely
    unlikely presumably maybe seemingly
    deny denies denied fail fails failed refuse refuses refused doubt doubts doubted avoid avoided
    prevent prevents prevented false impossible
    say says said claim claims claimed allege alleges alleged argue argues argued believe believes
    believed think thinks thought suggest suggests suggested expect expects expected plan plans
    planned hope hopes hoped intend intends intended want wants wanted try tries tried according
    seem seems seemed appear appears appeared promise promised propose proposes proposed threaten
    threatened consider considered warn warned predict predicts predicted
    """
)
"""Modals, hedges and verbs of saying or failing: they govern the clause they stand in."""

CONDITIONS = word_set("if unless whether provided assuming supposing wenn falls si se als")
"""They govern the whole sentence, wherever they stand in it."""

QUANTIFIERS = word_set(
    """
    nearly almost about approximately roughly around least most more less fewer few up only some
    half over under below above all each every many several any both former
    supposed potential so-called fake
    """
)
"""They belong to the word after them."""

SCALES = word_set("hundred thousand million millions billion billions trillion bn mn dozen")
"""Words that belong to the number before them."""

COORDINATORS = word_set("and or but nor yet so while whereas because although though than as")

CLAUSE_OPENERS = word_set("but while whereas although because though")

BE_FORMS = word_set("am is are was were be been being get gets got gotten")
"""Dropped or added, they turn a passive into an active."""
