"""How each encoder was trained before the study: what "pre-trained" means in its tables."""

NOTES = {
    "minilm": "MiniLM, a sentence encoder tuned on a billion pairs of texts, which is not a masked language model",
    "tiny": "random weights: its heads have learnt nothing",
    "bert-base-uncased": "BERT-base, a masked language model",
}


def encoder_note(name: str) -> str:
    """One line on an encoder, shown beside every verdict on it."""
    return f"{name}: {NOTES.get(name, 'as loaded')}"
