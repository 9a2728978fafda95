"""The words of the tables of this paper, apart from the code that needs torch: claims are judged without it."""

VERTICAL, DIAGONAL, BOTH, BLOCK = "vertical", "diagonal", "vertical and diagonal", "block"
HETEROGENEOUS = "heterogeneous"
PATTERNS = (VERTICAL, DIAGONAL, BOTH, BLOCK, HETEROGENEOUS)
CLS, SEP = "[CLS]", "[SEP]"
PARTS_OF_SPEECH = {"noun": ("NOUN", "PROPN"), "verb": ("VERB",), "pronoun": ("PRON",)}
ARGUMENTS = {  # relations of spaCy and of Universal Dependencies
    "subject": ("nsubj", "nsubj:pass", "csubj", "csubj:pass", "expl", "agent"),
    "object": ("dobj", "iobj", "dative", "attr", "oprd"),
}
NEGATION = "negation"
LINGUISTIC = (*PARTS_OF_SPEECH, *ARGUMENTS, NEGATION)
FEATURES = (*LINGUISTIC, "punctuation", CLS, SEP)
STATES = ("pretrained", "finetuned")
UNTUNED, RANDOM, PRETRAINED = "untuned", "random", "pretrained"  # where training starts
SPECIAL_HEADS = "heads with most attention on special tokens"
