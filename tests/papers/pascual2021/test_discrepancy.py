import numpy as np
import pytest
import xarray as xr
from oracles import random_maps
from scipy import stats
from scipy.spatial.distance import jensenshannon

from analysis.encoders.layout import layouts
from analysis.papers.pascual2021 import discrepancy
from analysis.papers.pascual2021.attribution import MapStore, attribution, local_attribution
from analysis.papers.pascual2021.measures import JSD, MIXING, RATIO, VALUES, WHOLE
from analysis.papers.pascual2021.roles import PATTERNS, short_examples, with_patterns
from analysis.scores.extraction import extract
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse

LAYERS, HEADS = 3, 2


def test_measures_against_loops():
    first, second = random_maps(7, heads=2), random_maps(7, heads=2, seed=1)
    first[0, :2], second[0, 0] = np.eye(7)[:2], np.eye(7)[0]  # zeros have no logarithm
    names = discrepancy.VALIDATED
    values = dict(zip(names, discrepancy.measured(first, second, names), strict=True))
    for head in range(2):
        rows = list(zip(first[head], second[head], strict=True))
        expected = {
            "pearson": [stats.pearsonr(a, b).statistic for a, b in rows],
            "jensen_shannon": [jensenshannon(a, b, base=2) ** 2 for a, b in rows],
            "total_variation": [np.maximum(a - b, 0).sum() for a, b in rows],
        }
        for name, by_row in expected.items():
            assert values[name][head] == pytest.approx(np.mean(by_row)), name
    constant = np.ones_like(second)  # whose rows have no correlation
    assert np.isnan(discrepancy.measured(first, constant)[0]).all()


@pytest.fixture
def divergences() -> xr.DataArray:
    """40 sequences whose divergence has a mean for each pair, times 0, 2 and 3 in the layers, with noise."""
    axes = {"pair": [*discrepancy.PAIRS], "tokens": [*discrepancy.TOKENS], "measure": [*discrepancy.MEASURES]}
    axes |= {"layer": range(LAYERS), "head": range(HEADS)}
    values = xr.DataArray(np.zeros((40, *map(len, axes.values()))), axes, ("sequence", *axes))
    rng = np.random.default_rng(0)
    for pair, value in {WHOLE: 0.2, VALUES: 0.05, MIXING: 0.15}.items():
        noise = 0.01 * rng.standard_normal((40, len(discrepancy.TOKENS), LAYERS, HEADS))
        values.loc[{"pair": pair, "measure": JSD}] = value * np.array([[0], [2], [3]]) + noise
    return values


def test_table(divergences):
    table = discrepancy.discrepancy_table(divergences, resamples=99)
    of_layers = table[table["head"].isna()].set_index(["pair", "tokens", "measure", "layer"]).sort_index()
    row = of_layers.loc[(WHOLE, "all", JSD, 2.0)]
    sample = divergences.sel(pair=WHOLE, tokens="all", measure=JSD, layer=2)
    assert row["value"] == pytest.approx(sample.mean().item())
    assert row["low"] < row["value"] < row["high"]
    assert of_layers.loc[(WHOLE, "text", RATIO, 1.0), "value"] == pytest.approx(3, abs=0.1)
    by_head = table[(table["tokens"] == "all") & (table["measure"] == JSD)]
    value = by_head.set_index(["pair", "layer", "head"]).loc[(WHOLE, 2, 1), "value"]
    assert value == pytest.approx(sample.sel(head=1).mean().item())


def test_there_is_no_mixing_in_layer_0(tiny):
    examples = load_examples("toy-sst-2", split="dev", n=4)
    sources = {"local_attribution": local_attribution(2), "attribution": attribution(2)}
    stores = {name: MapStore(source) for name, source in {"attention": "attention", **sources}.items()}
    for store in stores.values():
        extract(tiny, examples, roles=["cls"], maps=store.source, progress=False)
    mixing = discrepancy.by_sequence(stores).sel(pair=MIXING, measure=JSD)
    assert abs(mixing.sel(layer=0)).max() < 1e-9
    assert (mixing.sel(layer=[1, 2]) > 1e-4).all()


def test_all_directions_are_exact_and_few_are_near(tiny):
    short = short_examples(tiny, load_examples("toy-sst-2", split="dev", n=60), 16, 1)
    sequences = layouts(tiny.tokenizer, short, tiny.positions)
    assert max(map(len, sequences)) <= 16
    table = discrepancy.validation_table(tiny, sequences, [1, tiny.model.config.hidden_size])
    means = table.groupby(["compared", "probes"], dropna=False, sort=False).mean(numeric_only=True)
    errors = means[["total_variation", "score_error"]]
    assert errors.iloc[1].max() < 1e-5 < errors.iloc[0].min()
    assert errors.iloc[2].min() > 1e-3  # the input before its normalisation


def test_patterns_follow_the_roles_without_block(tiny):
    examples = load_examples("toy-sst-2", split="dev", n=3)
    roles = with_patterns(extract(tiny, examples, parse(examples)))["role"].values.tolist()
    assert "block" not in roles
    assert roles[-len(PATTERNS) :] == [*PATTERNS]
