"""The probing experiment: every probe is trained on one treebank and scored on another, next to untrained baselines."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats
from torch import nn

from analysis.encoders.layout import same_tokenizers
from analysis.encoders.models import Encoder, weights_digest
from analysis.encoders.vectors import word_vectors
from analysis.errors import InputError
from analysis.papers.clark2019.probes import (
    AttentionProbe,
    AttentionWordsProbe,
    DistanceProbe,
    Parses,
    Probe,
    parses,
    predict,
    train,
)
from analysis.papers.clark2019.quantities import NO_ENCODER, ORIGINAL
from analysis.scores.words import LIMIT
from analysis.texts.dependencies import right_branching, uas

ATTENTION, ATTENTION_WORDS = "attention", "attention + words"
DISTANCES_WORDS, RIGHT_BRANCHING = "distances + words", "right-branching"
COLUMNS = ["probe", "encoder", "seed", "uas", "uas_no_punct"]


class Probing(NamedTuple):
    """The table of all probes; the sentences left out of training and scoring; a description of the word vectors; a
    digest of the weights of all probes.
    """

    table: pd.DataFrame
    left_out: dict[str, dict[str, int]]
    vectors: str
    weights: str


def probe_table(
    encoders: Sequence[Encoder],
    training: pd.DataFrame,
    scored: pd.DataFrame,
    seeds: Sequence[int] = (0, 1, 2),
    alignments: Sequence[str] = ("fixed",),
    glove: str | None = None,
    max_tokens: int = LIMIT,
    step: int = 1,
    progress: bool = True,
) -> Probing:
    """Unlabelled attachment score of every probe, encoder and seed: the columns COLUMNS, a row for each.

    `encoders` are read one after the other; the first gives the word vectors if there is no `glove` file. The two
    treebanks are those of `treebank.read_treebank`. uas counts all words, uas_no_punct those whose relation is not
    `punct`, as proportions. A row has no seed or encoder if its probe uses none; names that end in ORIGINAL mean the
    alignment of the released code. Source: Clark 2019, 5 and Table 3; `alignments` as in `probes.AttentionWordsProbe`,
    `step` as in `probes.train`. Raises InputError for no encoder or seed, and for encoders with different tokenizers.
    """
    if not encoders or not len(seeds):
        raise InputError("probes need an encoder and a seed: name at least one of each")
    if not same_tokenizers([encoder.tokenizer for encoder in encoders]):
        names = ", ".join(encoder.name for encoder in encoders)
        raise InputError(f"{names} have different tokenizers: probe each alone")
    vectors = word_vectors(encoders[0], [*training["form"], *scored["form"]], glove)
    halves = vectors.values[: len(training)], vectors.values[len(training) :]
    data = parses(encoders[0], training, halves[0], max_tokens)
    test = parses(encoders[0], scored, halves[1], max_tokens)
    dimension = vectors.values.shape[1]
    rows = [*_scores({RIGHT_BRANCHING: right_branching(test.words)[None]}, test, NO_ENCODER, [None])]
    trained: list[Probe] = []
    for encoder in encoders:
        features = 2 * encoder.layers * encoder.heads
        probes: dict[str, Probe] = {ATTENTION: AttentionProbe(features, seeds)}
        for each in alignments:
            probes[_named(ATTENTION_WORDS, each)] = AttentionWordsProbe(features, dimension, seeds, each)
        rows += _trained(probes, encoder, data, test, seeds, step, progress)
        trained += probes.values()
    probes = {_named(DISTANCES_WORDS, each): DistanceProbe(dimension, seeds, each) for each in alignments}
    rows += _trained(probes, encoders[0], data, test, seeds, step, progress, attention=False)
    trained += probes.values()
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"seed": "Int64"})
    left_out = {"training": data.left_out, "scored": test.left_out}
    return Probing(table, left_out, vectors.label, weights_digest(nn.ModuleList(trained)))


def _named(probe: str, alignment: str) -> str:
    return probe + ORIGINAL * (alignment == "original")


def _trained(
    probes: dict[str, Probe],
    encoder: Encoder,
    data: Parses,
    test: Parses,
    seeds: Sequence[int],
    step: int,
    progress: bool,
    attention: bool = True,
) -> list[tuple]:
    placed = {name: probe.to(encoder.device) for name, probe in probes.items()}
    train(placed, encoder, data, attention, step, progress=progress)
    predicted = predict(placed, encoder, test, attention)
    return _scores(predicted, test, encoder.name if attention else NO_ENCODER, seeds)


def _scores(
    predicted: dict[str, np.ndarray], test: Parses, encoder: str, seeds: Sequence[int | None]
) -> list[tuple]:
    return [
        (probe, encoder, seed, uas(heads, test.words, punctuation=True), uas(heads, test.words))
        for probe, by_seed in predicted.items()
        for seed, heads in zip(seeds, by_seed, strict=True)
    ]


def over_seeds(table: pd.DataFrame, alpha: float = 0.05) -> pd.DataFrame:
    """Mean uas_no_punct of each probe with its two-sided t interval over seeds, the uncertainty from initial weights.

    Columns probe, encoder, seeds, mean, low, high; low and high are NaN for a single seed. The interval does not cover
    other sentences.
    """
    found = (
        table.groupby(["probe", "encoder"], sort=False)["uas_no_punct"]
        .agg(seeds="count", mean="mean", error="sem")
        .reset_index()
    )
    reach = stats.t.ppf(1 - alpha / 2, found["seeds"].clip(lower=2) - 1) * found.pop("error")
    return found.assign(low=found["mean"] - reach, high=found["mean"] + reach)
