"""Heads at work: masked special tokens, rows that sum to one, arcs of the gold annotation, hits and misses."""

import numpy as np
import pandas as pd

from analysis.encoders.models import load_encoder
from analysis.papers.clark2019 import coreference
from analysis.papers.clark2019.attachment import dependency_table
from analysis.papers.clark2019.illustrations import LONGEST, coreference_examples, head_examples
from analysis.scores.attachment import DIRECTIONS, attach
from analysis.scores.words import split_words, word_maps
from analysis.texts.chains import read_chains
from analysis.texts.dependencies import arcs


def test_examples_show_the_first_hit_and_the_first_miss_without_special_tokens(tiny, words):
    scored, attached = arcs(words), attach(tiny, words, progress=False)
    gains = dependency_table(attached, scored, minimum=20, resamples=99, permutations=99).head(3)
    forms = words.groupby("sentence")["form"].agg(list)
    maps = {
        number: word_maps(tiny, split_words(tiny.tokenizer, [each]).kept[0])[..., 1:-1, 1:-1]
        for number, each in forms.items()
    }
    found = iter(head_examples(tiny, attached, scored, gains, (4, 14)))
    for row in gains.itertuples():
        own = scored[(scored["relation"] == row.relation) & (scored["head"] > 0)]
        first = {}
        for arc in own[own["length"].between(4, 14)].itertuples():
            map_ = maps[arc.sentence][row.layer, row.head] * (1 - np.eye(arc.length))
            side = map_[arc.word] if row.direction == DIRECTIONS[0] else map_[:, arc.word]
            first.setdefault(bool(side.argmax() == arc.head - 1), arc)
        for hit, arc in sorted(first.items(), reverse=True):
            example = next(found)
            assert example[:5] == (row.relation, row.layer, row.head, row.direction, hit)
            assert example.forms == forms[arc.sentence]
            step = 1 if row.direction == DIRECTIONS[0] else -1
            assert example.arc == (arc.word, arc.head - 1)[::step]
            inside = maps[arc.sentence][row.layer, row.head]
            expected = inside / inside.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(example.attention, expected, rtol=1e-5)
    assert next(found, None) is None
    shortest = [len(each.forms) for each in head_examples(tiny, attached, scored, gains, (900, 901))]
    lengths = scored[scored["head"] > 0].groupby("relation")["length"].min()
    assert {*shortest} <= {*lengths[gains["relation"]]}


def test_examples_of_antecedents_show_a_hit_and_a_miss_of_every_head(bundled):
    encoder = load_encoder("minilm")  # heads with random weights hit nothing
    texts = coreference.fit(encoder, read_chains([bundled]).documents)
    places = [(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]
    systems = pd.DataFrame(places, columns=["layer", "head"])
    found = coreference_examples(encoder, texts, systems, distances=(1, 30))
    keys = [(each.layer, each.head, each.hit) for each in found]
    assert keys == sorted({*keys}, key=lambda key: (key[:2], not key[2]))
    assert {each.hit for each in found} == {True, False}
    for example in found:
        mention, antecedent = example.arc
        assert 0 <= antecedent < mention < len(example.forms) <= 33
        assert max(map(len, example.forms)) <= LONGEST
        np.testing.assert_allclose(example.attention.sum(axis=1), 1, rtol=1e-5)
        if example.hit:  # among the words shown, none but the mention itself gets more
            others = np.delete(example.attention[mention], mention)
            assert example.attention[mention, antecedent] >= others.max()
