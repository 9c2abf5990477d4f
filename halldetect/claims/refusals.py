"""Statements of not knowing: about the answerer, or about a source that is silent.

A refusal says nothing that a source could entail, so it is recorded and never scored.

The rule, applied to one clause at a time:

- *Inability*: the answerer ("I", "we") does not know, cannot tell, has no information, or did not
  find an answer, a mention or anything in the document.
- *Silence*: the source under audit (the text, document, source, passage, excerpt, article, context
  or material, or "here") is the subject of a negated verb of saying or containing, or the place
  where something "is not" said or contained; and the clause holds no number besides citation
  marks. "The report", "the plan" and the like are things of the world: that they lack something
  is an assertion. So is what happened to a document ("the council did not approve the document"),
  and "the source of ..." or "the text of ..." something is not the source under audit.
- *Other languages* (German, French, Spanish, Italian, Portuguese, Dutch): a clause with a noun for
  the source, a negation, and a verb of saying or containing, and no number.
"""

from __future__ import annotations

import re

from halldetect.text.words import words_of

_LONGEST_REFUSAL = 600  # characters; whoever says so much says something
_CITATION = re.compile(r"[\[(]\s*\d+(?:\s*[,;–-]\s*\d+)*\s*[\])]")

_DOCUMENT = (
    r"(?:(?:the|this|these|those|your|our|any of the|all of the|either of the|none of the"
    r"|neither of the|my)\s+"
    r"(?:(?:provided|given|supplied|available|retrieved|source|reference|context|two|three|\d+"
    r"|whole|entire|attached|present|above)\s+){0,3}"
    r"(?:texts?|documents?|documentation|sources?|passages?|excerpts?|articles?|context|material"
    r"|materials|information|content|snippets?|search results)"
    r"(?:\s+(?:provided|given|supplied|above|available|you\s+(?:gave|provided|sent|shared)"
    r"|i\s+(?:have|was\s+given)))?(?!\s+of\b)(?!['\w]))"
)
_ADVERBS = (
    r"(?:(?:explicitly|specifically|directly|clearly|actually|really|even|also|itself|themselves"
    r"|simply|fully|further|yet|currently|however|unfortunately|ever|anywhere|just)\s+){0,2}"
)
_SAY = (
    r"(?:say|state|mention|contain|include|provide|give|specif(?:y)|describe|discuss|address"
    r"|indicate|cover|list|reveal|disclose|offer|explain|note|tell|answer|refer|clarify|define"
    r"|detail|identify|name|talk|speak|touch|elaborate|make|have|report|supply|present|go)"
)
_SAYS = (
    r"(?:says?|said|states?|stated|mentions?|mentioned|contains?|contained|includes?|included"
    r"|provides?|provided|gives?|gave|offers?|offered|has|have|had|makes?|made|tells?|told"
    r"|reveals?|discloses?|lists?|lacks?)"
)
_TOLD = (
    r"(?:said|stated|mentioned|contained|included|provided|given|specified|described|discussed"
    r"|addressed|indicated|covered|listed|revealed|disclosed|offered|explained|noted|answered"
    r"|found|available|present|clear|defined|detailed|named|reported|shown|written|there)"
)
_ANYTHING = (
    r"(?:answers?|information|info|details?|mentions?|references?|anything|nothing|data|evidence"
    r"|explanation|indication|specifics|figures?)"
)
_NOT = r"(?:not|n't|never)"
_IN_DOCUMENT = rf"(?:in|from|by|within|on|with|through|based\s+on)\s+(?:any\s+of\s+)?{_DOCUMENT}"
# "Dogs are not allowed here" and "lions are not found here" are about a place in the world.
_TOLD_HERE = (
    r"(?:said|stated|mentioned|included|specified|described|discussed|addressed|disclosed"
    r"|explained|answered)"
)
_SUBJECT = (
    r"(?<!\bin\s)(?<!\bfrom\s)(?<!\bby\s)(?<!\bwithin\s)(?<!\bon\s)(?<!\bwith\s)(?<!\bto\s)"
    rf"(?<!\babout\s)(?<!\bfor\s){_DOCUMENT}"
)

