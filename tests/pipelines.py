"""A small spaCy pipeline with a tagger and a parser, trained on the first sentences of the bundled documents."""

from pathlib import Path

import conllu
import spacy
from spacy.tokens import Doc
from spacy.training import Example

from analysis.texts.passages import bundled_documents

SENTENCES, EPOCHS = 120, 4


def write_pipeline(folder: Path) -> None:
    """Trains the pipeline, for a few seconds, and writes it to a folder."""
    spacy.util.fix_random_seed(0)
    pipeline = spacy.blank("en")
    pipeline.add_pipe("morphologizer")
    pipeline.add_pipe("parser")
    examples = [
        _example(pipeline, sentence) for sentence in conllu.parse(bundled_documents(12, "train"))[:SENTENCES]
    ]
    optimizer = pipeline.initialize(lambda: examples)
    for _ in range(EPOCHS):
        for start in range(0, len(examples), 16):
            pipeline.update(examples[start : start + 16], sgd=optimizer)
    pipeline.to_disk(folder)


def _example(pipeline, sentence) -> Example:
    words = [word for word in sentence if isinstance(word["id"], int)]
    spaces = [(word["misc"] or {}).get("SpaceAfter") != "No" for word in words]
    document = Doc(pipeline.vocab, words=[word["form"] for word in words], spaces=spaces)
    heads = [word["head"] - 1 if word["head"] else place for place, word in enumerate(words)]
    labels = {
        "heads": heads,
        "deps": [word["deprel"] for word in words],
        "pos": [word["upos"] for word in words],
    }
    return Example.from_dict(document, labels)
