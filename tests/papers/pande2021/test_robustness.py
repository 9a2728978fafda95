import numpy as np
import pytest
import xarray as xr
from headtables import score_array
from studies import error_of

from analysis.papers.pande2021.robustness import (
    TAUS,
    control_table,
    label_stability,
    offset_head,
    sample_differences,
    tau_sweep,
)
from analysis.scores.extraction import extract, extract_controls
from analysis.statistics.roles import compose, compose_controls
from analysis.statistics.significance import Rule, published_table
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse

MEANS = np.array([[2.0, 6.0, 0.5], [3.5, 1.0, 3.1]])  # layers x heads


@pytest.fixture
def scores() -> xr.DataArray:
    """120 sequences of two roles; half of them lack the second, whose scores scatter more."""
    noise = np.random.default_rng(3).normal(size=(120, 2, 2, 3))
    noise -= noise.mean(axis=0)
    values = MEANS + noise * np.array([0.4, 2.0])[:, None, None]
    values[::2, 1] = np.nan
    return score_array(values, ["local", "nsubj"])


def test_a_sweep_counts_the_published_labels_at_each_threshold(scores):
    sweep = tau_sweep(scores, rule=Rule(2.5)).set_index(["role", "tau"])
    for tau in TAUS:
        table = published_table(scores, Rule(tau))
        heads = table.groupby("role")["assigned"].sum()
        assert sweep.xs(tau, level="tau")["heads"].to_dict() == heads.to_dict()
    # Heads of mean 6, 3.5 and 3.1 at 2.5; that of mean 2 joins them below 2.
    local = sweep.loc["local", "jaccard"]
    assert (local[1.75], local[2.5], local[3.25]) == pytest.approx((3 / 4, 1, 2 / 3))


def test_labels_on_all_sequences_are_stable_and_larger_sizes_are_left_out(scores):
    stability = label_stability(scores, [20, 120, 500], draws=5)
    assert stability["role"].tolist() == ["local", "nsubj"] * 2
    assert stability["size"].tolist() == [20, 20, 120, 120]
    whole = stability[stability["size"] == 120]
    assert (whole[["agreement", "jaccard"]] == 1).all(axis=None)
    assert (whole["heads"] == whole["heads_full"]).all()
    assert stability["agreement"].iloc[0] < 1  # the head of mean 3.1
    assert "sizes are [500]" in error_of(label_stability, scores, [500])


def test_labels_on_another_sample_differ_where_its_means_cross_the_threshold(scores):
    others = scores - 0.3 * (scores["role"] == "local")  # the head of mean 3.1 loses local at 3
    table = sample_differences(scores, others, Rule(3)).set_index("role")
    assert table["differ"].to_dict() == {"local": 1, "nsubj": 0}
    assert (table["heads_full"] - table["heads"]).to_dict() == {"local": 1, "nsubj": 0}
    assert (table["n"] == scores.sizes["sequence"]).all()


@pytest.fixture(scope="module")
def examples():
    return load_examples("toy-mrpc", split="dev", n=8)


@pytest.mark.parametrize("step", [-2, -1, 0, 1, 2])
def test_ideal_heads_attend_at_their_offset(tiny, examples, step):
    roles = [f"offset_{offset:+d}" for offset in (-2, -1, 0, 1, 2)]
    bank = extract(tiny, examples, roles=roles, maps=offset_head(step), progress=False)
    # T times the mean over the T - |step| rows that have the offset; the rows at the end attend to themselves.
    expected = xr.zeros_like(bank)
    expected.loc[{"role": "offset_+0"}] = abs(step)
    expected.loc[{"role": f"offset_{step:+d}"}] = bank["tokens"]
    np.testing.assert_allclose(bank, expected, rtol=1e-5, atol=1e-6)


def test_an_ideal_head_is_local_and_no_more_than_its_position(tiny, examples):
    """The next token's head beats shuffled words by the margin; for relations, its twin scores as much as the head."""
    bank = extract(tiny, examples, parse(examples), maps=offset_head(1))
    controls = extract_controls(tiny, examples, parse(examples), offset_head(1))
    composed, composed_control = compose(bank), compose_controls(bank, controls)
    assert composed_control.isnull().equals(composed.isnull())
    assert (composed_control.sel(role=["cls", "sep", "delimiter"]).dropna("sequence") == 1).all()
    table = control_table({"offset +1": (composed, composed_control)}, Rule(minimum=2, resamples=99))
    counts = table.set_index("role")
    heads = tiny.layers * tiny.heads
    assert counts.loc["local", ["published", "controlled"]].tolist() == [heads, heads]
    assert counts.loc[["syntactic", "nsubj", "amod"], "controlled"].tolist() == [0, 0, 0]


def test_control_table_counts_by_three_rules():
    rng = np.random.default_rng(0)
    high = score_array(rng.normal(6, 0.5, (30, 2, 2, 3)), ["local", "cls"])
    control = high.copy(data=rng.normal(5, 0.5, high.shape))
    control.loc[{"role": "cls"}] = 1.0
    control.loc[{"role": "local", "head": 0}] = 1.0
    uniform = xr.ones_like(high)
    pairs = {"heads": (high, control), "uniform": (uniform, uniform)}
    rows = control_table(pairs, Rule(minimum=20, resamples=99)).set_index(["control", "role"])
    counts = rows[["published", "corrected", "controlled"]]
    assert counts.loc[("heads", "local")].tolist() == [6, 6, 2]
    assert counts.loc[("heads", "cls")].tolist() == [6, 6, 6]
    assert (counts.loc["uniform"] == 0).all(axis=None)
