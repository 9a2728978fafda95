from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from headtables import score_array
from oracles import skew_corrected_p

from analysis.errors import InputError
from analysis.roles import RELATIONS, control_sources
from analysis.statistics.controls import controlled_table, share_of_control
from analysis.statistics.roles import ROLES, compose, compose_controls
from analysis.statistics.significance import TESTED, Rule, adjust, role_table

N, LAYERS, HEADS = 40, 2, 3
FAST = Rule(minimum=15, resamples=199)
BANK = ["window_1", "window_2", "offset_+1", "delimiter", "cls", "sep", "block", "own_sentence", "nsubj"]
BANK += ["nsubj_reversed", "match", "match_control"]


def scored(seed: int, roles=ROLES, mean: float = 4.0) -> xr.DataArray:
    """Scores of N sequences about `mean`; nsubj is absent from every third, advmod from all but one."""
    rng = np.random.default_rng(seed)
    values = (rng.gamma(8, mean / 8, (N, len(roles), LAYERS, HEADS))).astype(np.float32)
    for number, role in enumerate(roles):
        if role.startswith("nsubj"):
            values[::3, number] = np.nan
        if role == "advmod":
            values[1:, number] = np.nan
    units = (~np.isnan(values[:, :, 0, 0])).astype(np.int32)
    array = score_array(values, roles, cluster=np.arange(N) // 2)
    return array.assign_coords(units=(("sequence", "role"), units))


def against(scores: xr.DataArray, mean: float, seed: int = 9) -> xr.DataArray:
    """Control scores about `mean` where the scores are present, 1 where the control is uniform."""
    uniform = xr.DataArray([role.control == "uniform" for role in ROLES.values()], dims="role")
    samples = scored(seed, mean=mean).where(~uniform, 1.0)
    return samples.where(scores.notnull()).transpose(*scores.dims).assign_attrs(scores.attrs)


@pytest.mark.parametrize("unit", ["sequence", "cluster"])
def test_controlled_label_is_the_corrected_rule_of_the_paired_difference(unit):
    scores = scored(0)
    control = against(scores, 1.2)
    table = controlled_table(scores, control, replace(FAST, unit=unit))
    difference = (scores.astype(float) - control.astype(float)).assign_attrs(scores.attrs)
    oracle = role_table(difference, replace(FAST, tau=2.0, unit=unit))
    paired = ~table["control"].eq("uniform")
    labels = table.loc[paired, "assigned_controlled"]
    assert labels.equals(oracle.loc[paired, "assigned_corrected"])
    np.testing.assert_allclose(table.loc[paired, "controlled_p_by"], oracle.loc[paired, "p_by"], rtol=1e-3)
    assert set(labels.dropna()) == {True, False}


def test_uniform_controls_keep_the_corrected_label():
    scores = scored(1, mean=3.2)
    table = controlled_table(scores, against(scores, 1.0), FAST)
    same = table[table["control"] == "uniform"]
    assert set(same["role"]) == {"delimiter", "cls", "sep"}
    assert same["assigned_controlled"].equals(same["assigned_corrected"].rename("assigned_controlled"))
    assert set(same["assigned_corrected"]) == {True, False}


def test_what_the_control_gives():
    scores = scored(3)
    control = against(scores, 3.4)
    table = controlled_table(scores, control, FAST).set_index(["role", "layer", "head"])
    for where in (("local", 0, 0), ("nsubj", 1, 2), ("block", 1, 0)):
        head = dict(zip(("role", "layer", "head"), where, strict=True))
        assert table.loc[where, "control_mean"] == pytest.approx(float(control.sel(head).mean()))
        assert table.loc[where, "control"] == ROLES[where[0]].control
        family = [array.sel(role=where[0]).dropna("sequence").astype(float) for array in (scores, control)]
        paired = (family[0] - family[1]).values.reshape(len(family[0]), -1)
        p = np.array([skew_corrected_p(column, 0.0) for column in paired.T])
        result = adjust(p, "fdr_by")[where[1] * HEADS + where[2]]
        assert table.loc[where, "beyond_p_by"] == pytest.approx(result)


def test_heads_without_a_test_have_no_third_label():
    """No sequence, one sequence, too few of them; a head that equals its control goes by the mean difference, 0."""
    scores = scored(4)
    control = against(scores, 1.0)
    control.loc[{"role": "local", "layer": 0, "head": 1}] = scores.sel(role="local", layer=0, head=1)
    rule = replace(FAST, minimum=30)
    table = controlled_table(scores, control, rule).set_index(["role", "layer", "head"]).sort_index()
    assert table.loc["advmod", "assigned_controlled"].isna().all()
    assert table.loc["nsubj", "assigned_controlled"].isna().all()  # 26 sequences, 30 needed
    assert (table.loc["local", "status"] == TESTED).all()
    assert table.loc["local", "assigned_controlled"].notna().all()
    assert not table.loc[("local", 0, 1), "assigned_controlled"]
    assert np.isnan(table.loc[("local", 0, 1), "controlled_p_by"])


@pytest.mark.parametrize("direction", ["dependent_to_head", "both"])
def test_controls_are_composed_like_the_attention(direction: str):
    assert control_sources(BANK) == ["shuffled", "twin", "spread"]
    bank, choices = scored(7, BANK), (1, RELATIONS, direction)
    maps = {
        name: scored(seed, BANK).assign_attrs(maps=name)
        for seed, name in enumerate(("shuffled", "twin", "spread"), 20)
    }
    composed = compose_controls(bank, maps, *choices)
    for role, row in ROLES.items():
        control = composed.sel(role=role)
        if row.control == "uniform":
            assert (control == 1).all()
        elif row.control in BANK:
            assert np.array_equal(control, bank.sel(role=row.control))
        else:
            expected = compose(maps[row.control], *choices).sel(role=role)
            np.testing.assert_array_equal(control.values, expected.values)
    second = compose_controls(bank, maps, *choices, second=True)
    by_position = compose(maps["twin"], *choices).sel(role="local")
    np.testing.assert_array_equal(second.sel(role="local").values, by_position.values)
    others = [scores.drop_sel(role="local").values for scores in (second, composed)]
    np.testing.assert_array_equal(*others)
    with pytest.raises(InputError, match="'spread' are missing"):
        compose_controls(bank, {name: maps[name] for name in ("shuffled", "twin")}, *choices)


def test_a_mean_near_zero_is_no_denominator():
    means = pd.Series([2.0, 4.0, 1e-5, 2.0]), pd.Series([4.0, 2.0, 4.0, 1e-5])
    assert share_of_control(*means).tolist() == pytest.approx([0.5, 2, np.nan, np.nan], nan_ok=True)
