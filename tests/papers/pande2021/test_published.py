from types import SimpleNamespace

import jupytext
import pandas as pd
import pytest
from scipy import stats
from studies import error_of

from analysis.papers.pande2021 import published
from analysis.statistics.roles import RELATIONS, memberships
from analysis.study.parameters import source
from analysis.study.runs import STATES

# Heads per role that the article's role maps show, of 144 (block of MRPC and QNLI: at least).
HEADS = {
    "qnli": {"local": 36, "syntactic": 19, "delimiter": 108, "cls": 51, "sep": 91, "block": 24},
    "qqp": {"local": 12, "syntactic": 11, "delimiter": 91, "cls": 37, "sep": 76, "block": 10},
    "mrpc": {"local": 39, "syntactic": 26, "delimiter": 98, "cls": 46, "sep": 79, "block": 22},
    "sst-2": {"local": 11, "syntactic": 11, "delimiter": 91, "cls": 43, "sep": 76, "block": 0},
}
RELATION_HEADS = {
    "qnli": (16, 16, 17, 0),
    "qqp": (8, 8, 12, 9),
    "mrpc": (21, 14, 25, 24),
    "sst-2": (13, 10, 10, 7),
}
HEADS_WITHOUT_ROLE = {"qnli": 2, "qqp": 14, "mrpc": 8, "sst-2": 22}
HEADS_WITH_UNKNOWN_BLOCK = {"qnli": 17, "qqp": 0, "mrpc": 19, "sst-2": 144}
LOCAL_AND_SYNTACTIC = {"mrpc": 24, "qnli": 15, "qqp": 6, "sst-2": 6}  # of the local heads


@pytest.mark.parametrize("task", HEADS)
def test_role_map_has_the_published_number_of_heads(task):
    table = published.roles().query("task == @task")
    assert len(table) == 10 * 144
    unknown = table[table["assigned"].isna()]
    assert set(unknown["role"]) <= {"block"}
    assert len(unknown) == HEADS_WITH_UNKNOWN_BLOCK[task]
    members = memberships(table)
    assert (members["local"] & members["syntactic"]).sum() == LOCAL_AND_SYNTACTIC[task]
    heads = members.sum().to_dict()
    assert heads == HEADS[task] | dict(zip(RELATIONS, RELATION_HEADS[task], strict=True))
    assert (~members.any(axis=1)).sum() == HEADS_WITHOUT_ROLE[task]


def test_scores_agree_with_their_print_and_their_colour():
    table = published.scores()
    assert len(table) == 39 * 144
    # Two significant digits are printed.
    rounding = 0.05 * 10 ** (table["printed"] >= 10).astype(int) + 0.001
    assert ((table["mean"] - table["printed"]).abs() <= rounding).all()
    assert table["mean"].between(table["lower"], table["upper"]).all()


def test_maps_are_compared_role_by_role_and_by_layers():
    ours = published.roles().query("task == 'qqp'").reset_index(drop=True)
    ours["mean"] = 2 * ours["mean"] + 0.01 * ours["head"]
    shifted = (ours["role"] == "local") & (ours["layer"] == 8) & (ours["head"] == 3)
    ours.loc[shifted, "mean"] += 50
    result = published.compare_maps(ours, published.scores()).set_index(["role", "layers"])
    reference = published.scores().query("task == 'qqp' and role == 'local'")
    reference = reference.set_index(["layer", "head"])["mean"]
    local = ours[ours["role"] == "local"].set_index(["layer", "head"])["mean"]
    whole, lower, upper = (result.loc[("local", name)] for name in ("0-11", "0-5", "6-11"))
    assert (whole["layer"], whole["head"]) == (upper["layer"], upper["head"]) == (8, 3)
    assert whole["deviation"] == upper["deviation"] == pytest.approx(abs(local[8, 3] - reference[8, 3]))
    low = local[local.index.get_level_values("layer") < 6]
    expected = stats.spearmanr(low, reference.reindex(low.index)).statistic
    assert lower["correlation"] == pytest.approx(expected)
    assert [part["heads"] for part in (whole, lower, upper)] == [144, 72, 72]
    assert lower["deviation"] == pytest.approx((low - reference.reindex(low.index)).abs().max())


def test_notebook_4_compares_both_states_of_an_encoder_of_144_heads():
    """Equal scores after fine-tuning and opposite ones before; nothing without the parameter."""
    cells = jupytext.read(source("04_compare")).cells
    (cell,) = [cell.source for cell in cells if cell.source.startswith("if compare_published:")]
    ours = published.roles().query("task == 'qqp'").dropna(subset="mean")
    tables = pd.concat([ours.assign(state="pretrained", mean=-ours["mean"]), ours])
    saved, shown = {}, []
    results = SimpleNamespace(save_table=lambda table, name: saved.update({name: table}))
    names = {"published": published, "pd": pd, "STATES": STATES, "results": results, "display": shown.append}
    exec(cell, names | {"compare_published": False, "role_tables": tables})
    assert saved == {}
    exec(cell, names | {"compare_published": True, "role_tables": tables})
    assert shown == [saved["published"]]
    before, after = (part for _, part in saved["published"].groupby("state", sort=False))
    assert before["correlation"].to_numpy() == pytest.approx(-1)
    assert after["correlation"].to_numpy() == pytest.approx(1)
    assert after["deviation"].to_numpy() == pytest.approx(0)
    assert {*after["role"]} == {*ours["role"]}
    small = names | {"compare_published": True, "role_tables": tables[tables["layer"] < 3]}
    assert error_of(exec, cell, small).startswith("the role table must have 12 layers")
