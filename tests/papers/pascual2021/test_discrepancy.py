"""Discrepancy of maps against SciPy, row by row, and its table against the values of its input."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from scipy.spatial.distance import jensenshannon

from analysis.encoders.layout import layouts
from analysis.encoders.models import load_encoder
from analysis.papers.pascual2021.discrepancy import (
    MEASURES,
    PAIRS,
    TOKENS,
    VALIDATED,
    by_sequence,
    discrepancy_table,
    measured,
    validation_table,
)
from analysis.papers.pascual2021.maps import PATTERNS, scored, short_examples, with_patterns
from analysis.papers.pascual2021.measures import JSD, MIXING, SHARE, SLOPE, VALUES, WHOLE
from analysis.scores.extraction import extract
from analysis.scores.kept import Kept
from analysis.scores.maps import attribution, local_attribution
from analysis.texts import parse
from analysis.texts.glue import load_examples

LAYERS, HEADS = 3, 2


def stochastic(*shape: int, seed: int = 0) -> np.ndarray:
    maps = np.random.default_rng(seed).random(shape) ** 3
    return maps / maps.sum(-1, keepdims=True)


def test_measures_against_loops():
    first, second = stochastic(2, 7, 7), stochastic(2, 7, 7, seed=1)
    found = dict(zip(MEASURES, measured(first, second), strict=True))
    for head in range(2):
        rows = list(zip(first[head], second[head], strict=True))
        few = [set(np.argsort(-a)[:5]) for a, _ in rows]
        expected = {
            "pearson": [stats.pearsonr(a, b).statistic for a, b in rows],
            "spearman": [stats.spearmanr(a, b).statistic for a, b in rows],
            "jensen_shannon": [jensenshannon(a, b, base=2) ** 2 for a, b in rows],
            "total_variation": [max(a[s].sum() - b[s].sum() for s in [a > b]) for a, b in rows],
            "top_1": [a.argmax() == b.argmax() for a, b in rows],
            "top_5": [sum(a[i] for i in chosen) for (a, _), chosen in zip(rows, few, strict=True)],
            "top_5_other": [sum(b[i] for i in chosen) for (_, b), chosen in zip(rows, few, strict=True)],
        }
        for name, values in expected.items():
            assert found[name][head] == pytest.approx(np.mean(values)), name


def test_equal_and_disjoint_maps():
    eye, other = np.eye(6)[None], np.eye(6)[None, ::-1]
    assert measured(eye, eye)[:5, 0] == pytest.approx([1, 1, 0, 0, 1])
    assert dict(zip(MEASURES, measured(eye, other)[:, 0], strict=True))["jensen_shannon"] == pytest.approx(1)
    even = np.full((1, 6, 6), 1 / 6)
    assert np.isnan(measured(eye, even)[0])  # a constant row has no correlation


def per_sequence(**values: float) -> xr.DataArray:
    """40 sequences whose divergence has these means by pair, times layer + 1, with noise; other measures 0."""
    rng = np.random.default_rng(0)
    shape = (40, len(PAIRS), len(TOKENS), len(MEASURES), LAYERS, HEADS)
    dims = ("sequence", "pair", "tokens", "measure", "layer", "head")
    found = xr.DataArray(
        np.zeros(shape),
        {"pair": [*PAIRS], "tokens": [*TOKENS], "measure": [*MEASURES], "layer": range(LAYERS)},
        dims,
    )
    found["head"] = range(HEADS)
    for pair, value in values.items():
        noise = 0.01 * rng.standard_normal((40, len(TOKENS), LAYERS, HEADS))
        found.loc[{"pair": pair.replace("_", " "), "measure": JSD}] = (
            value * (1 + np.arange(LAYERS)[:, None]) + noise
        )
    return found


def test_table():
    found = per_sequence(**{WHOLE: 0.2, VALUES.replace(" ", "_"): 0.05, MIXING: 0.15})
    table = discrepancy_table(found, resamples=99)
    of_layers = table[table["head"].isna()].set_index(["pair", "tokens", "measure", "layer"]).sort_index()
    row = of_layers.loc[(WHOLE, "all", JSD, 2.0)]
    sample = found.sel(pair=WHOLE, tokens="all", measure=JSD, layer=2)
    assert row["value"] == pytest.approx(sample.mean().item())
    assert row["sd"] == pytest.approx(sample.mean("sequence").std("head", ddof=1).item())
    assert row["low"] < row["value"] < row["high"]
    assert row["n"] == 40
    assert of_layers.loc[(WHOLE, "text", SHARE, 1.0), "value"] == pytest.approx(0.75, abs=0.01)
    slope = table[table["measure"] == SLOPE].set_index("tokens").loc["all"]
    assert slope["value"] == pytest.approx(0.2, abs=0.005)
    assert slope["low"] < slope["value"] < slope["high"]
    heads = table[table["head"].notna()]
    assert set(heads["pair"]) == {WHOLE}
    assert len(heads) == len(TOKENS) * len(MEASURES) * LAYERS * HEADS
    one = heads[(heads["tokens"] == "all") & (heads["measure"] == JSD)].set_index(["layer", "head"])
    assert one.loc[(1, 1), "value"] == pytest.approx(
        found.sel(pair=WHOLE, tokens="all", measure=JSD, layer=1, head=1).mean().item()
    )


def test_the_slope_is_that_above_layer_0():
    found = per_sequence(**{WHOLE: 0.2})
    lower = found.copy()
    lower.loc[{"layer": 0}] = 0
    slopes = [
        discrepancy_table(each, resamples=99).query("measure == @SLOPE")["value"].to_numpy()
        for each in (found + 1, lower + 1, found.isel(layer=[0, 1]) + 1)
    ]
    np.testing.assert_allclose(slopes[0], slopes[1])
    assert len(slopes[2]) == 0  # two layers have no slope above layer 0


def test_of_an_encoder():
    """In layer 0 there is no mixing; two of the same seed are the same."""
    tiny, examples = load_encoder("tiny"), load_examples("sst-2", "bundled", "dev", 4)
    sources = {
        "attention": "attention",
        "local_attribution": local_attribution(2),
        "attribution": attribution(2),
    }
    kept = {name: Kept(source) for name, source in sources.items()}
    for each in kept.values():
        extract(tiny, examples, roles=["cls"], maps=each.source, progress=False)
    found = by_sequence(kept, progress=False)
    assert found.sizes["sequence"] == 4
    assert abs(found.sel(pair=MIXING, measure=JSD)[..., 0, :]).max() < 1e-9
    assert (found.sel(pair=MIXING, measure=JSD)[..., 1:, :] > 1e-4).all()
    own = by_sequence(
        kept, {WHOLE: PAIRS[WHOLE]}, {"largest": lambda first, second: second.max(-1)}, progress=False
    )
    assert (own <= 1).all()
    assert own.sizes["measure"] == own.sizes["pair"] == 1


def test_all_directions_are_exact_and_few_are_near():
    tiny = load_encoder("tiny")
    short = short_examples(tiny, load_examples("sst-2", "bundled", "dev", 60), 16, 1)
    sequences = layouts(tiny.tokenizer, short, tiny.positions)
    assert len(sequences[0]) <= 16
    table = validation_table(tiny, sequences, [1, tiny.model.config.hidden_size], progress=False)
    errors = table.groupby(["compared", "probes"], dropna=False, sort=False)[
        ["total_variation", "score_error"]
    ].mean()
    assert errors.iloc[1].max() < 1e-5 < errors.iloc[0].min()
    assert errors.iloc[2].min() > 1e-3  # the input before its normalisation
    assert [*table.columns][3:-2] == [*VALIDATED]


def test_patterns_follow_the_roles_without_block():
    tiny, examples = load_encoder("tiny"), load_examples("sst-2", "bundled", "dev", 3)
    sources = {"attention": "attention", "effective": "effective"}
    banks, controls = scored(tiny, examples, parse(examples, "gold"), sources, ["effective"])
    assert ([*banks], [*controls]) == (["attention", "effective"], ["effective"])
    roles = with_patterns(banks["attention"])["role"].values.tolist()
    assert "block" not in roles
    assert "syntactic" in roles
    assert roles[-len(PATTERNS) :] == [*PATTERNS]