_SILENCE = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_SUBJECT},?\s+{_ADVERBS}(?:do|does|did|would|could|can)\s?{_NOT}\s+{_ADVERBS}{_SAY}\b",
        rf"{_SUBJECT}\s+{_ADVERBS}never\s+{_ADVERBS}{_SAYS}\b",
        rf"{_SUBJECT}\s+{_ADVERBS}{_SAYS}\s+{_ADVERBS}"
        r"(?:absolutely\s+|virtually\s+)?(?:nothing|no\b|not\b|neither\b)",
        rf"{_SUBJECT}\s+{_ADVERBS}lacks?\s+(?:any\s+)?{_ANYTHING}\b",
        rf"{_SUBJECT}\s+(?:is|are|was|were|remains?|stays?)\s+{_ADVERBS}silent\b",
        rf"(?:neither|none)\s+(?:of\s+)?{_DOCUMENT}\s+{_ADVERBS}(?:{_SAYS}|{_SAY})\b",
        rf"\bno\s+(?:document|source|passage|text|article)s?\s+{_ADVERBS}(?:{_SAYS}|{_SAY})\b",
        rf"\b(?:is|are|was|were|been|be|'s|has)\s?{_NOT}\s+(?:been\s+)?{_ADVERBS}"
        rf"(?:{_TOLD}\b.*\b{_IN_DOCUMENT}|{_TOLD_HERE}\b(?:.*\s)?here\b)",
        rf"\b{_IN_DOCUMENT}\s+(?:is|are|was|were)\s?{_NOT}\s+{_ADVERBS}{_TOLD}\b",
        rf"\bcan(?:not|\s?n't|\s+not|'t)\s+be\s+{_ADVERBS}(?:\w+ed|found|known|given|told)\b"
        rf".*\b{_IN_DOCUMENT}",
        rf"\bthere(?:\s+(?:is|are|was|were)|'s)\s?"
        rf"(?:{_NOT}\s+any\b|no\b|nothing\b|{_NOT}\s+enough\b).*\b{_IN_DOCUMENT}",
        rf"\b(?:nothing|no)\b.*\b(?:is|are|was|were)\s+{_ADVERBS}"
        rf"(?:{_TOLD}\b.*\b{_IN_DOCUMENT}|{_TOLD_HERE}\s+here\b)",
        rf"\b(?:nothing|no\s+{_ANYTHING})\b.*\b{_IN_DOCUMENT}",
        rf"\bin\s+{_DOCUMENT},?\s+(?:there\s+(?:is|are)\s+(?:no|nothing)|no\s+{_ANYTHING}|nothing)\b",
        r"\b(?:nothing|no\s+(?:information|details?|mention))\s+(?:about|on|regarding)\b.*\bhere\b",
        r"\bno\s+(?:information|details?)(?:\s+(?:about|on|regarding|for)\b.*)?\s+(?:is|are)\s+"
        r"(?:given|provided|available|included|stated)(?:\s+(?:about|on|regarding|for)\b.*|\W*)$",
        r"\bthere(?:\s+(?:is|are)|'s)\s(?:no|not\s+enough|insufficient)\s+"
        r"(?:information|details?|mention|context)\s+(?:about|on|regarding|of|available|provided|to)\b",
        r"^(?:unfortunately,?\s+|sorry,?\s+)?(?:not\s+enough|no|insufficient)\s+"
        r"(?:information|details?|context|answer|mention)\b(?!.*\b(?:is|are|was|were|has|had)\b)",
    )
)

_I = r"\b(?:i|we)(?:\s+am|\s+are|'m|'re|\s+was|\s+were)?"
_CANNOT = (
    r"(?:(?:can|could|do|did|would)\s?(?:not|n't)|cannot|can't|unable\s+to|not\s+able\s+to"
    r"|not\s+in\s+a\s+position\s+to)"
)
_INABILITY = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_I}\s+{_ADVERBS}{_CANNOT}\s+{_ADVERBS}"
        r"(?:know|answer|determine|tell|say|confirm|verify|comment|assist|help|be\s+(?:sure|certain))",
        rf"{_I}\s+{_ADVERBS}{_CANNOT}\s+{_ADVERBS}(?:find|see|locate|have|access)\b.*"
        rf"(?:\b{_ANYTHING}\b|\b{_DOCUMENT}|\baccess\b|\bknowledge\b)",
        rf"{_I}\s+{_ADVERBS}{_CANNOT}\s+{_ADVERBS}(?:find|see|locate)\s+(?:it|this|that)\b"
        rf"(?:\s+(?:here|{_IN_DOCUMENT}))?\W*$",
        rf"{_I}\s+{_ADVERBS}(?:can\s?(?:not|n't)|cannot|can't|unable\s+to|not\s+able\s+to)\s+"
        rf"{_ADVERBS}(?:identify|provide|give|offer)\b.*\b{_ANYTHING}\b",
        rf"{_I}\s+{_ADVERBS}(?:have|found|find|see|saw)\s+{_ADVERBS}no\s+(?:\w+\s+){{0,2}}"
        rf"(?:{_ANYTHING}|access|knowledge|idea|record|way)\b",
        rf"{_I}\s+{_ADVERBS}(?:found|find|see|saw|have|know)\s+nothing\b",
        rf"{_I}\s+{_ADVERBS}(?:found|find|see)\s+no\b.*\b{_DOCUMENT}",
        rf"{_I}\s+{_ADVERBS}(?:not\s+(?:sure|certain|aware)|unsure|unaware)\b",
        rf"{_I}\s+{_ADVERBS}lack\s+(?:the\s+|any\s+)?{_ANYTHING}\b",
    )
)

