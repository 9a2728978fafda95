"""Probes that read syntax from all heads together, trained on one treebank and scored on another (Clark 2019, 5)."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Float32, Int
from scipy import stats
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from analysis.encoders.finetuning import fit
from analysis.encoders.models import Encoder, weights_digest
from analysis.encoders.vectors import word_vectors
from analysis.scores.words import LIMIT, Words, read_batch, split_words
from analysis.texts.dependencies import right_branching, uas

LEARNING_RATE = 0.002
BATCH = 16  # sentences that the encoder reads at a time
HIDDEN = 256  # units of the distance probe
NEAR = (0, -1, 1, -2, 2)  # offsets that have an indicator in the distance probe
POOL = 512  # consecutive sentences of the file from which batches of similar length are made
PADDED = -1  # the gold head of a position after the last word
RIGHT_BRANCHING, NO_ENCODER = "right-branching", "none"

Logits = Float[Tensor, "seed batch word candidate"]  # the candidates of a word are ROOT and all words


class Parses(NamedTuple):
    """Sentences with their gold heads (0 is ROOT, words count from 1) and word vectors.

    `words` are the rows of the treebank for these sentences, in their order.
    """

    pieces: list[Words]
    heads: list[Int[np.ndarray, " word"]]
    vectors: list[Float32[np.ndarray, "word dimension"]]
    words: pd.DataFrame


def parses(
    encoder: Encoder,
    words: pd.DataFrame,
    vectors: Float32[np.ndarray, "word dimension"],
    max_tokens: int = LIMIT,
) -> Parses:
    """The sentences of a treebank (see `dependencies.read_trees`) that an encoder can read, with their vectors."""
    sentences = [part for _, part in words.reset_index(drop=True).groupby("sentence", sort=False)]
    pieces = split_words(encoder.tokenizer, [part["form"].tolist() for part in sentences], max_tokens).kept
    readable = [sentences[sentence.number] for sentence in pieces]
    heads = [sentence["head"].to_numpy() for sentence in readable]
    return Parses(pieces, heads, [vectors[sentence.index] for sentence in readable], pd.concat(readable))


class Batch(NamedTuple):
    """A padded batch: vectors of the words (zero after the last word), attention between words, and gold heads.

    At (i, j), `attention` holds the attention from word i to word j of every head, then the attention from j to i.
    Position 0 is [CLS]; the position after a sentence's last word is [SEP].
    """

    lengths: Int[Tensor, " batch"]
    vectors: Float[Tensor, "batch word dimension"]
    attention: Float[Tensor, "batch position position feature"]
    heads: Int[Tensor, "batch word"]

    @property
    def is_word(self) -> Float[Tensor, "batch position"]:
        """1 for the positions of words, 0 for [CLS], [SEP] and padding."""
        position = torch.arange(self.vectors.shape[1] + 2, device=self.lengths.device)
        return ((position > 0) & (position <= self.lengths[:, None])).float()

    def part(self, sentences: slice) -> "Batch":
        """Some sentences of the batch, padded to the longest of them."""
        longest = int(self.lengths[sentences].max())
        vectors, heads = self.vectors[sentences, :longest], self.heads[sentences, :longest]
        maps = self.attention[sentences, : longest + 2, : longest + 2]
        return Batch(self.lengths[sentences], vectors, maps, heads)


class Probe(nn.Module):
    """A classifier of each word's head among ROOT and the words of its sentence, for several seeds at once.

    Seeds differ only in their initial weights: all see the same sentences in the same order. The losses of the seeds
    are added, and Adam treats every weight by itself, so each seed trains as if it were alone.
    """

    def __init__(self, seeds: Sequence[int]):
        super().__init__()
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def glorot(self, *shape: int) -> nn.Parameter:
        """Uniform random weights for every seed, after Glorot and Bengio 2010; the last two sizes are the fans."""
        fan_in, fan_out = (shape[-1], shape[-1]) if len(shape) < 2 else shape[-2:]
        bound = (6 / (fan_in + fan_out)) ** 0.5
        weights = torch.stack([torch.rand(shape, generator=generator) for generator in self.generators])
        return nn.Parameter(weights * 2 * bound - bound)

    def zeros(self, size: int) -> nn.Parameter:
        """A bias for every seed."""
        return nn.Parameter(torch.zeros(len(self.generators), size))


class AttentionProbe(Probe):
    """A weight for every head and direction, and two scalars for ROOT: attention to and from [CLS] and [SEP].

    p(i | j) is proportional to exp(sum over heads of w a_ij + u a_ji). Source: Clark 2019, 5.
    """

    def __init__(self, features: int, seeds: Sequence[int]):
        super().__init__(seeds)
        self.weights, self.root = self.glorot(features), self.glorot(2, 1)

    def forward(self, batch: Batch) -> Logits:
        return with_root((batch.attention @ self.weights.mT).movedim(-1, 0), self.root, batch)


class AttentionWordsProbe(Probe):
    """An attention probe whose weights for a pair of words are an affine function of the two words' vectors.

    The pair of a word with ROOT has only the bias. Source: Clark 2019, 5; departure: the authors' code gives each
    candidate the vector of the word after it, since it puts ROOT last among the vectors and first in the attention.
    """

    def __init__(self, features: int, dimension: int, seeds: Sequence[int]):
        super().__init__(seeds)
        self.of_pair, self.bias = self.glorot(2 * dimension, features), self.zeros(features)
        self.root = self.glorot(2, 1)

    def forward(self, batch: Batch) -> Logits:
        dimension = batch.vectors.shape[-1]
        dependent, candidate = self.of_pair[:, :dimension], self.of_pair[:, dimension:]
        vectors = pad(batch.vectors, (0, 0, 1, 1))  # zero for [CLS] and [SEP], which stand for ROOT
        # Seen from the candidate, the two directions of a pair are exchanged.
        exchanged = torch.cat(candidate.chunk(2, dim=-1)[::-1], dim=-1)
        weights = [
            self.bias[:, None, None].expand(-1, *vectors.shape[:2], -1),
            vectors @ dependent[:, None],
            vectors @ exchanged[:, None],
        ]
        # The weights of every position, for all seeds, times the attention of its pairs:
        # (batch, position, position, 3 times seeds).
        terms = batch.attention @ torch.cat(weights).movedim(0, -1)
        bias, by_dependent, by_candidate = terms.chunk(3, dim=-1)
        logits = bias + by_dependent * batch.is_word[:, None, :, None] + by_candidate.transpose(1, 2)
        return with_root(logits.movedim(-1, 0), self.root, batch)


def with_root(
    logits: Float[Tensor, "seed batch position position"], root: Float[Tensor, "seed two one"], batch: Batch
) -> Logits:
    """Logits of all candidates of every word, -inf after the last word; ROOT's come from [CLS] and [SEP]."""
    rows = logits[:, :, 1:-1]
    last = (batch.lengths + 1)[None, :, None, None].expand(*rows.shape[:3], 1)
    root_logits = root[:, None, :1] * rows[..., :1] + root[:, None, 1:] * rows.gather(-1, last)
    return _masked(torch.cat([root_logits, rows[..., 1:-1]], dim=-1), batch)


