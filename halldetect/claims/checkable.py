"""Which sentences of a response assert something that a source could bear out.

What is left out is recorded with its reason and never scored; in doubt a sentence is audited.
"""

from __future__ import annotations

import re

from halldetect.claims.model import UnauditedReason
from halldetect.text.marks import HEADING_MARK, is_bare_list_mark
from halldetect.text.sentence_kind import SentenceKind
from halldetect.text.words import words_of

_LONGEST_HEADING = 6  # words; a longer line before no list is more likely an assertion
_LONGEST_PLAIN_HEADING = 4  # words of a heading that does not even end in a colon

_THANKS = (
    r"(?:many |so many |a thousand )?(?:thanks|thank you|thankyou|thx|cheers|much obliged)"
    r"(?: (?:so|very) much| a lot| a million| again| everyone| all)*"
)
_PLEASANTRY = re.compile(
    r"(?:"
    rf"(?:(?:oh|ok|okay|great|sure|no|yes|hi|hello) )?{_THANKS}(?: for (?:asking|reading|your \w+"
    r"|the \w+|letting me know|reaching out|getting in touch|sharing)"
    r"(?: [^\W\d]+){0,4})?(?: in advance)?"
    r"|(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|olá|hoi|dag)(?: there| everyone| all| \w+)?"
    r"|(?:good|happy) (?:morning|afternoon|evening|day|night|luck|reading)(?: \w+)?"
    r"|dear (?:\w+ ?){1,3}|(?:best|kind|warm) (?:regards|wishes)"
    r"|yours (?:sincerely|truly|faithfully)"
    r"|sincerely|regards|goodbye|bye(?: bye)?|farewell|see you(?: \w+)?|take care"
    r"|(?:you're|you are) (?:very |most )?welcome|welcome|no problem|not at all|my pleasure"
    r"|(?:it's |it is |it was )?(?:my|a) pleasure(?: to help)?"
    r"|(?:i'm |i am )?(?:glad|happy) to help"
    r"(?: \w+)?|(?:have|enjoy) (?:a|your) (?:\w+ ){0,2}(?:day|evening|weekend|night|time|one|week)"
    r"|(?:sure|certainly|of course|absolutely|definitely|gladly|right|great|okay|ok|alright"
    r"|understood|got it|yes|no|yeah|yep|nope|good question|great question|well)(?: thing)?"
    r"|that(?:'s| is) (?:a )?(?:good|great|excellent|interesting) question"
    r"|(?:i'm |i am )?(?:so |very )?sorry(?: for \w+ \w+)?|(?:my )?apologies|i apologi[sz]e"
    r"|unfortunately|please|pardon(?: me)?|excuse me"
    r"|danke(?: schön| sehr)?|vielen dank|bitte(?: schön)?|guten (?:tag|morgen|abend)"
    r"|merci(?: beaucoup)?|de rien|(?:muchas )?gracias|de nada|(?:mille )?grazie(?: mille)?|prego"
    r"|(?:muito )?obrigad[oa]|dank (?:je|u)(?: wel)?|bedankt|graag gedaan"
    r")"
)
_COURTESY = re.compile(
    r"(?:(?:and |so )?(?:please )?(?:do )?(?:let me know|feel free|don't hesitate|do not hesitate"
    r"|reach out|get in touch) (?:if|to|whether|should|when|how)"
    r"|(?:i |we )?(?:really )?(?:hope|trust) (?:this|that|it|these|you|the (?:answer|above)) "
    r"(?:helps?|helped|is helpful|was helpful|answers|clarifies|are helpful|find this|were helpful"
    r"|explanation helps)"
    r"|(?:if you have|should you have|if there's|if there is|if you need|if you'd like|if you want)"
    r" .*(?:let me know|feel free|ask|happy to|glad to|hesitate|reach out)"
    r"|(?:i'm|i am|i'd be|i would be|i'll be) (?:happy|glad|here) to (?:help|assist|answer|clarify"
    r"|explain|provide|elaborate)"
    r"|(?:is|was) there anything else|happy to (?:help|answer|assist)"
    r"|wenn sie (?:noch )?fragen haben|n'hésitez pas|no dudes? en|ich hoffe,? das hilft)"
)
_PLAIN_WORD = re.compile(r"[\w']+")
_TAG = re.compile(
    r",\s*(?:right|correct|no|yes|huh|ok|(?:is|are|was|were|do|does|did|has|have|had|can|could|will"
    r"|would|should)n['’]t\s+\w+|(?:is|was|did|does|has|do|are|were|have|can|will)\s+\w+)\s*[?？]"
)
_PRESUPPOSING = re.compile(r"\W*(?:did|do)\s+you\s+know\s+that\b", re.IGNORECASE)
_QUESTION_MARKS = "?？؟⁇"
_OPENING_QUOTES = "\"'“‘„«"
_CLOSING = " \t*_`)]}!"
_QUOTE_ENDS = "\"'”’»“"
_ANNOUNCING = re.compile(
    r"(?:here(?:'s| is| are)\b|(?:the )?following\b|below\b|as follows\b|these are\b|this is\b"
    r"|in (?:summary|short|brief)\b|steps?\b)|.*\b(?:the following|as follows|below)\W*$",
    re.IGNORECASE,
)
_BOLD_LINE = re.compile(r"(?:\*\*|__)[^*_]+(?:\*\*|__)")


