"""Heads at work: masked special tokens, rows that sum to one, arcs of the gold annotation."""

import numpy as np

from analysis.papers.clark2019.attachment import dependency_table
from analysis.papers.clark2019.illustrations import head_examples
from analysis.scores.attachment import DIRECTIONS, attach
from analysis.scores.words import split_words, word_maps
from analysis.texts.dependencies import arcs


def test_examples_show_the_first_suitable_sentence_without_special_tokens(encoder, words):
    scored, attached = arcs(words), attach(encoder, words, progress=False)
    table = dependency_table(attached, scored, minimum=20, resamples=99, permutations=99)
    gains = table.head(3)
    for example in head_examples(encoder, attached, scored, gains, (4, 14)):
        assert example.attention.shape == 2 * (len(example.forms),)
        assert 4 <= len(example.forms) <= 14
        [pieces] = split_words(encoder.tokenizer, [example.forms]).kept
        inside = word_maps(encoder, pieces)[example.layer, example.head, 1:-1, 1:-1]
        expected = inside / inside.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(example.attention, expected, rtol=1e-5)
        sentence = words.groupby("sentence")["form"].agg(list)
        number = next(index for index, forms in sentence.items() if forms == example.forms)
        gold = scored[(scored["sentence"] == number) & (scored["relation"] == example.relation)]
        pairs = {(row.word, row.head - 1) for row in gold.itertuples() if row.head > 0}
        if example.direction == DIRECTIONS[1]:
            pairs = {(head, dependent) for dependent, head in pairs}
        assert {*example.arcs} == pairs
    shortest = [len(each.forms) for each in head_examples(encoder, attached, scored, gains, (900, 901))]
    lengths = scored[scored["head"] > 0].groupby("relation")["length"].min()
    assert shortest == lengths[gains["relation"]].tolist()
