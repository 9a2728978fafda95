"""Tiny random classifiers, and examples to ask them."""

import torch
from architectures import config, tokenizer_of
from transformers import AutoModelForSequenceClassification

from analysis.encoders.models import Encoder
from analysis.texts.examples import Example

TEXTS = (
    ("A cat sat on the mat , and a dog barked at the cat .", "The dog saw it ."),
    ("She sees him .", None),
    ("The quick brown fox didn't see the lazy dog , but the dog saw it .", "A fox ran ."),
    ("He says that she likes the old red car !", None),
    ("No .", None),
)
EXAMPLES = [Example(f"e{number}", *texts, label=number % 2) for number, texts in enumerate(TEXTS)]
PAIRS = [
    Example("one", "The cat ran home , and the dog ran too .", "A cat and a dog ran away .", 1),
    Example("two", "Red cars stop .", "She sees him , he says .", 0),
    Example("three", "The old dog saw a fox .", "The old dog saw a fox .", 1),
    Example("single", "The old dog saw a fox .", label=0),
]  # the last is a single text
CHOICES = [
    Example(f"c{number}", text, label=number % 2, choices=("It is so .", "The old dog did not see her ."))
    for number, (text, _) in enumerate(TEXTS)
]


def classifier(architecture: str, outputs: int = 3, **options) -> Encoder:
    """A tiny random encoder under a random classification head, the same at every call."""
    tokenizer = tokenizer_of(architecture)
    settings = config(architecture, len(tokenizer))
    settings.update({"num_labels": outputs, **options})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        model = AutoModelForSequenceClassification.from_config(settings).eval()
    return Encoder(architecture, model, tokenizer)
