import numpy as np
import pytest
import xarray as xr
from headtables import score_array

from analysis.papers.pande2021.robustness import control_table, offset_head
from analysis.scores.extraction import extract, scored_with_controls
from analysis.statistics.roles import compose
from analysis.statistics.significance import Rule
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse


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
    bank, control = scored_with_controls(tiny, examples, parse(examples), offset_head(1), 128)
    assert {"nsubj", "nsubj_reversed"} <= {*control["role"].values}
    composed, composed_control = compose(bank), compose(control)
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
