from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from analysis.papers.clark2019 import probes
from analysis.texts.dependencies import uas

SEEDS = [0, 1]
LENGTHS = [4, 2]
DIMENSION = 5


def random_batch() -> probes.Batch:
    generator = torch.Generator().manual_seed(0)
    longest = max(LENGTHS)
    attention = torch.rand(2, longest + 2, longest + 2, 3, generator=generator)
    vectors = torch.rand(2, longest, DIMENSION, generator=generator)
    for number, length in enumerate(LENGTHS):
        attention[number, length + 2 :], attention[number, :, length + 2 :] = 0, 0
        vectors[number, length:] = 0
    both = torch.cat([attention, attention.transpose(1, 2)], dim=-1)
    return probes.Batch(torch.tensor(LENGTHS), vectors, both, torch.zeros(2, longest, dtype=int))


def pair_of(batch: probes.Batch, number: int, word: int, candidate: int) -> torch.Tensor:
    """The vectors of a word and a candidate; zeros for ROOT."""
    if candidate:
        return torch.cat([batch.vectors[number, word - 1], batch.vectors[number, candidate - 1]])
    return torch.zeros(2 * DIMENSION)


def check(probe, batch: probes.Batch, weights_of_pair) -> None:
    """Whether the logit of every word and candidate is that of the definition."""
    logits = probe(batch)
    for seed, (number, length) in product(range(len(SEEDS)), enumerate(LENGTHS)):
        for word, candidate in product(range(1, length + 1), range(length + 1)):
            attention = batch.attention[number, word]
            pair = attention[candidate]
            if candidate == 0:
                start, end = probe.root[seed, :, 0]
                pair = start * attention[0] + end * attention[length + 1]
            expected = (weights_of_pair(seed, number, word, candidate) * pair).sum()
            result = logits[seed, number, word - 1, candidate]
            torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
        assert torch.isinf(logits[seed, number, :length, length + 1 :]).all()


def test_attention_probes_against_loops():
    alone, batch = probes.AttentionProbe(6, SEEDS), random_batch()
    check(alone, batch, lambda seed, *_: alone.weights[seed])
    probe = probes.AttentionWordsProbe(6, DIMENSION, SEEDS)
    torch.nn.init.normal_(probe.bias)

    def weights(seed: int, *place: int) -> torch.Tensor:
        return pair_of(batch, *place) @ probe.of_pair[seed] + probe.bias[seed]

    check(probe, batch, weights)


def test_distance_probe_against_a_loop():
    probe, batch = probes.DistanceProbe(DIMENSION, SEEDS), random_batch()
    logits = probe(batch)
    for seed, (number, n) in product(range(len(SEEDS)), enumerate(LENGTHS)):
        for word, candidate in product(range(1, n + 1), range(n + 1)):
            step = candidate - word
            if candidate:
                distance = [max(step, 0) / n, max(-step, 0) / n, *(float(step == o) for o in probes.NEAR), 0]
            else:
                distance = [0] * (2 + len(probes.NEAR)) + [1]
            pair = pair_of(batch, number, word, candidate)
            inputs = torch.cat([torch.tensor(distance), pair])
            hidden = torch.tanh(inputs @ probe.layer[seed] + probe.bias[seed])
            expected = hidden @ probe.out[seed] + probe.out_bias[seed]
            torch.testing.assert_close(logits[seed, number, word - 1, candidate][None], expected)
    assert torch.isinf(logits[:, 1, :, 3:]).all()


def vectors_of(words: pd.DataFrame) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(len(words), DIMENSION)).astype(np.float32)


@pytest.fixture
def planted(monkeypatch, tiny, words):
    """Data whose second of four maps attends from each word to its head, from the root to [CLS]."""
    data = probes.parses(tiny, words, vectors_of(words))
    gold = {id(pieces): torch.tensor(heads) for pieces, heads in zip(data.pieces, data.heads, strict=True)}

    def attention(_, batch):
        longest = max(pieces.words for pieces in batch)
        maps = torch.full((len(batch), longest + 2, longest + 2, 4), 0.1)
        for number, pieces in enumerate(batch):
            maps[number, torch.arange(1, pieces.words + 1), gold[id(pieces)], 1] = 1.0
        return torch.cat([maps, maps.transpose(1, 2)], dim=-1)

    monkeypatch.setattr(probes, "_attention", attention)
    return data


def test_probes_learn_a_planted_head(planted, tiny, monkeypatch):
    monkeypatch.setattr(probes, "LEARNING_RATE", 0.05)
    kinds = {"attention": probes.AttentionProbe(8, SEEDS)}
    kinds["words"] = probes.AttentionWordsProbe(8, DIMENSION, SEEDS)
    probes.train(kinds, tiny, planted, progress=False)
    for heads in probes.predict(kinds, tiny, planted).values():
        assert min(uas(seed, planted.words) for seed in heads) > 0.97


def test_probes_train_as_if_alone_and_predict_by_the_words_of_the_treebank(tiny, words):
    words = words[words["sentence"] < 25]
    data = probes.parses(tiny, words, vectors_of(words))
    features = 2 * tiny.layers * tiny.heads
    together = {"a": probes.AttentionProbe(features, SEEDS)}
    together["w"] = probes.AttentionWordsProbe(features, DIMENSION, SEEDS)
    alone = {"a": probes.AttentionProbe(features, SEEDS[1:])}
    for kinds in (together, alone):
        probes.train(kinds, tiny, data, progress=False)
    torch.testing.assert_close(together["a"].weights[1], alone["a"].weights[0])
    whole, single = (probes.predict(together, tiny, data, size)["a"] for size in (16, 1))
    assert (whole == single).all()
    assert (whole <= words.groupby("sentence")["word"].transform("size").to_numpy()).all()
