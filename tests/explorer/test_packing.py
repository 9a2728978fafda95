"""Packed sentences hold what the model does: attention, sieves, scores."""

import numpy as np
import pytest
from headtables import HEADS, LAYERS, unpacked_mask

from analysis.explorer.packing import illustrative, pack, unpacked_attention
from analysis.scores.extraction import extract, read_attention, read_sieves
from analysis.texts.examples import Example, Relation
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse

ROLES = ("local", "nsubj", "block")
LARGEST = 0.004  # of all errors that eight bits make


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return load_examples("toy-mrpc", split="dev", n=3, seed=0)


@pytest.fixture(scope="module")
def packed(tiny, examples):
    return pack(tiny, examples, parse(examples), ROLES, "pretrained", "mrpc")


def test_attention_is_that_of_the_encoder(tiny, examples, packed):
    for example, sentence in zip(examples, packed, strict=True):
        layout, attention = read_attention(tiny, example)
        result = unpacked_attention(sentence["attention"]["pretrained"], attention.shape)
        assert attention.shape[:2] == (LAYERS, HEADS)
        assert np.abs(result - attention).max() <= LARGEST
        assert sentence["tokens"] == [*layout.tokens]
        assert [i for i, token in enumerate(sentence["tokens"]) if token == "[SEP]"] == sentence["sep"]
        assert [number < 0 for number in sentence["text"]] == (layout.cls | layout.sep).tolist()


def test_masks_are_where_sieves_weigh(tiny, examples, packed):
    for example, sentence in zip(examples, packed, strict=True):
        sieves = read_sieves(tiny, example, parse([example]), ROLES)
        assert sentence["masks"].keys() == sieves.keys()
        for role, sieve in sieves.items():
            assert (unpacked_mask(sentence["masks"][role], len(sieve)) == (sieve > 0)).all()


def test_scores_are_those_of_extract(tiny, examples, packed):
    scores = extract(tiny, examples, parse(examples), ROLES, progress=False)
    for sentence in packed:
        for role, states in sentence["scores"].items():
            expected = scores.sel(sequence=sentence["id"], role=role).values.ravel()
            assert states["pretrained"] == pytest.approx(expected.tolist(), rel=1e-3)


def test_illustrative_sentences_show_many_relations_in_few_words():
    texts = ("A dog barks at the old cat .", "Dogs bark .", "Dogs bark at cats .")
    examples = [Example(str(number), text) for number, text in enumerate(texts)]
    subject, modifier, article = (Relation(label, 0, (0, 1), (2, 3)) for label in ("nsubj", "amod", "det"))
    relations = {"0": (subject, modifier), "1": (subject,), "2": (article,)}
    assert illustrative(examples, relations, ["nsubj", "amod"], 2) == examples[:2]