class DistanceProbe(Probe):
    """A layer of 256 tanh units over the distance of a pair and the vectors of its words, without attention.

    Distance is 8 features: how far the candidate follows, or precedes, as a proportion of the sentence; whether
    it is 0, 1 or 2 words away, on either side; whether it is ROOT. Source: Clark 2019, 5 (Distances + GloVe).
    """

    def __init__(self, dimension: int, seeds: Sequence[int]):
        super().__init__(seeds)
        self.layer, self.bias = self.glorot(3 + len(NEAR) + 2 * dimension, HIDDEN), self.zeros(HIDDEN)
        self.out, self.out_bias = self.glorot(HIDDEN, 1), self.zeros(1)

    def forward(self, batch: Batch) -> Logits:
        size = batch.vectors.shape[-1]
        distance, dependent, candidate = self.layer.split([3 + len(NEAR), size, size], dim=1)
        candidates = pad(batch.vectors, (0, 0, 1, 0))  # zero for ROOT
        features = distance_features(batch)
        distance_units = features.flatten(0, 2) @ distance + self.bias[:, None]
        dependent_units = (batch.vectors @ dependent[:, None])[:, :, :, None]
        dependent_units = dependent_units * batch.is_word[:, None, :-1, None]
        candidate_units = (candidates @ candidate[:, None])[:, :, None]
        units = distance_units.view(-1, *features.shape[:3], HIDDEN) + dependent_units + candidate_units
        logits = torch.tanh(units).flatten(1, 3) @ self.out + self.out_bias[:, None]
        return _masked(logits.view(units.shape[:-1]), batch)


