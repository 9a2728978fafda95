"""What an encoder was before the study touched it: what "pre-trained" means in its tables."""

PLAIN = "as loaded"
NOTES = {
    "minilm": "MiniLM, a sentence encoder already tuned on a billion pairs of texts with mean pooling: its "
    "pre-trained state is not that of a masked language model such as BERT",
    "tiny": "random weights: its heads have learnt nothing",
    "bert-base-uncased": "BERT-base, a masked language model",
}


def encoder_note(name: str) -> str:
    """One line on what an encoder is, to stand beside every verdict on it; its name alone where nothing is known."""
    return f"{name}: {NOTES[name]}" if name in NOTES else f"{name}: {PLAIN}"
