import numpy as np
import pandas as pd
import pytest

from analysis.statistics.cards import head_card, ranking

LAYERS, HEADS = 2, 3


def roles(task: str, seed: int = 0, state: str = "finetuned") -> pd.DataFrame:
    """A role table of two roles; head (1, 2) is the most local, though not by the published rule."""
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product(
        [["local", "cls"], range(LAYERS), range(HEADS)], names=["role", "layer", "head"]
    )
    table = index.to_frame(index=False).assign(
        mean=rng.uniform(1, 4, 12), control_mean=1.0, task=task, state=state
    )
    table["assigned"] = (table["mean"] > 3).astype("boolean")
    table["assigned_audited"], table["assigned_controlled"] = table["assigned"], table["mean"] > 3.5
    best = (table["role"] == "local") & (table["layer"] == 1) & (table["head"] == 2)
    table.loc[best, ["mean", "control_mean"]] = [2.9, -3.0]
    return table.assign(control=np.where(table["role"] == "local", "shuffled", "uniform"))


def test_an_atlas_says_why_a_value_is_missing():
    places = pd.MultiIndex.from_product([["mrpc"], [0, 1], range(LAYERS), range(HEADS)],
                                        names=["task", "seed", "layer", "head"])  # fmt: skip
    table = places.to_frame(index=False).assign(
        pattern="block", pattern_status="measured", pattern_share=np.arange(12.0), pattern_share_status="measured",
        attention_local_mean=np.nan, attention_local_control_share=0.5, attention_local_status="no table",
    )  # fmt: skip
    table.loc[3, ["pattern_share", "pattern_share_status"]] = [np.nan, "not in patterns"]
    card = head_card({"atlas": table}, "mrpc", 1, 0).set_index(["about", "quantity"])["value"]
    assert card.loc["0"].to_dict() == {
        "pattern": "block", "pattern_share": "not in patterns", "attention_local_mean": "no table",
        "attention_local_control_share": 0.5,
    }  # fmt: skip
    assert card.loc[("1", "pattern_share")] == 9.0


def test_card_says_what_every_table_says():
    tables = {
        "roles": pd.concat([roles("mrpc"), roles("qqp", 1)]),
        "patterns": pd.DataFrame(
            {
                "layer": [0, 0, 1, 1],
                "head": [0, 1, 0, 1],
                "entropy": [4.0, 3.0, 1.0, np.nan],
                "kind": list("abab"),
            }
        ),
        "layers": pd.DataFrame({"layer": [0, 1], "heads": [3, 4]}),
    }
    card = head_card(tables, "qqp", 0, 1).set_index(["table", "about", "quantity"]).sort_index()
    assert {*card.index.get_level_values("table")} == {"roles", "patterns"}
    table = roles("qqp", 1).set_index(["role", "layer", "head"])
    means = table["mean"]["local"]
    rank = int((means > means[0, 1]).sum()) + 1
    found = card.loc[("roles", "local, finetuned", "mean")]
    assert found.tolist() == [means[0, 1], rank, LAYERS * HEADS]
    found = card.loc[("roles", "cls, finetuned")]["value"]
    assert found["control"] == "uniform"
    assert found["assigned_controlled"] == table.loc[("cls", 0, 1), "assigned_controlled"]
    assert card.loc["patterns"].to_records().tolist() == [("b", "entropy", 3.0, 1, 1)]


def test_ranking_needs_no_threshold():
    table = pd.concat([roles("mrpc"), roles("qqp", 1)])
    table.loc[(table["task"] == "qqp") & (table["layer"] == 0) & (table["head"] == 0), "assigned"] = pd.NA
    found = ranking(table, top=4)
    assert found["role"].tolist() == ["local"] * 4 + ["cls"] * 4
    assert found["rank"].tolist() == [1, 2, 3, 4] * 2
    first = found.iloc[0]
    assert first[["role", "layer", "head", "tasks"]].tolist() == ["local", 1, 2, 2]
    assert first["beyond"] == pytest.approx(5.9)
    kept = table[table["assigned"].notna() & (table["role"] == "cls")]
    means = kept.groupby(["layer", "head"])["mean"].mean().sort_values(ascending=False)
    assert [*zip(found["layer"][4:], found["head"][4:], strict=True)] == means.index[:4].tolist()
    counts = kept.groupby(["layer", "head"])["assigned_controlled"].sum()
    assert found["controlled"][4:].tolist() == counts[means.index[:4]].tolist()
