"""English function words: which words carry no assertion of their own."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of `text`, which stand apart by whitespace, as a set."""
    return frozenset(text.split())


STOPWORDS = word_set(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    who whom whose which what
    am is are was were be been being has have had having do does did doing
    and but of to in on at by for with from as into onto than then there here so also too
    """
)
"""Words that may come or go without changing what is claimed.

Modals, negations, quantifiers, conditions and words of order in time or space are left out on
purpose: "may", "not", "most", "if" and "before" each change the claim.
"""

MODALS = word_set("can could may might must shall should will would ought cannot")

NEGATIONS = word_set("not no never none nobody nothing neither nor without nowhere cannot")

FUNCTION_WORDS = (
    STOPWORDS
    | MODALS
    | NEGATIONS
    | word_set(
        """
        or if unless because although though while whereas whether when where why how until since
        before after during between among through across over under above below against about
        around near within toward towards upon via per despite however therefore thus hence
        moreover furthermore meanwhile otherwise instead indeed perhaps
        all some any each every both either many much more most few several other another such
        only even just yet still again once now today yesterday tomorrow
        """
    )
)
"""Words that open a sentence with a capital letter without being a name."""

LINE_JOINERS = (FUNCTION_WORDS | word_set("like versus plus")) - word_set(
    """
    mine ours yours hers theirs myself itself himself herself themselves ourselves yourself
    none nobody nothing nowhere no today yesterday tomorrow again now here there too then so
    however instead otherwise indeed meanwhile more all any each both either other another
    such only even just yet still once why how what this that these those
    do does did done it you me him them us i he she they we
    """
)
"""Words after which a sentence goes on, even when the line ends there."""
