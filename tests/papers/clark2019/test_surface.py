"""Surface patterns against loops over the formulas of the article, and planted heads."""

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from scipy import stats

from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.papers.clark2019.surface import (
    COLUMNS,
    EXTREMES,
    OF_ROWS,
    SHARES,
    cells,
    extreme_table,
    surface_scores,
    surface_shares,
    surface_table,
    uniform_values,
)
from analysis.scores.extraction import read_attention
from analysis.scores.sieves import SIEVES
from analysis.texts.examples import Example

EXAMPLES = [
    Example("stops", "The cat , she said , ran .", "It did not see the dog . He did ."),
    Example("none", "nothing stops here", "or there"),
    Example("marks", "Why ? Well ; it ran !", "So , it did : twice ."),
]


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    """Three layers of four heads."""
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def scores(tiny) -> xr.DataArray:
    """The scores of all examples."""
    return surface_scores(tiny, EXAMPLES, progress=False)


def formulas(tokens: list[str], attention: np.ndarray) -> dict[str, float]:
    """The statistics of one map, pair by pair, with the article's denominators."""
    n, pairs = len(tokens), [(i, j) for i in range(len(tokens)) for j in range(len(tokens))]
    sep = [token == "[SEP]" for token in tokens]
    smoothed = 0.9999 * attention + 0.0001 / n
    entropies = [-sum(p * np.log(p) for p in row) for row in smoothed]
    return {
        "next": sum(attention[i, j] for i, j in pairs if j == i + 1) / n,
        "previous": sum(attention[i, j] for i, j in pairs if j == i - 1) / n,
        "self": sum(attention[i, j] for i, j in pairs if j == i) / n,
        "cls": sum(attention[i, j] for i, j in pairs if tokens[j] == "[CLS]") / n,
        "sep": sum(attention[i, j] for i, j in pairs if sep[j]) / n,
        "punct": sum(attention[i, j] for i, j in pairs if tokens[j] in (".", ",")) / n,
        "cls_cls": attention[0, 0],
        "sep_sep": sum(attention[i, j] for i, j in pairs if sep[i] and sep[j]) / 2,
        "rest_sep": sum(attention[i, j] for i, j in pairs if not sep[i] and sep[j]) / (n - 2),
        "entropy": np.mean(entropies),
        "entropy_cls": entropies[0],
        "most": np.mean(attention.max(axis=1)),
    }


def scores_of(encoder: Encoder, maps: list[np.ndarray]) -> xr.DataArray:
    """What `surface_scores` would find of an encoder of one layer with these maps (head, token, token)."""
    found = layouts(encoder.tokenizer, EXAMPLES)
    roles = [sieve for sieve, _ in SHARES.values()]
    values = np.full((len(found), len(COLUMNS), 1, len(maps[0])), np.nan)
    for i, (layout, attention) in enumerate(zip(found, maps, strict=True)):
        matrices = [SIEVES[role].matrix(layout, {}) for role in roles]
        for j, matrix in enumerate(matrices):
            if matrix is not None:
                values[i, j, 0] = len(layout) * np.einsum("ij,hij->h", matrix.astype(float), attention)
        for j, statistic in enumerate(OF_ROWS.values(), start=len(roles)):
            values[i, j, 0] = statistic(torch.from_numpy(attention)[None], [layout])[0]
    coordinates = {
        "sequence": [layout.id for layout in found],
        "role": [*roles, *OF_ROWS],
        "layer": [0],
        "head": range(len(maps[0])),
        "tokens": ("sequence", [len(layout) for layout in found]),
        "separators": ("sequence", [2] * len(found)),
        "cells": (("sequence", "role"), np.stack([cells(layout) for layout in found])),
    }
    return xr.DataArray(values, coordinates, ("sequence", "role", "layer", "head"))


def test_equal_the_formulas_on_real_maps(tiny, scores):
    shares = surface_shares(scores)
    for one in EXAMPLES:
        layout, attention = read_attention(tiny, one, segment_ids="zeros")
        for layer in range(tiny.layers):
            for head in range(tiny.heads):
                expected = formulas([*layout.tokens], attention[layer, head].astype(float))
                found = shares.sel(sequence=one.id, layer=layer, head=head).to_series()
                assert found[[*expected]].to_dict() == pytest.approx(expected, rel=2e-5, abs=1e-6)


def test_planted_heads(tiny):
    """A head on the next token has (n - 1) / n, and its mirror image as much on the previous one."""
    sizes = [len(layout) for layout in layouts(tiny.tokenizer, EXAMPLES)]
    maps = [np.stack([np.eye(n, k=1), np.eye(n, k=-1), np.eye(n)]) for n in sizes]
    maps[0][0, -1, 0] = 1  # the last token has no next one
    table = surface_table(scores_of(tiny, maps)).set_index("head")
    most = np.mean([(n - 1) / n for n in sizes])
    np.testing.assert_allclose(table[["next", "previous", "self"]], np.diag([most, most, 1]), atol=1e-6)


def test_uniform_head(tiny, scores):
    sizes = [len(layout) for layout in layouts(tiny.tokenizer, EXAMPLES)]
    found = surface_table(scores_of(tiny, [np.full((1, n, n), 1 / n) for n in sizes]))
    uniform = uniform_values(scores)
    assert found[COLUMNS].iloc[0].to_dict() == pytest.approx(uniform[COLUMNS].to_dict(), rel=1e-6)
    assert uniform["entropy"] == pytest.approx(np.mean(np.log(sizes)))
    assert uniform["most"] == pytest.approx(np.mean([1 / n for n in sizes]))
    assert uniform["sep"] == pytest.approx(np.mean([2 / n for n in sizes]))


@pytest.fixture
def table() -> pd.DataFrame:
    heads = [(layer, head) for layer in range(2) for head in range(3)]
    frame = pd.DataFrame(heads, columns=["layer", "head"])
    frame[COLUMNS] = 0.1
    frame["entropy"] = [4, 3, 2, 1, 1, 1]
    frame["next"] = [0.9, 0.6, 0, 0, 0, 0]
    frame["cls"] = [0, 0.9, 0, 0.3, 0, 0]
    frame["sep"] = [0, 0, 0, 0, 0.7, 0.8]
    frame["punct"] = [0, 0, 0, 0, 0.2, 0.9]
    return frame


def test_extreme_heads_have_simultaneous_intervals(scores):
    """Bonferroni over the heads: wider than the interval of one head, around the mean over sequences."""
    found = extreme_table(scores).set_index(["statistic", "layer", "head"])
    assert len(found) == len(EXTREMES) * 12
    values = surface_shares(scores).sel(statistic="most", layer=2, head=1).values
    row = found.loc[("most", 2, 1)]
    alone = stats.ttest_1samp(values, 0).confidence_interval(1 - 0.05 / 12)
    assert (row["low"], row["high"]) == pytest.approx((alone.low, alone.high))
    assert (row["mean"], row["n"]) == (pytest.approx(values.mean()), len(EXAMPLES))
