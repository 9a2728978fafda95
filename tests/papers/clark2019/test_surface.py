"""Surface patterns against loops over the formulas of the article, on real and uniform maps."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from analysis.encoders.layout import layouts
from analysis.papers.clark2019.surface import (
    block_tables,
    passage_blocks,
    surface_scores,
    surface_shares,
    surface_table,
    uniform_values,
)
from analysis.scores.extraction import read_attention
from analysis.texts.examples import Example

EXAMPLES = [
    Example("stops", "The cat , she said , ran .", "It did not see the dog . He did ."),
    Example("none", "nothing stops here", "or there"),
    Example("marks", "Why ? Well ; it ran !", "So , it did : twice ."),
]


@pytest.fixture(scope="module")
def scores(tiny) -> xr.DataArray:
    """The scores of all examples."""
    return surface_scores(tiny, EXAMPLES)


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


def test_equal_the_formulas_on_real_maps(tiny, scores):
    shares = surface_shares(scores)
    means = surface_table(scores).set_index(["layer", "head"])
    read = [read_attention(tiny, one, segment_ids="zeros") for one in EXAMPLES]
    for layer, head in means.index:
        each = [formulas([*layout.tokens], maps[layer, head].astype(float)) for layout, maps in read]
        for one, expected in zip(EXAMPLES, each, strict=True):
            found = shares.sel(sequence=one.id, layer=layer, head=head).to_series()
            assert found.to_dict() == pytest.approx(expected, rel=2e-5, abs=1e-6)
        expected = pd.DataFrame(each).mean().to_dict()
        assert means.loc[(layer, head)].to_dict() == pytest.approx(expected, rel=2e-5, abs=1e-6)


def test_uniform_values_equal_the_formulas_on_uniform_maps(tiny, scores):
    each = [
        formulas([*layout.tokens], np.full((len(layout), len(layout)), 1 / len(layout)))
        for layout in layouts(tiny.tokenizer, EXAMPLES)
    ]
    assert uniform_values(scores).to_dict() == pytest.approx(pd.DataFrame(each).mean().to_dict(), rel=1e-6)


def test_passages_of_a_document_are_in_one_block():
    assert passage_blocks(["b-2-0", "a-0", "b-2-1", "a-1", "c-0"]).tolist() == [0, 1, 0, 1, 2]
    assert passage_blocks([f"a-{number}" for number in range(12)]).tolist() == [*range(10), 0, 1]


def test_blocks_of_passages_have_the_means_of_their_shares(scores):
    heads, layers = block_tables(scores)
    shares = surface_shares(scores)
    row = heads.set_index(["block", "layer", "head"]).loc[(0, 2, 1)]
    assert row["previous"] == pytest.approx(
        shares.sel(statistic="previous", layer=2, head=1)[::10].mean().item()
    )
    mean = shares.sel(statistic="sep", layer=2).mean("head")[::10].mean().item()
    assert layers.set_index(["block", "layer"]).loc[(0, 2), "sep"] == pytest.approx(mean)