def distance_features(batch: Batch) -> Float[Tensor, "batch word candidate feature"]:
    """The distance features of every word and candidate."""
    longest, n = batch.vectors.shape[1], batch.lengths[:, None, None]
    candidate = torch.arange(longest + 1.0, device=batch.lengths.device)
    step = (candidate - candidate[1:, None]).expand(len(n), -1, -1)
    steps = [step.clamp(min=0) / n, (-step).clamp(min=0) / n, *(step == offset for offset in NEAR)]
    to_words = torch.stack([feature * (candidate > 0) for feature in steps], dim=-1)
    return torch.cat([to_words, (candidate == 0).expand_as(step)[..., None]], dim=-1)


def _masked(logits: Logits, batch: Batch) -> Logits:
    """-inf for candidates after the last word of a sentence."""
    after = torch.arange(logits.shape[-1], device=logits.device) > batch.lengths[:, None]
    return logits.masked_fill(after[:, None], -torch.inf)


def batches_of(
    encoder: Encoder, data: Parses, size: int, seed: int | None = None
) -> Iterator[tuple[list[int], Batch]]:
    """Batches of sentences of similar length, and their indices; one batch of maps is in memory at a time.

    Pools of POOL sentences follow the order of the file. With a `seed`, the batches of a pool come in random order.
    """
    rng = np.random.default_rng(seed)
    for start in range(0, len(data.pieces), POOL):
        pool = range(start, min(start + POOL, len(data.pieces)))
        pool = sorted(pool, key=lambda index: len(data.pieces[index]))
        plan = [pool[at : at + size] for at in range(0, len(pool), size)]
        for number in range(len(plan)) if seed is None else rng.permutation(len(plan)):
            indices = plan[number]
            vectors = [torch.from_numpy(data.vectors[index]) for index in indices]
            heads = [torch.tensor(data.heads[index]) for index in indices]
            maps = _attention(encoder, [data.pieces[index] for index in indices])
            lengths = torch.tensor([len(sentence) for sentence in heads], device=encoder.device)
            padded = pad_sequence(vectors, batch_first=True).to(encoder.device)
            gold = pad_sequence(heads, batch_first=True, padding_value=PADDED).to(encoder.device)
            yield indices, Batch(lengths, padded, maps, gold)


def _attention(encoder: Encoder, batch: Sequence[Words]) -> Float[Tensor, "batch position position feature"]:
    """Attention between words in both directions, heads last (see `Batch`)."""
    layers: list[Tensor] = []
    read_batch(encoder, batch, lambda _, maps: layers.append(maps))
    maps = torch.cat(layers, dim=1).permute(0, 2, 3, 1)
    return torch.cat([maps, maps.transpose(1, 2)], dim=-1)


def train(
    probes: Mapping[Hashable, Probe], encoder: Encoder, data: Parses, step: int = 1, progress: bool = True
) -> None:
    """Trains all probes in one epoch; the attention of each batch is computed once and not kept.

    Adam, the summed cross-entropy over ROOT and the words of a sentence. The encoder reads BATCH sentences of similar
    length at a time, each update of the probes `step` of them. Source: Clark 2019, 5 (`step` 1, sentences in the order
    of the file).
    """
    total = ceil(len(data.pieces) / BATCH)
    bar = tqdm(batches_of(encoder, data, BATCH, 0), "probes", total, unit="batch", disable=not progress)
    parts = ((batch, start) for indices, batch in bar for start in range(0, len(indices), step))
    steps = (batch.part(slice(start, start + step)) for batch, start in parts)

    def loss(batch: Batch) -> Float[Tensor, ""]:
        return sum(_loss(probe(batch), batch.heads) for probe in probes.values())

    # One optimiser per probe would give the same: Adam treats every weight by itself.
    weights = [weight for probe in probes.values() for weight in probe.parameters()]
    fit(steps, loss, torch.optim.Adam(weights, LEARNING_RATE))


