"""The Penn Treebank tag of a word from its universal part of speech, its form and its inflection."""

# Tags of verb forms, for main verbs and auxiliaries; the tag of the present tense depends on the number.
VERB_FORMS = {"base": "VB", "past": "VBD", "participle": "VBN", "gerund": "VBG"}
PRESENT = {"singular": "VBZ", "plural": "VBP"}
# Words whose tag does not follow from their part of speech.
EXCEPTIONS = {
    **dict.fromkeys([".", "?", "!"], "."),
    **dict.fromkeys(["'s", "'"], "POS"),
    **dict.fromkeys(["how", "when", "where", "why"], "WRB"),
    **dict.fromkeys(["can", "ca", "could", "may", "might", "must", "should", "will", "would"], "MD"),
    **dict.fromkeys(["nobody", "everyone", "everything", "nothing"], "NN"),
    **{",": ",", ";": ":", ":": ":", "n't": "RB", "not": "RB", "according": "VBG"},
}
BY_UPOS = {
    "ADJ": "JJ", "ADP": "IN", "ADV": "RB", "CCONJ": "CC", "DET": "DT", "NOUN": "NN", "NUM": "CD", "PART": "TO",
    "PRON": "PRP", "PROPN": "NNP", "SCONJ": "IN", "AUX": "MD", "VERB": "VB",
}  # fmt: skip
BY_LABEL = {"compound:prt": "RP", "nmod:poss": "PRP$", "det:predet": "PDT"}
COMPARISON = {
    **dict.fromkeys(["best", "most", "least"], "S"),
    **dict.fromkeys(
        ["more", "less", "better", "shorter", "younger", "older", "higher", "lower", "earlier"], "R"
    ),
}


def penn_tag(word: str, upos: str, feature: str, label: str, number: str) -> str:
    """The Penn Treebank tag of a word; `number` is that of the noun itself, or that of a verb's subject."""
    if feature == "present" and upos in {"AUX", "VERB"}:
        return PRESENT[number]
    if feature in VERB_FORMS and upos in {"AUX", "VERB"}:
        return VERB_FORMS[feature]
    if word in EXCEPTIONS:
        return EXCEPTIONS[word]
    if upos in {"NOUN", "PROPN"}:
        return BY_UPOS[upos] + ("S" if number == "plural" else "")
    if upos in {"ADJ", "ADV"}:
        return BY_UPOS[upos] + COMPARISON.get(word, "")
    if word in {"who", "what", "whose"} and upos == "PRON":
        return "WP$" if word == "whose" else "WP"
    if word in {"that", "which", "what"} and upos in {"PRON", "DET"}:
        return "DT" if upos == "DET" and word == "that" else "WDT"
    if upos == "PRON" or label in {"compound:prt", "det:predet"}:
        return BY_LABEL.get(label, BY_UPOS[upos])
    return BY_UPOS[upos]
