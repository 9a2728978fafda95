import numpy as np
import pytest
import xarray as xr

from analysis.encoders.models import Encoder, load_encoder
from analysis.papers.pande2021.robustness import control_table, offset_head
from analysis.scores.controls import extract_controls
from analysis.scores.extraction import extract
from analysis.statistics.controls import control_bank
from analysis.statistics.roles import compose
from analysis.statistics.significance import Rule
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def examples():
    return load_examples("toy-mrpc", split="dev", n=8)


@pytest.mark.parametrize("step", [-2, -1, 0, 1, 2])
def test_ideal_heads_attend_at_their_offset(tiny, examples, step):
    roles = [f"offset_{each:+d}" for each in (-2, -1, 0, 1, 2)]
    found = extract(tiny, examples, roles=roles, maps=offset_head(step), progress=False)
    lengths = found["tokens"].values[:, None, None]
    for role in roles:
        scores = found.sel(role=role).values
        if role == f"offset_{step:+d}":  # T times the mean over the T - |step| rows that have the offset
            np.testing.assert_allclose(scores, np.broadcast_to(lengths, scores.shape), rtol=1e-5)
        elif role == "offset_+0":  # the rows at the end attend to themselves
            np.testing.assert_allclose(scores, abs(step), rtol=1e-5)
        else:
            np.testing.assert_allclose(scores, 0, atol=1e-6)


def test_controls_of_all_sources_make_a_control_bank(tiny, examples):
    relations = parse(examples)
    bank = extract(tiny, examples, relations, progress=False)
    names = bank["role"].values.tolist()
    controls = extract_controls({0: tiny, 1: tiny}, examples, relations, names)
    assert set(controls) == {"shuffled", "twin", "spread"}
    assert set(controls["twin"][0]["role"].values) >= {"nsubj", "nsubj_reversed"}
    composed = compose(control_bank(bank, {source: states[1] for source, states in controls.items()}))
    assert composed.isnull().equals(compose(bank).isnull())
    assert (composed.sel(role=["cls", "sep", "delimiter"]) == 1).all()


def test_an_ideal_head_is_local_and_no_more_than_its_position(tiny, examples):
    """The next token's head beats shuffled words by the margin; for relations, its twin scores as much as the head."""
    relations = parse(examples)
    head = offset_head(1)
    bank = extract(tiny, examples, relations, maps=head, progress=False)
    controls = extract_controls({0: tiny}, examples, relations, bank["role"].values.tolist(), of=head)
    control = control_bank(bank, {source: states[0] for source, states in controls.items()})
    table = control_table({"offset +1": (compose(bank), compose(control))}, Rule(minimum=2, resamples=99))
    found = table.set_index("role")
    heads = tiny.layers * tiny.heads
    assert found.loc["local", ["published", "controlled"]].tolist() == [heads, heads]
    assert found.loc[["syntactic", "nsubj", "amod"], "controlled"].tolist() == [0, 0, 0]


def test_control_table_counts_by_three_rules():
    rng = np.random.default_rng(0)
    names = {"sequence": range(30), "role": ["local", "cls"], "layer": range(2), "head": range(3)}
    high = xr.DataArray(rng.normal(6, 0.5, (30, 2, 2, 3)), names, [*names])
    control = high.copy(data=rng.normal(5, 0.5, high.shape))
    control.loc[{"role": "cls"}] = 1.0
    control.loc[{"role": "local", "head": 0}] = 1.0
    uniform = xr.ones_like(high)
    found = control_table(
        {"heads": (high, control), "uniform": (uniform, uniform)}, Rule(minimum=20, resamples=99)
    )
    rows = found.set_index(["control", "role"])
    assert rows.loc[("heads", "local"), ["published", "corrected", "controlled"]].tolist() == [6, 6, 2]
    assert rows.loc[("heads", "cls"), ["published", "corrected", "controlled"]].tolist() == [6, 6, 6]
    assert (rows.loc["uniform", ["published", "corrected", "controlled"]] == 0).all(axis=None)
