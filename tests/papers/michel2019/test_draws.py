"""Measures of the claims on made-up answers, and on drawn sequences one draw at a time."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from removals import logits, wrong

from analysis.papers.michel2019.draws import (
    compared,
    counts_of,
    evidence,
    later_gain,
    mean_value,
    over_tasks,
    retained,
    with_a_lead,
)

N = 60
LABELS = np.arange(N) % 2
STEPS = [f"importance {count}" for count in (3, 6, 9, 12)]


def steps(*counts: int) -> xr.DataArray:
    """Pruning in four steps; the numbers count wrong answers, first those of the whole classifier."""
    return logits(wrong(LABELS, [*counts]), STEPS)


def test_first_draw_is_the_sample():
    counts = counts_of(N, 10)
    assert (counts[0] == 1).all()
    assert (counts.sum(axis=1) == N).all()
    assert len(counts_of(N, 0)) == 1


def test_means_leave_out_the_step_with_all_heads_off():
    found = compared(steps(0, 6, 12, 18, 60), LABELS, "accuracy")
    assert mean_value(found, counts_of(N, 0)).item() == pytest.approx((0.9 + 0.8 + 0.7) / 3)
    assert retained(found, counts_of(N, 0), 0.5).item() == pytest.approx((0.8 + 0.6 + 0.4) / 3)
    level = compared(steps(30, 6, 12, 18, 60), LABELS, "accuracy")
    assert np.isnan(retained(level, counts_of(N, 0), 0.5).item())


def test_evidence_has_the_sample_first_and_names_runs():
    runs = {("sst-2", 0): steps(5, 5, 6, 30, 5), ("sst-2", 1): steps(5, 30, 5, 5, 5)}
    table = evidence("M1", runs, {"sst-2": LABELS}, mean_value, draws=20, each_seed=True)
    assert table["unit"].unique().tolist() == ["sst-2, seed 0", "sst-2, seed 1"]
    assert table.groupby("unit").size().tolist() == [21, 21]
    assert table.loc[table["replicate"] == 0, "value"].to_numpy() == pytest.approx(
        [(55 + 54 + 30) / 180, (30 + 55 + 55) / 180]
    )
    assert table["n"].eq(4).all()


def test_over_tasks_pairs_replicates():
    rows = [(unit, replicate) for unit in "ab" for replicate in range(3)]
    one, other = (
        pd.DataFrame(rows, columns=["unit", "replicate"]).assign(value=values)
        for values in ([1, 2, 3, 5, 6, 7], [0, 1, 0, 1, 0, 1])
    )
    assert over_tasks("M6", one, other)["value"].tolist() == [2.5, 3.5, 4.5]
    assert over_tasks("M3", one)["value"].tolist() == [3, 4, 5]
    assert over_tasks("M3", one)["n"].eq(2).all()
    assert over_tasks("M3", one)["unit"].unique().tolist() == [
        "mean over tasks"
    ]  # not empty: a CSV file keeps it


def test_later_gain_compares_the_end_with_the_first_lead():
    """The first of three stages has no lead; the second keeps half of its lead, the last keeps all of it."""
    stages = [steps(30, 30, 30, 30, 30), steps(12, 21, 21, 21, 30), steps(6, 6, 6, 6, 30)]
    course = xr.concat(stages, pd.Index([0.1, 0.5, 1.0], name="fraction"))
    table = later_gain("M8", {"sst-2": course}, {"sst-2": LABELS}, draws=5)
    assert table["value"].iloc[0] == pytest.approx(1 - 0.5)
    none = xr.concat([stages[0], stages[2]], pd.Index([0.1, 1.0], name="fraction"))
    assert later_gain("M8", {"sst-2": none}, {"sst-2": LABELS}, draws=5)["value"].isna().all()


def test_runs_without_a_lead_have_nothing_to_lose():
    runs = {("sst-2", 0): steps(10, 5, 6, 30, 5), ("sst-2", 1): steps(25, 30, 5, 5, 5)}
    assert [*with_a_lead(runs, {"sst-2": LABELS})] == [("sst-2", 0)]
    assert evidence("M1", {}, {"sst-2": LABELS}, mean_value).empty
    assert over_tasks("M3", evidence("M3", {}, {}, mean_value)).empty
    assert later_gain("M8", {}, {"sst-2": LABELS}).empty
