"""Findings on the claims of Kovaleva 2019, from the tables of the notebooks.

Intervals are those of the tables, over sequences, or come from resampling the heads of each layer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy import stats

from analysis.papers.kovaleva2019.names import CLS, HEAD, HETEROGENEOUS, LINGUISTIC, PRETRAINED, RANDOM, SEP
from analysis.statistics.layers import (
    FIRST_THIRD,
    LAST_SIXTH,
    LAST_THIRD,
    drawn_layer_means,
    head_grid,
    layers_within,
)
from analysis.statistics.measures import drawn_measures, with_limits
from analysis.statistics.verdicts import Finding, untestable
from analysis.texts.tasks import task_named

LEVEL = 0.05


@dataclass(frozen=True)
class Tables:
    """The evidence: saved tables of the notebooks, None if one is missing."""

    patterns: pd.DataFrame | None = None
    links: pd.DataFrame | None = None
    features: pd.DataFrame | None = None
    cosine: pd.DataFrame | None = None
    verbs: pd.DataFrame | None = None
    rises: pd.DataFrame | None = None
    initialisation: pd.DataFrame | None = None
    drawn: str = "heads of each layer"


class Limited(NamedTuple):
    """A value with its interval."""

    value: float
    low: float
    high: float

    def minus(self, other: "Limited") -> "Limited":
        """The difference of two values; its interval follows from theirs (Zou and Donner 2008, MOVER).

        The interval takes the values as independent: it is too wide if they rise and fall together.
        """
        value = self.value - other.value
        below = np.hypot(self.value - self.low, other.high - other.value)
        above = np.hypot(self.high - self.value, other.value - other.low)
        return Limited(value, value - below, value + above)

    def size(self) -> "Limited":
        """The absolute value."""
        ends = sorted([abs(self.low), abs(self.high)])
        return Limited(abs(self.value), 0.0 if self.low < 0 < self.high else ends[0], ends[1])


def judged_by_limits(units: dict[str, Limited]) -> tuple[xr.DataArray, xr.DataArray]:
    """Measures and limits of a finding with known intervals."""
    return with_limits(units, *zip(*units.values(), strict=True))


def _shares(patterns: pd.DataFrame) -> dict[tuple[str, str, str], Limited]:
    return {
        (row.task, row.state, row.pattern): Limited(row.share, row.low, row.high)
        for row in patterns.itertuples()
    }


def more_heterogeneous(tables: Tables) -> Finding:
    """K1: the heterogeneous share of fine-tuned QQP minus that of MRPC."""
    if tables.patterns is None:
        return untestable("no patterns")
    shares = _shares(tables.patterns)
    pair = [shares.get((task, "finetuned", HETEROGENEOUS)) for task in ("qqp", "mrpc")]
    if None in pair:
        return untestable("not both of QQP and MRPC, fine-tuned")
    value = f"{pair[0].value:.0%} against {pair[1].value:.0%}"
    n = int(tables.patterns["n"].min())
    before = [shares[task, "pretrained", HETEROGENEOUS].value for task in ("qqp", "mrpc")]
    control = f"before fine-tuning: {before[0]:.0%} against {before[1]:.0%}"
    return Finding(value, n, *judged_by_limits({"": pair[0].minus(pair[1])}), control=control)


def pattern_moves(tables: Tables) -> Finding:
    """K2: how far fine-tuning moves the share of each pattern in each task."""
    if tables.patterns is None or "finetuned" not in set(tables.patterns["state"]):
        return untestable("no patterns of fine-tuned encoders")
    shares = _shares(tables.patterns)
    units = {
        f"{pattern} in {task}": shares[task, "finetuned", pattern]
        .minus(shares[task, "pretrained", pattern])
        .size()
        for task, state, pattern in shares
        if state == "finetuned"
    }
    most = max(units, key=lambda name: units[name].value)
    value = f"at most {units[most].value:.1%} ({most})"
    return Finding(value, int(tables.patterns["n"].min()), *judged_by_limits(units), control="no move: 0")


def frame_heads(tables: Tables) -> Finding:
    """K3: how many heads give a link more attention than pairs at the same distance, by direction.

    The heads that do so at the adjusted level are the low end; a test that finds none refutes nothing.
    """
    if tables.links is None:
        return untestable("no links")
    rows = tables.links[tables.links["mode"] == "all_pairs"]
    units, told = {}, []
    for direction, part in rows.groupby("direction", sort=False):
        beating = int((part["p_by"] < LEVEL).sum())
        best = part.loc[(part["mean"] - part["control"]).idxmax()]
        name = str(direction).replace("_", " ")
        units[name] = Limited(beating, beating, len(part))
        told.append(
            f"{beating} of {len(part)} heads, most {best['layer']}-{best['head']} ({best['mean']:.3f} against "
            f"{best['control']:.3f}; {name})"
        )
    control = f"pairs at the same distance; by chance at most {LEVEL:.0%} of such findings"
    return Finding(", ".join(told), int(rows["n"].iloc[0]), *judged_by_limits(units), control=control)


def last_layers_change(tables: Tables) -> Finding:
    """K4: by task except QQP, the smallest similarity of the other layers minus the mean of the last sixth."""
    if tables.cosine is None or tables.cosine.empty:
        return untestable("no fine-tuned encoders")
    rows = tables.cosine[(tables.cosine["padding"] == "cropped") & (tables.cosine["task"] != "qqp")]
    units, told = {}, []
    for task, part in rows.groupby("task", sort=False):
        means = drawn_layer_means(
            head_grid(part.groupby(["layer", "head"], as_index=False)["mean"].mean(), "mean")
        )
        late = layers_within(means.shape[1], LAST_SIXTH)
        early = [layer for layer in range(means.shape[1]) if layer not in late]
        if not early:
            continue
        last, others = means[:, late].mean(axis=1), means[:, early].min(axis=1)
        units[task] = others - last
        told.append(f"{task} {last[0]:.2f} against {others[0]:.2f}")
    if not units:
        return untestable("no task but QQP")
    n = int(rows["head"].max()) + 1
    return Finding(f"similarity {', '.join(told)}", n, drawn_measures(units), control="layers alike: 0")


def early_and_late(tables: Tables) -> Finding:
    """K5: by task, attention to [CLS] in the first third of the layers minus the last, and the reverse for [SEP]."""
    if tables.features is None:
        return untestable("no features")
    rows = tables.features[
        (tables.features["mode"] == "aligned") & (tables.features["state"] == "pretrained")
    ]
    units, told = {}, []
    for (task, feature), part in rows[rows["feature"].isin([CLS, SEP])].groupby(
        ["task", "feature"], sort=False
    ):
        means = drawn_layer_means(head_grid(part, "mean"))
        first, last = (
            means[:, layers_within(means.shape[1], third)].mean(axis=1) for third in (FIRST_THIRD, LAST_THIRD)
        )
        units[f"{feature} in {task}"] = first - last if feature == CLS else last - first
        told.append(f"{feature} {first[0]:.1%} and {last[0]:.1%} in {task}")
    value = f"first and last third: {', '.join(told)}"
    return Finding(value, int(rows["n"].max()), drawn_measures(units), control="uniform heads: no difference")


def small_gains(tables: Tables) -> Finding:
    """K6: by task, the largest gain of a linguistic feature divided by attention to [CLS] or [SEP], the larger."""
    if tables.features is None or "finetuned" not in set(tables.features["state"]):
        return untestable("no features of fine-tuned encoders")
    rows = tables.features[tables.features["mode"] == "aligned"]
    units, told = {}, []
    for task, part in rows.groupby("task", sort=False):
        drawn = {
            key: drawn_layer_means(head_grid(each, "mean")).mean(axis=1)
            for key, each in part.dropna(subset="mean").groupby(["feature", "state"])
        }
        gains = {
            name: drawn[name, "finetuned"] - drawn[name, "pretrained"]
            for name in LINGUISTIC
            if (name, "finetuned") in drawn and (name, "pretrained") in drawn
        }
        if not gains:
            continue
        best = max(gains, key=lambda name: gains[name][0])
        special = max((drawn[name, "pretrained"] for name in (CLS, SEP)), key=lambda each: each[0])
        units[task] = gains[best] / special
        told.append(f"{best} {100 * gains[best][0]:+.1f} points beside {special[0]:.0%} in {task}")
    if not units:
        return untestable("no features of a fine-tuned encoder")
    return Finding(", ".join(told), int(rows["n"].max()), drawn_measures(units), control="no gain: 0")


def adjacent_verbs(tables: Tables) -> Finding:
    """K7: of the head with most attention between subject and verb, what it gives to pairs at the same distance,
    divided by what it gives to the link.
    """
    if tables.verbs is None:
        return untestable("no subjects with verbs")
    rows = tables.verbs[(tables.verbs["state"] == "pretrained") & (tables.verbs["n"] > 1)]
    units, told, counts = {}, [], {}
    for (task, link), part in rows.groupby(["task", "link"], sort=False):
        best = part.loc[part["mean"].idxmax()]
        ends = [1 - best[end] / best["mean"] for end in ("high", "low")]
        name = f"{link} in {task}"
        units[name] = Limited(best["control"] / best["mean"], *ends)
        counts[name] = int(best["n"])
        told.append(
            f"head {best['layer']}-{best['head']} {best['mean']:.2f} and {best['control']:.2f} ({name})"
        )
    if not units:
        return untestable("no subject of a verb")
    return Finding(", ".join(told), counts, *judged_by_limits(units), control="no adjacency: 0")


def _of_heads(rises: pd.DataFrame, tasks: Iterable[str] | None = None) -> pd.DataFrame:
    rows = rises[rises["unit"] == HEAD]
    return rows if tasks is None else rows[rows["task"].isin(tasks)]


def some_head_helps(tables: Tables) -> Finding:
    """K8: by task, the rise of the head that stands out most from chance, and the low end of its interval.

    Intervals are simultaneous over the heads. The high end is the highest of all heads: only if that is not above 0,
    no head raises the score.
    """
    if tables.rises is None:
        return untestable("no disabled heads")
    rows = _of_heads(tables.rises).drop_duplicates("task")
    units = {row.task: Limited(row.rise, row.low, row.highest_end) for row in rows.itertuples()}
    told = [
        f"{row.task} {100 * row.rise:+.1f} ({row.beyond} heads beyond chance)" for row in rows.itertuples()
    ]
    chance = [
        f"{row.raised} heads raise it and by chance up to {row.raised_by_chance:.0f} ({row.task})"
        for row in rows.itertuples()
    ]
    return Finding(
        f"points: {', '.join(told)}",
        int(rows["variants"].min()),
        *judged_by_limits(units),
        control=", ".join(chance),
    )


def random_head_helps(tables: Tables) -> Finding:
    """K9: in MRPC and RTE, the mean change over all heads."""
    if tables.rises is None:
        return untestable("no disabled heads")
    rows = _of_heads(tables.rises, ("mrpc", "rte")).drop_duplicates("task")
    if rows.empty:
        return untestable("neither MRPC nor RTE")
    units = {row.task: Limited(row.mean_change, row.mean_low, row.mean_high) for row in rows.itertuples()}
    told = [f"{row.task} {100 * row.mean_change:+.2f} points" for row in rows.itertuples()]
    least = [f"{100 * row.least:.1f} points in {row.task}" for row in rows.itertuples()]
    control = f"no change: 0; least loss of a single head that could be found: {', '.join(least)}"
    return Finding(", ".join(told), int(rows["variants"].min()), *judged_by_limits(units), control=control)


def pretraining_helps(tables: Tables) -> Finding:
    """K10: by task, the first metric from pre-trained weights minus that from random ones, after the same training."""
    if tables.initialisation is None:
        return untestable("no starts")
    units, told, constants = {}, [], []
    for task, part in tables.initialisation.groupby("task", sort=False):
        metric = task_named(task).metrics[0]
        rows = part[part["metric"] == metric]
        scores = _matched(rows)
        if scores is None:
            continue
        units[task] = _welch(*scores)
        told.append(f"{task} {scores[0].mean():.2f} against {scores[1].mean():.2f} ({metric})")
        constants.append(f"{task} {rows['constant'].iloc[0]:.2f}")
    if not units:
        return untestable("no start from random weights")
    seeds = int(tables.initialisation["seed"].nunique())
    return Finding(
        ", ".join(told), seeds, *judged_by_limits(units), control=f"constant answer: {', '.join(constants)}"
    )


def _matched(rows: pd.DataFrame) -> tuple[pd.Series, pd.Series] | None:
    """The scores after training of the same size, from pre-trained and from random weights."""
    kinds = rows["start"].str.split(", ", n=1)
    start, size = kinds.str[0], kinds.str[1]
    sizes = size[start == RANDOM]
    if sizes.empty:
        return None
    pretrained = rows.loc[(start == PRETRAINED) & (size == sizes.iloc[0]), "value"]
    return (pretrained, rows.loc[start == RANDOM, "value"]) if len(pretrained) else None


def _welch(first: pd.Series, second: pd.Series) -> Limited:
    """The difference of means over seeds with its 95 % t interval (Welch); no interval for a single seed."""
    value = float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2 or first.std() + second.std() == 0:
        return Limited(value, np.nan, np.nan)
    ends = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    return Limited(value, float(ends.low), float(ends.high))