_FOREIGN_DOCUMENT = re.compile(
    r"\b(?:text|dokument(?:e|en|s)?|quellen?|abschnitt|artikel|kontext|unterlagen|auszug|passage|vorlage"
    r"|texte|documents?|sources?|extrait|article|contexte"
    r"|texto|documentos?|fuentes?|pasaje|artículo|contexto"
    r"|testo|documento|documenti|font[ei]|brano|articolo|contesto"
    r"|fontes|trecho|artigo|tekst|documenten|bron(?:nen)?|artikelen|fragment)\b"
)
_FOREIGN_NEGATION = re.compile(
    r"\b(?:nichts?|keine?[nrms]?|keinerlei|weder|rien|aucune?|pas|ni|nada|ning[uú]na?|ningún"
    r"|non|niente|nulla|nessuna?|nessun|não|nenhuma?|nenhum|niets|geen|niet)\b|\bno\b"
)
_FOREIGN_SAY = re.compile(
    r"\b(?:steht|stehen|sagt|sagen|enthält|enthalten|erwähnt|erwähnen|nennt|nennen|findet|finden"
    r"|gibt|geht|angegeben|beschrieben|angaben|genannt"
    r"|dit|disent|contient|contiennent|mentionne|mentionnent|mentionnée?s?|indique|indiquent"
    r"|précise|précisent|trouve|figure|donne|parle|y\s+a"
    r"|dicen?|contienen?|mencionan?|menciona|indican?|encuentra|aparece|especifican?|hay|habla"
    r"|dice|dicono|contiene|contengono|menziona|menzionano|indica|indicano|trova|parla|c'è|riporta"
    r"|dizem?|diz|cont[eé]m|mencionam|informam?|informa|há|fala|consta"
    r"|staat|staan|zegt|zeggen|bevat|bevatten|vermeldt?|vermelden|noemt|noemen|geeft)\b"
)
_ENGLISH = re.compile(r"\b(?:the|of|and|is|was|were|are|has|with|that|this|its|their)\b")
_FOREIGN_INABILITY = re.compile(
    r"\bich\s+(?:weiß|konnte|kann|habe|finde|fand)\b.*\b(?:nicht|nichts|keine?[nrms]?)\b"
    r"|\bmir\s+liegen\s+keine\b"
    r"|\bje\s+(?:ne\s+|n')\s?(?:sais|peux|trouve|dispose|ai)\b.*\b(?:pas|rien|aucune?)\b"
    r"|\bno\s+(?:lo\s+)?(?:sé|puedo|encuentro|encontré|tengo|dispongo)\b"
    r"|\bnon\s+(?:lo\s+)?(?:so|posso|trovo|dispongo|ho\s+trovato|ho\s+informazioni)\b"
    r"|\b(?:eu\s+)?não\s+(?:sei|posso|encontrei|encontro|tenho)\b"
    r"|\bik\s+(?:weet|kan|heb|vind|vond)\b.*\b(?:niet|niets|geen)\b"
)


_HINT = re.compile(
    r"\b(?:not|no|nothing|never|none|neither|cannot|unable|silent|lacks?|unsure|unaware|insufficient)\b"
    r"|n't\b|'t\b"
)


def may_refuse(text: str) -> bool:
    """Tell whether `text` has a word without which nothing is a refusal; quick."""
    plain = _plain(text)
    return bool(_HINT.search(plain) or _FOREIGN_NEGATION.search(plain))


def is_refusal(clause: str) -> bool:
    """Tell whether `clause` only says that something is not known or not in the source.

    Parameters
    ----------
    clause : str
        One clause of a sentence, see the rule above.

    Returns
    -------
    bool
        False in doubt: an assertion taken for a refusal would not be audited.
    """
    if len(clause) > _LONGEST_REFUSAL:
        return False
    plain = _plain(clause)
    if not may_refuse(plain):
        return False
    if any(pattern.search(plain) for pattern in _INABILITY) or _FOREIGN_INABILITY.search(plain):
        return True
    return not _has_number(plain) and _says_source_is_silent(plain)


def _says_source_is_silent(plain: str) -> bool:
    if any(pattern.search(plain) for pattern in _SILENCE):
        return True
    if _ENGLISH.search(plain):
        return False  # "no", "figure" and "passage" are English words too
    foreign = (_FOREIGN_DOCUMENT, _FOREIGN_NEGATION, _FOREIGN_SAY)
    return all(pattern.search(plain) for pattern in foreign)


def _plain(clause: str) -> str:
    words = _CITATION.sub(" ", clause).casefold()
    return " ".join(words.replace("’", "'").replace("ʼ", "'").replace("*", "").split())


def _has_number(plain: str) -> bool:
    outside = re.sub(_DOCUMENT, " ", plain)
    return any(word.number is not None and word.text != "one" for word in words_of(outside))