def _loss(logits: Logits, gold: Int[Tensor, "batch word"]) -> Float[Tensor, ""]:
    targets = gold.expand(len(logits), -1, -1).flatten()
    return cross_entropy(logits.flatten(0, 2), targets, ignore_index=PADDED, reduction="sum")


@torch.inference_mode()
def predict(
    probes: Mapping[Hashable, Probe], encoder: Encoder, data: Parses, size: int = 32
) -> dict[Hashable, Int[np.ndarray, "seed word"]]:
    """The head (0 is ROOT, else from 1) that each probe predicts for every word of `data.words`."""
    predictions: dict[Hashable, list] = {name: [None] * len(data.pieces) for name in probes}
    for indices, batch in batches_of(encoder, data, size):
        for name, probe in probes.items():
            heads = probe(batch).argmax(-1).cpu().numpy()
            for place, index in enumerate(indices):
                predictions[name][index] = heads[:, place, : len(data.heads[index])]
    return {name: np.concatenate(by_sentence, axis=1) for name, by_sentence in predictions.items()}


def probe_table(
    encoders: Sequence[Encoder],
    training: pd.DataFrame,
    scored: pd.DataFrame,
    seeds: Sequence[int],
    glove: str | None,
    max_tokens: int,
    step: int,
) -> tuple[pd.DataFrame, str, str]:
    """The table `clark_probes` (docs/tables.yaml); the kind of word vectors; a digest of all weights.

    `encoders` share a tokenizer and are read one after the other; without a `glove` file the first gives the word
    vectors. `training` and `scored` are treebanks of `dependencies.read_trees`. A row has no seed or encoder if its
    probe uses none. Source: Clark 2019, 5 and Table 3.
    """
    vectors = word_vectors(encoders[0], [*training["form"], *scored["form"]], glove)
    halves, dimension = np.split(vectors.values, [len(training)]), vectors.values.shape[1]
    data = parses(encoders[0], training, halves[0], max_tokens)
    test = parses(encoders[0], scored, halves[1], max_tokens)
    probes = untrained_probes(encoders, dimension, seeds)
    predictions: dict[Hashable, Int[np.ndarray, "seed word"]] = {}
    for encoder in encoders:
        names = [encoder.name, NO_ENCODER] if encoder is encoders[0] else [encoder.name]
        together = {key: probe.to(encoder.device) for key, probe in probes.items() if key[1] in names}
        train(together, encoder, data, step)
        predictions |= predict(together, encoder, test)
    predicted = [(RIGHT_BRANCHING, NO_ENCODER, None, right_branching(test.words))]
    for key in probes:
        predicted += [(*key, seed, heads) for seed, heads in zip(seeds, predictions[key], strict=True)]
    rows = [
        (*key, uas(heads, test.words, punctuation=True), uas(heads, test.words)) for *key, heads in predicted
    ]
    table = pd.DataFrame(rows, columns=["probe", "encoder", "seed", "uas", "uas_no_punct"])
    weights = weights_digest(nn.ModuleList(probes.values()))
    return table.astype({"seed": "Int64"}), vectors.label, weights


def untrained_probes(
    encoders: Sequence[Encoder], dimension: int, seeds: Sequence[int]
) -> dict[tuple[str, str], Probe]:
    """The probes of Table 3, by probe and encoder."""
    probes: dict[tuple[str, str], Probe] = {}
    for encoder in encoders:
        size = 2 * encoder.layers * encoder.heads
        probes["attention", encoder.name] = AttentionProbe(size, seeds)
        probes["attention + words", encoder.name] = AttentionWordsProbe(size, dimension, seeds)
    return probes | {("distances + words", NO_ENCODER): DistanceProbe(dimension, seeds)}


def probe_means(table: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """The mean uas_no_punct over seeds and its t interval: probe, encoder, seeds, mean, low, high."""
    scores = table.groupby(["probe", "encoder"], sort=False)["uas_no_punct"]
    means = scores.agg(seeds="count", mean="mean", error="sem").reset_index()
    half = stats.t.ppf(1 - alpha / 2, means["seeds"] - 1) * means.pop("error")
    return means.assign(low=means["mean"] - half, high=means["mean"] + half)
