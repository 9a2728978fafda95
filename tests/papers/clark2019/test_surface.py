import numpy as np
import pandas as pd
import pytest
import xarray as xr

from analysis.encoders.layout import layouts
from analysis.papers.clark2019 import surface
from analysis.scores.extraction import read_attention
from analysis.texts.examples import Example

EXAMPLES = [
    Example("stops", "The cat , she said , ran .", "It did not see the dog . He did ."),
    Example("none", "nothing stops here", "or there"),
    Example("marks", "Why ? Well ; it ran !", "So , it did : twice ."),
]


@pytest.fixture(scope="module")
def scores(tiny) -> xr.DataArray:
    return surface.surface_scores(tiny, EXAMPLES)


def formulas(tokens: tuple[str, ...], attention: np.ndarray) -> dict[str, float]:
    """The statistics of one map, pair by pair, with the paper's denominators."""
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


def test_shares_equal_the_formulas_on_real_maps(tiny, scores):
    shares = surface.surface_shares(scores)
    means = surface.surface_table(scores).set_index(["layer", "head"])
    maps = [read_attention(tiny, example, segment_ids="zeros") for example in EXAMPLES]
    for layer, head in means.index:
        rows = [formulas(layout.tokens, attention[layer, head].astype(float)) for layout, attention in maps]
        for example, expected in zip(EXAMPLES, rows, strict=True):
            values = shares.sel(sequence=example.id, layer=layer, head=head).to_series()
            assert values.to_dict() == pytest.approx(expected, rel=2e-5, abs=1e-6)
        expected = pd.DataFrame(rows).mean().to_dict()
        assert means.loc[(layer, head)].to_dict() == pytest.approx(expected, rel=2e-5, abs=1e-6)


def test_uniform_values_equal_the_formulas_on_uniform_maps(tiny, scores):
    sequences = layouts(tiny.tokenizer, EXAMPLES)
    rows = [formulas(one.tokens, np.full((len(one), len(one)), 1 / len(one))) for one in sequences]
    expected = pd.DataFrame(rows).mean().to_dict()
    assert surface.uniform_values(scores).to_dict() == pytest.approx(expected, rel=1e-6)


def test_blocks_keep_documents_whole_and_have_the_means_of_their_passages(scores):
    assert surface.passage_blocks(["b-2-0", "a-0", "b-2-1", "a-1", "c-0"]).tolist() == [0, 1, 0, 1, 2]
    assert surface.passage_blocks([f"a-{number}" for number in range(12)]).tolist() == [*range(10), 0, 1]
    heads, layers = surface.block_tables(scores)
    first = surface.surface_shares(scores).sel(layer=2).isel(sequence=slice(None, None, 10))
    row = heads.set_index(["block", "layer", "head"]).loc[(0, 2, 1)]
    assert row["previous"] == pytest.approx(first.sel(statistic="previous", head=1).mean().item())
    mean = first.sel(statistic="sep").mean().item()
    assert layers.set_index(["block", "layer"]).loc[(0, 2), "sep"] == pytest.approx(mean)


def test_pattern_heads_prefer_their_target():
    """Head 0-1 attends to full stops and commas most, but less than a uniform head; head 1-0 is the broadest."""
    table = pd.DataFrame(0.0, range(3), ["layer", "head", *surface.TARGETS])
    table = table.assign(layer=[0, 0, 1], head=[0, 1, 0], entropy=[1.0, 2.0, 3.0])
    table = table.assign(next=[0.9, 0.0, 0.3], punct=[0.0, 0.05, 0.2])
    heads = surface.pattern_heads(table, pd.Series(0.1, [*surface.TARGETS, "entropy"]))
    assert heads.to_numpy().tolist() == [["broad", 1, 0, 3.0], ["next token", 0, 0, 0.9]]


def test_the_clearest_excerpt_has_most_attention_to_stops(tiny):
    example = Example("a", "one two three four five six seven eight nine ten , yes , no .", "or there")
    layout, attention = read_attention(tiny, example)
    stops = np.isin(layout.tokens, [".", ","])
    planted = np.where(stops, 1.0, 0.01) + np.zeros_like(attention)
    tokens, weights = surface.clearest_excerpt([(layout, attention), (layout, planted)], (0, 0))
    assert (tokens[0], tokens[-1], len(tokens), tokens.count(",")) == ("[CLS]", "[SEP]", 15, 2)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    assert weights[0, 0][:, np.isin(tokens, [".", ","])].sum() > 0.9 * 15