def plain_reason(raw: str, text: str, kind: SentenceKind) -> UnauditedReason | None:
    """Return why a sentence of prose or a list item asserts nothing, judged by itself.

    Parameters
    ----------
    raw : str
        The sentence as it stands in the response.
    text : str
        The same, markup removed.
    kind : SentenceKind
        Its layout: "3." is an empty list item, or an answer of one number in running text.

    Returns
    -------
    UnauditedReason or None
        ``no_words``, ``greeting`` or ``question``; None for anything else. A bare "Yes." counts
        as a greeting: without its question it says nothing. "..., right?" and "Did you know
        that ..." do assert, and a question that someone is reported to have asked does too.
    """
    is_empty_item = kind is SentenceKind.LIST_ITEM and is_bare_list_mark(raw)
    if is_empty_item or not any(character.isalnum() for character in text):
        return UnauditedReason.NO_WORDS
    plain = " ".join(_PLAIN_WORD.findall(text.casefold().replace("’", "'")))
    if _PLEASANTRY.fullmatch(plain) or _COURTESY.match(plain):
        return UnauditedReason.GREETING
    return UnauditedReason.QUESTION if _is_question(text) else None


def _is_question(text: str) -> bool:
    bare = text.rstrip(_CLOSING)
    if bare[-1:] in _QUOTE_ENDS and bare[:1] in _OPENING_QUOTES:
        bare = bare.rstrip(_QUOTE_ENDS)
    if not bare or bare[-1] not in _QUESTION_MARKS:
        return False
    return _TAG.search(bare) is None and _PRESUPPOSING.match(bare) is None


def is_lead_in(raw: str, text: str, following: SentenceKind | None) -> bool:
    """Tell whether a sentence only announces what comes after it.

    Such are: a line that ends in a colon before a list, code or table, and a short one
    ("Steps to take:") anywhere; a short ``#`` or bold heading. One that carries a number or a
    name and does not announce ("The line has 3 stops:") is an assertion.
    """
    words = words_of(text)
    has_facts = any(word.number is not None for word in words) or any(
        word.is_capitalised for word in words[1:]
    )
    if text.rstrip(_CLOSING + _QUOTE_ENDS).endswith((":", "：")):
        if _ANNOUNCING.match(text):
            return following not in (None, SentenceKind.PROSE) or len(words) <= _LONGEST_HEADING
        leads_block = following not in (None, SentenceKind.PROSE)
        return not has_facts and (leads_block or len(words) <= _LONGEST_HEADING)
    is_heading = HEADING_MARK.match(raw) or _BOLD_LINE.fullmatch(raw.strip())
    ends_open = not text.endswith((".", "!", "。"))
    is_short = len(words) <= _LONGEST_PLAIN_HEADING
    return bool(is_heading) and ends_open and is_short and not has_facts
