"""The tables of the paper's figures, from the measures of each task and state, and what the figures draw."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Shaped
from matplotlib.figure import Figure

from analysis.figures.colours import BLUE, GREEN, MISSING, ORANGE, SKY
from analysis.figures.theme import STATE_NAMES, as_written, head_grid, rows_of_axes
from analysis.papers.kovaleva2019.measures import (
    CLS,
    HETEROGENEOUS,
    LINGUISTIC,
    PATTERNS,
    SEP,
    SPECIAL_HEADS,
    STATES,
)
from analysis.statistics.bootstrap import bca_interval
from analysis.statistics.layers import BLOCKS

# What `reading.read_runs` gives: the measures of each task and run, None for the pre-trained encoder.
Readings = Mapping[tuple[str, int | None], xr.Dataset]


def by_state(
    readings: Readings, value: Callable[[xr.Dataset], xr.DataArray]
) -> Iterator[tuple[str, str, xr.DataArray]]:
    """Each task, each state, and a value; after fine-tuning it is the mean over the runs."""
    for task in dict.fromkeys(task for task, _ in readings):
        runs = {run: value(state) for (name, run), state in readings.items() if name == task}
        yield task, STATES[0], runs.pop(None)
        if runs:
            yield task, STATES[1], xr.concat(runs.values(), "seed").mean("seed", keep_attrs=True)


def pattern_indicators(state: xr.Dataset) -> xr.DataArray:
    """1 if a map has a pattern, else 0."""
    numbers = xr.DataArray(range(len(PATTERNS)), {"pattern_name": [*PATTERNS]}, "pattern_name")
    return (state["pattern"] == numbers).astype(float)


def pattern_table(
    readings: Readings, alpha: float = 0.05, resamples: int = 999, seed: int = 0
) -> pd.DataFrame:
    """The table `kovaleva_patterns` (docs/tables.yaml): the share of maps with each pattern.

    low, high: BCa interval over n sequences, resampled in whole clusters. Source: Kovaleva 2019, figure 2.
    """
    parts = []
    for task, state, patterns in by_state(readings, pattern_indicators):
        shares = patterns.mean(("layer", "head")).transpose("sequence", "pattern_name")
        low, high = mean_intervals(shares.values, shares["cluster"].values, alpha, resamples, seed)
        columns = {"pattern": PATTERNS, "share": shares.mean("sequence").values, "low": low, "high": high}
        parts.append(pd.DataFrame({"task": task, "state": state} | columns | {"n": len(shares)}))
    return pd.concat(parts, ignore_index=True)


def mean_intervals(
    values: Float[np.ndarray, "sequence column"], clusters: np.ndarray, *options: float
) -> Float[np.ndarray, "end column"]:
    """The BCa interval of each mean, the mean itself if all values are equal; `options` are those of `bca_interval`."""
    ends = np.stack(bca_interval(values, clusters, *options))
    return np.where(np.isnan(ends), values.mean(axis=0), ends)


def pattern_heads(readings: Readings) -> pd.DataFrame:
    """The table `kovaleva_pattern_heads`: the share of sequences in which a head has each pattern."""
    table = state_means(readings, pattern_indicators, ["layer", "head", "pattern_name"])
    table = table.rename(columns={"pattern_name": "pattern", "mean": "share"})
    return table[["task", "state", "layer", "head", "pattern", "share"]]


def typical_heads(shares: pd.DataFrame, task: str) -> pd.DataFrame:
    """The head that has each pattern in most sequences of a task before fine-tuning: pattern, layer, head, share.

    `shares` is the table of `pattern_heads`. Patterns that no map has are left out.
    """
    rows = shares.query("task == @task and state == 'pretrained' and share > 0")
    best = rows.loc[rows.groupby("pattern")["share"].idxmax()].set_index("pattern")
    return best.reindex([name for name in PATTERNS if name in best.index]).reset_index()


def feature_table(readings: Readings) -> pd.DataFrame:
    """Attention to each feature, and between subjects and verbs: task, state, feature, mode, layer, head, mean, n.

    The value in a sequence is the mean over all tokens of their attention to the feature; among its word pieces the
    largest value counts. mode: aligned, or for links also same distance (words as far from each other). n: sequences
    with the feature. Source: Kovaleva 2019, figure 6 and section 4.5.
    """
    links, order = {"link_name": "feature", "link_mode": "mode"}, ["feature", "mode", "layer", "head"]
    received = state_means(readings, lambda state: state["received"].expand_dims(mode=["aligned"]), order)
    between_words = state_means(readings, lambda state: state["link"].rename(links), order)
    return pd.concat([received, between_words], ignore_index=True)


def cls_table(readings: Readings) -> pd.DataFrame:
    """The table `kovaleva_cls`: largest attention of [CLS] in the last layer to a feature (Kovaleva 2019, figure 7)."""
    return state_means(readings, lambda state: state["cls_row"], ["feature", "head"])


def state_means(
    readings: Readings, value: Callable[[xr.Dataset], xr.DataArray], order: Sequence[str]
) -> pd.DataFrame:
    """Mean over the sequences that have a value, and their number n, for every task and state: task, state, `order`."""
    parts = []
    for task, state, values in by_state(readings, value):
        means = xr.Dataset({"mean": values.mean("sequence"), "n": values.notnull().sum("sequence")})
        parts.append(means.to_dataframe(dim_order=order).reset_index().assign(task=task, state=state))
    return pd.concat(parts, ignore_index=True)[["task", "state", *order, "mean", "n"]]


def cosine_table(
    readings: Readings, alpha: float = 0.05, resamples: int = 999, seed: int = 0
) -> pd.DataFrame:
    """The table `kovaleva_cosine`: similarity of each head's maps before and after fine-tuning.

    low, high: BCa interval over sequences. Source: Kovaleva 2019, figure 5. Departure: the authors' code pads every map
    to 200 tokens and compares the rows of padding too.
    """
    parts = []
    for (task, run), state in readings.items():
        if run is not None:
            cosines = state["cosine"].stack(place=("layer", "head")).transpose("sequence", "place")
            values = cosines.values.astype(float)
            low, high = mean_intervals(values, cosines["cluster"].values, alpha, resamples, seed)
            table = cosines.indexes["place"].to_frame(index=False)
            table = table.assign(mean=cosines.values.mean(axis=0), low=low, high=high)
            parts.append(table.assign(task=task, seed=run))
    return pd.concat(parts, ignore_index=True)["task seed layer head mean low high".split()]


def block_means(values: xr.DataArray) -> xr.DataArray:
    """Means over the sequences of ten blocks; sequences that share a text are in one block."""
    codes = pd.factorize(values["cluster"].values)[0] % BLOCKS
    return values.drop_vars("cluster").assign_coords(block=("sequence", codes)).groupby("block").mean()


def block_table(readings: Readings) -> pd.DataFrame:
    """The table `kovaleva_blocks`, on which claims are judged: means of ten blocks of the sequences of a task and run.

    Seed -1 is before fine-tuning, layer -1 the mean over all layers. Measures: the share of maps with each pattern;
    attention to each linguistic feature, and by layer to [CLS] and [SEP]; the share of heads that give [CLS] and [SEP]
    more than half of their attention (SPECIAL_HEADS); by layer the cosine with the maps before fine-tuning.
    """
    parts = []
    for (task, run), state in readings.items():
        received, patterns = block_means(state["received"]), block_means(pattern_indicators(state))
        special, heads = received.sel(feature=[CLS, SEP]), ("layer", "head")
        values = {name: patterns.sel(pattern_name=name, drop=True).mean(heads) for name in PATTERNS}
        values |= {name: received.sel(feature=name, drop=True).mean(heads) for name in LINGUISTIC}
        values |= {name: special.sel(feature=name, drop=True).mean("head") for name in (CLS, SEP)}
        values[SPECIAL_HEADS] = (special.sum("feature") > 0.5).mean(heads)
        if run is not None:
            values["cosine"] = block_means(state["cosine"]).mean("head")
        for name, measure in values.items():
            table = measure.rename("value").to_dataframe()["value"].reset_index()
            parts.append(table.assign(task=task, seed=-1 if run is None else run, measure=name))
    table = pd.concat(parts, ignore_index=True)["task seed block measure layer value".split()]
    return table.assign(layer=table["layer"].fillna(-1).astype(int))


def verb_blocks(readings: Readings) -> pd.DataFrame:
    """The table `kovaleva_verb_blocks`: attention between subjects and verbs before fine-tuning, in ten blocks."""
    before = [state["link"] for (_, run), state in readings.items() if run is None]
    links = block_means(xr.concat(before, "sequence", coords="minimal"))
    modes = {"mean": "aligned", "control": "same distance"}
    columns = {name: links.sel(link_mode=mode, drop=True) for name, mode in modes.items()}
    table = xr.Dataset(columns).to_dataframe().reset_index().rename(columns={"link_name": "direction"})
    return table[["direction", "block", "layer", "head", "mean", "control"]]


Grids = dict[str, Shaped[np.ndarray, "layer head"]]  # by title
PATTERN_COLOURS = [BLUE, SKY, GREEN, ORANGE, MISSING]


def head_panels(table: pd.DataFrame, value: str, by: Sequence[str]) -> Grids:
    """A column of a table as layers x heads for each combination of the columns `by`, which give the title."""
    groups = table.groupby([*by], sort=False)
    return {", ".join(map(str, names)): head_grid(rows, value) for names, rows in groups}


def link_panels(links: pd.DataFrame, bert_heads: pd.DataFrame | None, alpha: float) -> tuple[Grids, Grids]:
    """Attention to frame links by title, and the heads whose attention exceeds their control's (`p_by` below `alpha`).

    `links` is the table `kovaleva_links`; beside each direction stands its control. BERT-base's published values, if
    any, come first.
    """
    links = links.assign(title=links["direction"].str.replace("_", " "), exceeds=links["p_by"] < alpha)
    grids = {} if bert_heads is None else {"BERT-base (published)": head_grid(bert_heads, "link")}
    for title, rows in links.groupby("title", sort=False):
        grids |= {title: head_grid(rows, "mean"), f"{title},\ncontrol": head_grid(rows, "control")}
    dots = {name: np.zeros_like(grid, bool) for name, grid in grids.items()}
    return grids, dots | {name: grid > 0 for name, grid in head_panels(links, "exceeds", ["title"]).items()}


@as_written
def pattern_bars(shares: Mapping[str, pd.DataFrame], precision: Mapping[str, float]) -> Figure:
    """The share of maps with each pattern as stacked bars, by task and state; a panel for each encoder.

    `precision` is that of the first encoder's labels, by pattern. Columns `low` and `high`, if there, give a black bar:
    the interval of the heterogeneous share, read downwards.
    """
    widths = [max(3, rows["task"].nunique()) for rows in shares.values()]
    figure, grid = rows_of_axes(len(shares), 2, 3.3, sharey=True, width_ratios=widths)
    for axes, (title, rows) in zip(grid, shares.items(), strict=True):
        rows = rows.sort_values(["task", "state"], ascending=[True, False])  # pretrained before finetuned
        rows = rows.assign(bar=rows["task"] + ", " + rows["state"].map(STATE_NAMES))
        bars = rows.pivot(index="bar", columns="pattern", values="share")[[*PATTERNS]]
        bars = bars.loc[rows["bar"].unique()]
        bars.plot.bar(stacked=True, width=0.85, color=PATTERN_COLOURS, legend=False, ax=axes)
        axes.set(title=title, xlabel="", ylabel="share of maps", ylim=(0, 1))
        if "low" in rows:
            ends = rows[rows["pattern"] == HETEROGENEOUS]
            axes.vlines(range(len(ends)), 1 - ends["high"], 1 - ends["low"], color="black", linewidth=1.2)
    handles, names = grid[0].get_legend_handles_labels()
    labels = [f"{name}\n({precision[name]:.0%} right by eye)" for name in names]
    look = {"columnspacing": 0.8, "handlelength": 1.2, "fontsize": 7}
    figure.legend(handles, labels, ncols=5, loc="outside upper center", **look)
    return figure


def special_token_maps(features: pd.DataFrame, bert_layers: pd.DataFrame | None) -> Grids:
    """Attention of every head to [CLS] and to [SEP], before and after fine-tuning: four maps a task.

    `features` is the table `kovaleva_features`. The published layer means of BERT-base on QQP, if any, are maps of one
    column. Source: Kovaleva 2019, figure 6.
    """
    grids = {}
    for (task, name, state), rows in features.groupby(["task", "feature", "state"], sort=False):
        grids[task, name, state] = head_grid(rows, "mean")
    for (name, state), rows in bert_layers.groupby(["feature", "state"]) if bert_layers is not None else ():
        grids["BERT-base, qqp", name, state] = rows.sort_values("layer")[["mean"]].to_numpy(float)
    tasks = dict.fromkeys(task for task, _, _ in grids)
    order = [(task, name, state) for task in tasks for name in (CLS, SEP) for state in STATES]
    return {f"{task}, {name}\n{STATE_NAMES[state]}": grids[task, name, state] for task, name, state in order}
