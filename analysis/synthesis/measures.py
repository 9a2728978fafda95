"""What the tables of the synthesis say of each claim, as frames for `statistics.claims.judge`."""

from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
from scipy import stats

from analysis.statistics.claims import read_claims, sampled, tabled, untestable
from analysis.statistics.layers import drawn_layer_means
from analysis.statistics.roles import COARSE, ROLES, families
from analysis.synthesis import agreement, sets

# Those of roles and importance; claims on matching heads (R1 to R6) are judged in a notebook of their own.
CLAIMS = [each for each in read_claims(Path(__file__).with_name("claims.yaml")) if each.id.startswith("S")]
LEAST = 5  # interfering heads, for a share of them to be meaningful
DELIMITERS = families()["delimiter"]  # roles of most heads
ABLATION, IMPORTANCE, TUNING = "ablation, loss", "gradient importance", "change in fine-tuning"
NAMES = {
    "ablation_loss": ABLATION,
    "ablation_fall": "ablation, accuracy",
    "disable_fall": "uniform head, metric",
    "importance": IMPORTANCE,
    "tuning": TUNING,
}


class SavedTables(Protocol):
    """Where the tables are: the results of a profile."""

    def claims(self, name: str) -> pd.DataFrame:
        """A saved table; no rows if it does not exist."""


def measured(table: pd.DataFrame) -> pd.DataFrame:
    """The atlas with every measure of NAMES as a number; larger means that a head matters or changes more."""
    number = {name: pd.to_numeric(table[name]) for name in ("ablation_accuracy", "disable", "cosine")}
    falls = {"ablation_fall": -number["ablation_accuracy"], "disable_fall": -number["disable"]}
    same = {name: pd.to_numeric(table[name]) for name in NAMES if name in table}
    columns = pd.DataFrame(same | falls | {"tuning": 1 - number["cosine"]})
    return pd.concat([table[["task", "seed", "layer", "head"]], columns], axis=1)


def frames(
    atlas: pd.DataFrame, of_sets: pd.DataFrame, agreements: pd.DataFrame, label: str = "audited"
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the tables of the synthesis; `label` says which heads have a role."""
    return {
        **{f"S1{letter}": against_random(of_sets, role, label) for letter, role in
           zip("abcd", ("local", "syntactic", "delimiter", "block"), strict=True)},
        "S2": order_alike(agreements, ABLATION, IMPORTANCE),
        "S3": survive(agreements, "attribution"),
        "S4a": layers_without(atlas, "local", label),
        "S4b": layers_without(atlas, "syntactic", label),
        "S5": order_alike(agreements, ABLATION, TUNING),
        "S6": interfering_with_role(atlas, label),
    }  # fmt: skip


def summary(results: SavedTables) -> pd.DataFrame:
    """The claim tables of the synthesis, as its notebooks saved them."""
    first, *others = map(results.claims, ("claims-synthesis", "claims-matching"))
    return pd.concat([first, *(table for table in others if len(table))], ignore_index=True)


def against_random(of_sets: pd.DataFrame, role: str, label: str) -> pd.DataFrame:
    """S1: the increase in loss without the heads of a role, minus that without random heads of their layers (nats)."""
    rows = chosen(of_sets, task=sets.POOLED, role=role, label=label, metric="loss")
    rows = rows.dropna(subset="excess").assign(unit="", none=0.0)
    if rows.empty:
        return untestable(f"no set of {role} heads that random sets can be held against")
    row = rows.iloc[0]
    note = f"least excess beyond random sets {row['least']:.3f}; p = {row['p']:.2g}, {row['p_holm']:.2g} over all roles"
    return tabled(rows, "unit", "excess", n="heads", control="none", note=note)


def order_alike(agreements: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """S2, S5: the rank correlation of two measures over heads."""
    rows = chosen(agreements, first=first, second=second).set_index("statistic")
    if "spearman" not in rows.index or pd.isna(rows.loc["spearman", "value"]):
        return untestable(f"{first} and {second} were not measured in the same run")
    within = rows.loc["spearman within layers", "value"]
    one = rows.loc[["spearman"]].assign(unit="", within=within)
    return tabled(
        one, "unit", "value", n="heads", control="within", note=f"mean of {one['runs'].iloc[0]:.0f} runs"
    )


def survive(agreements: pd.DataFrame, other: str) -> pd.DataFrame:
    """S3: kappa of the labels of each coarse role between attention and another map."""
    rows = chosen(agreements, second=other, task=agreement.POOLED)
    rows = rows[rows["role"].isin(COARSE)].dropna(subset=["value", "low", "high"])
    return tabled(
        rows.assign(dealt=0.0), "role", "value", n="heads", control="dealt",
        note="" if len(rows) else f"roles on {other} were not measured",
    )  # fmt: skip


def layers_without(atlas: pd.DataFrame, role: str, label: str, source: str = "attribution") -> pd.DataFrame:
    """S4: layers in which no head has a role on a map, in every task; no limit lies below the count."""
    grids = _labels(atlas, role, label, source)
    if not grids:
        return untestable(f"roles on {source} were not measured")
    # A layer without a labelled head stays without one, so no draw has fewer such layers than the sample.
    lacking = {task: (drawn_layer_means(grid) == 0).sum(axis=1).astype(float) for task, grid in grids.items()}
    attention = {
        task: float((~grid.any(axis=1)).sum())
        for task, grid in _labels(atlas, role, label, "attention").items()
    }
    return sampled(lacking, len(next(iter(grids.values()))), control=attention)


def _labels(atlas: pd.DataFrame, role: str, label: str, source: str) -> dict[str, np.ndarray]:
    """Whether heads have the role (1 or 0), (layer, head), in each task where it can be tested; from the first seed."""
    column = f"{source}_{role}_{label}"
    if column not in atlas or atlas.empty:
        return {}
    own = atlas[atlas["seed"] == atlas["seed"].iloc[0]].dropna(subset=column)
    return {
        str(task): rows.pivot(index="layer", columns="head", values=column).fillna(False).to_numpy(float)
        for task, rows in own.groupby("task", sort=False)
    }


def interfering_with_role(atlas: pd.DataFrame, label: str) -> pd.DataFrame:
    """S6: the share of interfering heads that have a role other than a delimiter's, with exact binomial limits."""
    classes = atlas.dropna(subset="gate_class") if "gate_class" in atlas else atlas.head(0)
    if classes.empty:
        return untestable("no gates were learnt")
    held = heads_with_role(classes, label).to_numpy()
    interfering = (classes["gate_class"] == "interfering").to_numpy()
    if interfering.sum() < LEAST:
        return untestable(
            f"{interfering.sum()} heads interfere in both gate seeds; at least {LEAST} are needed"
        )
    exact = stats.binomtest(int(held[interfering].sum()), int(interfering.sum())).proportion_ci()
    others = np.nan if interfering.all() else held[~interfering].mean()
    value = held[interfering].mean()
    found = {"unit": "", "value": value, "low": exact.low, "high": exact.high, "others": others}
    return tabled(pd.DataFrame([found]), "unit", "value", n=int(interfering.sum()), control="others")


def chosen(table: pd.DataFrame, **values: str) -> pd.DataFrame:
    """The rows with these values in the columns of these names."""
    return table[np.logical_and.reduce([table[name] == value for name, value in values.items()])]


def heads_with_role(table: pd.DataFrame, label: str = "audited") -> pd.Series:
    """Which heads of the atlas have a role on attention other than a delimiter's."""
    columns = [f"attention_{role}_{label}" for role in ROLES if role not in DELIMITERS]
    return table[columns].eq(True).any(axis=1)
