"""Findings on the claims of the synthesis, from its tables; a finding without its table is untestable."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from analysis.figures.words import counted
from analysis.statistics.measures import drawn_measures, with_limits
from analysis.statistics.roles import COARSE, ROLES
from analysis.statistics.verdicts import Finding, untestable
from analysis.synthesis import agreement, sets

DRAWS = 499
LEAST = 5  # interfering heads, for a share of them to be meaningful
DELIMITERS = ("delimiter", "cls", "sep")  # roles of most heads
ABLATION, IMPORTANCE, TUNING = "ablation, loss", "gradient importance", "change in fine-tuning"
NAMES = {
    "ablation_loss": ABLATION,
    "ablation_fall": "ablation, accuracy",
    "disable_fall": "uniform head, metric",
    "importance": IMPORTANCE,
    "gate_facilitating": "gate, facilitating",
    "tuning": TUNING,
}


@dataclass(frozen=True)
class Tables:
    """The tables of the synthesis, None if one is missing, and the label that says which heads have a role."""

    atlas: pd.DataFrame | None = None
    sets: pd.DataFrame | None = None
    agreement: pd.DataFrame | None = None
    label: str = "audited"
    drawn: str = "heads of each layer"


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """The atlas with every measure of NAMES as a number; larger means that a head matters or changes more."""
    number = {name: pd.to_numeric(table[name]) for name in ("ablation_accuracy", "disable", "cosine")}
    falls = {"ablation_fall": -number["ablation_accuracy"], "disable_fall": -number["disable"]}
    same = {name: pd.to_numeric(table[name]) for name in NAMES if name in table}
    columns = pd.DataFrame(same | falls | {"tuning": 1 - number["cosine"]})
    return pd.concat([table[["task", "seed", "layer", "head"]], columns], axis=1)


def set_against_random(tables: Tables, role: str) -> Finding:
    """S1: the increase in loss without the heads of a role, minus that without random heads of their layers (nats)."""
    row = _one(tables.sets, task=sets.POOLED, role=role, label=tables.label, metric="loss")
    if row is None or pd.isna(row["excess"]):
        return untestable(f"no set of {role} heads that random sets can be held against")
    sets_of = f"the {row['heads']:.0f} heads of {counted(int(row['tasks']), 'task')}"
    tests = f"p = {row['p']:.2g}, {row['p_holm']:.2g} over all roles"
    value = f"{row['change']:+.3f} nats without {sets_of}, {tests}"
    return Finding(
        value, int(row["heads"]), *_estimate(row, "excess"), control=f"random sets: {row['random']:+.3f} nats"
    )


def agree(tables: Tables, first: str, second: str) -> Finding:
    """S2, S5: rank correlation of two measures over heads."""
    row = _one(tables.agreement, first=first, second=second, statistic="spearman")
    if row is None or pd.isna(row["value"]):
        return untestable(f"{first} and {second} were not measured in the same run")
    within = _one(tables.agreement, first=first, second=second, statistic="spearman within layers")
    value = (
        f"rank correlation {row['value']:.2f} over {row['heads']:.0f} heads, mean of {row['runs']:.0f} runs"
    )
    return Finding(
        value,
        int(row["heads"]),
        *_estimate(row, "value"),
        control=f"with ranks within layers: {within['value']:.2f}",
    )


def survive(tables: Tables, other: str) -> Finding:
    """S3: kappa of the labels of each coarse role between attention and another map; n: heads labelled on that map."""
    table = tables.agreement
    rows = None if table is None else table[(table["second"] == other) & table["role"].isin(COARSE)]
    rows = (
        None
        if rows is None
        else rows[rows["task"] == agreement.POOLED].dropna(subset=["value", "low", "high"])
    )
    if rows is None or rows.empty:
        return untestable(f"roles on {other} were not measured")
    named = rows.set_index("role")
    value = ", ".join(f"{role} {kappa:.2f}" for role, kappa in named["value"].items())
    measures, limits = with_limits(named.index, named["value"], named["low"], named["high"])
    n = named["heads"].astype(int).to_dict() if len(named) > 1 else int(named["heads"].iloc[0])
    return Finding(
        f"kappa {value}", n, measures, limits, control="labels dealt anew to the heads: 0 on average"
    )


def layers_without(tables: Tables, role: str, source: str = "attribution") -> Finding:
    """S4: layers in which no head has a role on a map, in every task; no limit lies below the count."""
    labels = {} if tables.atlas is None else _labels(tables, role, source)
    if not labels:
        return untestable(f"roles on {source} were not measured")
    draws = {task: _lacking(grid) for task, grid in labels.items()}
    attention = {task: int(_lacking(grid)[0]) for task, grid in _labels(tables, role, "attention").items()}
    value = ", ".join(f"{task} {counts[0]:.0f}" for task, counts in draws.items())
    measures = drawn_measures(draws)
    depth = len(next(iter(labels.values())))
    on_attention = ", ".join(f"{task} {count}" for task, count in attention.items())
    return Finding(f"of {depth} layers: {value}", depth, measures, control=f"on attention: {on_attention}")


def _labels(tables: Tables, role: str, source: str) -> dict[str, np.ndarray]:
    """Which heads have the role, (layer, head), in each task where it can be tested; from the first seed."""
    column = f"{source}_{role}_{tables.label}"
    own = tables.atlas[tables.atlas["seed"] == tables.atlas["seed"].iloc[0]].dropna(subset=column)
    return {
        task: rows.pivot(index="layer", columns="head", values=column).fillna(False).to_numpy(bool)
        for task, rows in own.groupby("task", sort=False)
    }


def _lacking(grid: np.ndarray) -> np.ndarray:
    """The number of layers without a labelled head: in the sample, then with the heads of every layer resampled.

    A layer without a labelled head stays without one, so no draw has fewer such layers than the sample.
    """
    order = np.random.default_rng(0).integers(grid.shape[1], size=(DRAWS, *grid.shape))
    drawn = np.take_along_axis(grid[None], order, axis=2)
    return np.concatenate([[(~grid.any(axis=1)).sum()], (~drawn.any(axis=2)).sum(axis=1)]).astype(float)


def interfering_with_role(tables: Tables) -> Finding:
    """S6: the share of interfering heads that have a role other than a delimiter's, with exact binomial limits."""
    classes = None if tables.atlas is None else tables.atlas.dropna(subset="gate_class")
    if classes is None or classes.empty:
        return untestable("no gates were learnt")
    held = heads_with_role(classes, tables.label).to_numpy()
    chosen = (classes["gate_class"] == "interfering").to_numpy()
    if chosen.sum() < LEAST:
        return untestable(f"{chosen.sum()} heads interfere in both gate seeds; at least {LEAST} are needed")
    exact = stats.binomtest(int(held[chosen].sum()), int(chosen.sum())).proportion_ci()
    known = with_limits([""], [held[chosen].mean()], [exact.low], [exact.high])
    value = f"{held[chosen].sum()} of {chosen.sum()} interfering heads"
    others = "no other heads" if chosen.all() else f"of all other heads {held[~chosen].mean():.0%}"
    return Finding(value, int(chosen.sum()), *known, control=others)


def heads_with_role(table: pd.DataFrame, label: str = "audited") -> pd.Series:
    """Which heads of the atlas have a role on attention other than a delimiter's."""
    columns = [f"attention_{role}_{label}" for role in ROLES if role not in DELIMITERS]
    return table[columns].eq(True).any(axis=1)


def _one(table: pd.DataFrame | None, **values: str) -> pd.Series | None:
    """The row with these values; None if there is none."""
    if table is None or table.empty:
        return None
    rows = table[np.logical_and.reduce([table[name] == value for name, value in values.items()])]
    return rows.iloc[0] if len(rows) else None


def _estimate(row: pd.Series, column: str) -> tuple[xr.DataArray, xr.DataArray]:
    """An estimate with the interval from its table."""
    return with_limits([""], [row[column]], [row["low"]], [row["high"]])
