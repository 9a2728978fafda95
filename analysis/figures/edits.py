"""Effects of edits: a mark for each run, answers against the dose of the dial, and all heads of an encoder at once."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from analysis.figures import theme
from analysis.figures.attention import attention_lines
from analysis.figures.colours import BLUE, MATCHING_HEADS, colour, ink, marker
from analysis.figures.grids import LAYER_UPWARDS, head_grids
from analysis.figures.theme import DOUBLE, HEAD, LAYER, as_written, head_grid
from analysis.statistics.effects import AUC

MATCHING, TO_OWN, OTHERS = (
    {"color": shade, "linestyle": dash} for shade, dash in ((MATCHING_HEADS, "-"), (BLUE, "--"), ("0.8", "-"))
)
NATURAL_DOSE = {"color": "0.4", "linestyle": ":", "linewidth": 0.8}


def lines_beside_grid(
    weights: Float[np.ndarray, "token token"],
    tokens: Sequence[str],
    title: str,
    grid: Float[np.ndarray, "layer head"],
    label: str,
) -> Figure:
    """The attention of one head as lines between tokens, and a number of every head beside it."""
    figure, (left, right) = theme.rows_of_axes(2, 2, max(2.4, 0.14 * len(tokens)))
    attention_lines(left, weights, tokens, np.flatnonzero(weights.any(axis=1)).tolist())
    left.set_title(title)
    mesh = theme.layer_head_mesh(right, grid, vmin=0)
    figure.colorbar(mesh, ax=right, label=label)
    right.set(xlabel=HEAD, ylabel=LAYER)
    return figure


def effect_maps(effects: pd.DataFrame, by: str) -> Figure:
    """The fall in AUC when one head is ablated: a map for each value of the column `by`; a dot marks a matching head.

    `effects` holds metric, layer, head, effect and matching; other columns are averaged over.
    """
    of_auc = effects[effects["metric"] == AUC]
    means = of_auc.groupby([by, "layer", "head"], sort=False)[["effect", "matching"]].mean().reset_index()
    tables = {f"run {name}" if by == "seed" else name: rows for name, rows in means.groupby(by, sort=False)}
    reach = max(float(means["effect"].abs().max()), 1e-6)
    return head_grids(
        {title: head_grid(rows, "effect") for title, rows in tables.items()},
        "fall in AUC (below 0: a rise)\ndot: matching head",
        {title: head_grid(rows, "matching") > 0 for title, rows in tables.items()},
        2 if means["layer"].max() < 8 else 4,
        cmap="vlag",
        vmin=-reach,
        vmax=reach,
    )


def marks_by_edit(table: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """A row for each edit and a mark for each task and run, with the interval of <value>_low to <value>_high.

    A panel for each of the columns, or values, that `labels` names for its axis. Runs of a task have one colour, and
    stand below one another.
    """
    if table.empty:
        return theme.empty("no edit was made")
    order, tasks = [*table["edit"].unique()], [*table["task"].unique()]
    runs = table.groupby(["task", "seed"], sort=False)
    figure, panels = theme.rows_of_axes(len(labels), len(labels), 0.38 * len(order) + 0.6, 0.4, sharey=True)
    for axes, (value, label) in zip(panels, labels.items(), strict=True):
        for number, ((task, seed), rows) in enumerate(runs):
            place, first = tasks.index(task), seed == table.loc[table["task"] == task, "seed"].iloc[0]
            ends = [rows[value] - rows[f"{value}_low"], rows[f"{value}_high"] - rows[value]]
            heights = rows["edit"].map(order.index) + 0.8 * ((number + 0.5) / len(runs) - 0.5)
            look = {"fmt": "os^Dv"[place % 5], "color": f"C{place}", "ms": 2.5, "lw": 0.7}
            named = task if first and axes is panels[0] else None
            axes.errorbar(rows[value], heights, xerr=ends, label=named, **look)
        axes.hlines(np.arange(1, len(order)) - 0.5, 0, 1, transform=axes.get_yaxis_transform(),
                    color="0.9", linewidth=0.5, zorder=0)  # fmt: skip
        axes.set(yticks=range(len(order)), yticklabels=order, ylim=(len(order) - 0.5, -0.5), xlabel=label)
        axes.axvline(0, color="0.5", linewidth=0.6)
    figure.legend(ncols=len(tasks), loc="outside upper center", title="a mark for each run")
    return figure


def region_panels(table: pd.DataFrame) -> Figure:
    """Left, the fall in AUC when a region is left out of what heads read; right, the shift of the match logit.

    `table` holds task, seed and the columns of `matching_regions`. A mark is a run of a task, with its 95 % interval;
    right, filled marks are matching pairs and hollow ones other pairs.
    """
    order, tasks = [*table["region"].unique()], [*table["task"].unique()]
    figure, (left, right) = theme.rows_of_axes(2, 2, 0.36 * len(order) + 0.7, 0.4, sharey=True)
    runs = table.groupby(["task", "seed"], sort=False)
    for number, ((task, _), rows) in enumerate(runs):
        place = tasks.index(task)
        heights = rows["region"].map(order.index) + 0.7 * ((number + 0.5) / len(runs) - 0.5)
        look = {"color": f"C{place}", "marker": "os^Dv"[place % 5], "ms": 3, "ls": ""}
        ends = [rows["fall"] - rows["fall_low"], rows["fall_high"] - rows["fall"]]
        left.errorbar(rows["fall"], heights, xerr=ends, elinewidth=0.7, **look)
        right.hlines(heights, rows["shift_matching"], rows["shift_other"], color=f"C{place}", lw=0.7)
        right.plot(rows["shift_matching"], heights, **look)
        right.plot(rows["shift_other"], heights, **look | {"mfc": "white"})
    left.set(yticks=range(len(order)), yticklabels=order, ylim=(len(order) - 0.5, -0.5))
    left.set(xlabel="fall in AUC", ylabel="left out")
    right.set_xlabel("shift of the match logit\n(filled: matching pairs; hollow: others)")
    for axes in (left, right):
        axes.axvline(0, color="0.5", linewidth=0.6)
    key = [
        Line2D([], [], ls="", marker="os^Dv"[place % 5], color=f"C{place}", label=task)
        for place, task in enumerate(tasks)
    ]
    figure.legend(handles=key, ncols=4, loc="outside upper center")
    return figure


def dial_panels(table: pd.DataFrame, sets: pd.DataFrame, natural: str, own_text: str) -> Figure:
    """The share of pairs called "match" against the dose of the dial: a panel for each task, a line for each run.

    `table` holds task, seed, edit, dose, share, matched and unmatched; `natural` and `own_text` name the edits at the
    natural dose (dotted): to the other text, and to their own text. `sets` holds, by task and seed, the share at
    that dose for each set of "other heads", in grey, and for "none".
    """
    tasks = [*table.loc[table["edit"].eq(natural), "task"].unique()]
    if not tasks:
        return theme.empty("no head matches")
    names = "dose: share of attention moved", 'pairs called "match" (proportion)'
    figure, grid = theme.panels(len(tasks), 3, 2.0, *names)
    for axes, task in zip(grid, tasks, strict=True):
        rows = table[table["task"] == task]
        for seed, run in rows.groupby("seed"):
            start, at_natural = run[run["dose"] == 0], run[run["edit"] == natural]
            dose = at_natural["dose"].iloc[0]
            turned = run[run["edit"].str.match(r"dial [\d.]+$")]
            dial = pd.concat([start, at_natural, turned]).sort_values("dose")
            to_own = pd.concat([start, run[run["edit"] == own_text]])
            axes.plot(dial["dose"], dial["share"], marker="o", ms=2.5, lw=1, **MATCHING)
            axes.plot(to_own["dose"], to_own["share"], marker="s", ms=2.5, lw=1, **TO_OWN)
            axes.axvline(dose, **NATURAL_DOSE)
            others = sets[(sets["task"] == task) & (sets["seed"] == seed)]
            unchanged = others.loc[others["set"] == "none", "share"].max()
            for share in others.loc[others["set"] == "other heads", "share"].dropna():
                axes.plot([0, dose], [unchanged, share], lw=0.6, zorder=0, **OTHERS)
        axes.set_ylim(0, 1.02)
        axes.set_title(task, pad=24)
        matched, unmatched = rows[["matched", "unmatched"]].mean()
        note = f"attention to the other text:\nmatched words {matched:.2f}, other words {unmatched:.2f}"
        axes.text(0.5, 1.02, note, transform=axes.transAxes, ha="center", va="bottom", fontsize=6.5)
    looks = {
        "matching heads, to the other text": MATCHING,
        "to their own text": TO_OWN,
        "other heads of these layers": OTHERS,
        "natural dose": NATURAL_DOSE,
    }
    key = [Line2D([], [], label=name, **look) for name, look in looks.items()]
    figure.legend(handles=key, ncols=4, loc="outside upper center")
    return figure


def shares_by_edit(table: pd.DataFrame, names: Sequence[str]) -> Figure:
    """The share of texts called a match with themselves: a panel for each task, a group for each kind of second text.

    `table` holds task, seed, pair, edit, share, low and high (the bars); `names` are the edits, in order. A mark is a
    run.
    """
    if table.empty:
        return theme.empty("no head matches")
    tasks, pairs = [*table["task"].unique()], [*table["pair"].unique()]
    figure, grid = theme.panels(len(tasks), 3, 2.2, "the second text", 'called "match" (proportion)')
    symbols = "os^D"[: len(names)]
    looks = [{"marker": mark, "color": f"C{number}", "ls": ""} for number, mark in enumerate(symbols)]
    for axes, task in zip(grid, tasks, strict=True):
        rows = table[table["task"] == task]
        for number, edit in enumerate(names):
            marks = rows[rows["edit"] == edit]
            steps = marks.groupby("pair").cumcount() - (marks["seed"].nunique() - 1) / 2
            places = marks["pair"].map(pairs.index) + 0.18 * (number - (len(names) - 1) / 2) + 0.04 * steps
            ends = [(marks["share"] - marks["low"]).clip(0), (marks["high"] - marks["share"]).clip(0)]
            axes.errorbar(places, marks["share"], yerr=ends, ms=3, elinewidth=0.7, **looks[number])
        axes.set(title=task, xticks=range(len(pairs)), ylim=(-0.03, 1.03))
        axes.set_xticklabels([pair.replace("two words ", "two words\n") for pair in pairs])
    texts = [edit.replace("none", "as they are") for edit in names]
    key = [Line2D([], [], ms=4, label=text, **look) for text, look in zip(texts, looks, strict=True)]
    figure.legend(handles=key, ncols=4, loc="outside upper center", title="the matching heads")
    return figure


NAMED = 4  # heads of a panel


def rank_panels(effects: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """Heads by their rank in AUC and in loss, a panel for each task; heads whose ablation lowers the AUC are black.

    An effect counts if its interval lies above 0; the heads of the first NAMED ranks have names. `effects` as
    `effect_table` gives it, with task, layer and head, for one run of each task.
    """
    figure, grid = theme.panels(len(tasks), 4, 1.9, "rank by fall in AUC", "rank by rise of the loss")
    for axes, task in zip(grid, tasks, strict=True):
        by_metric = effects[effects["task"] == task].set_index(["layer", "head", "metric"]).unstack("metric")
        ranks = by_metric["rank"].assign(lowers=by_metric["low", "auc"] > 0).sort_values("auc")
        axes.axline((1, 1), slope=1, color="0.8", lw=0.6, zorder=0)
        for lowers, shade in ((False, "0.75"), (True, "black")):
            heads = ranks[ranks["lowers"] == lowers]
            axes.scatter(heads["auc"], heads["loss"], s=10, color=shade, linewidth=0)
        height = -np.inf
        for (layer, head), row in ranks[ranks["lowers"]].head(NAMED).sort_values("loss").iterrows():
            height = max(height + 0.08 * len(ranks), row["loss"])  # names do not lie upon one another
            axes.text(row["auc"] + 0.04 * len(ranks), height, f"{layer}-{head}", va="center", fontsize=6.5)
        axes.set(title=task)
    return figure


# Where the mark of a role stands in the cell of a head.
PLACES = {"local": (-0.22, 0.2), "syntactic": (0.22, 0.2), "block": (0, -0.2)}
# How full it is by the strictest count that the head is in, and the name of this count.
FILLS = {
    "assigned": ("none", "published rule"),
    "exceeds_control": ("left", "exceeds the control"),
    "assigned_controlled": ("full", "exceeds it by τ − 1"),
}


@as_written
def head_summary(
    table: pd.DataFrame,
    effect: Float[np.ndarray, "layer head"],
    label: str,
    framed: Bool[np.ndarray, "layer head"],
    frame: str,
) -> Figure:
    """The heads of one encoder: colour for the ablation effect, marks for roles that have a control, frames.

    `table` is the role table of one task and state; `effect` (NaN: not measured) is named `label`, and `frame` says
    what the `framed` heads are. Syntactic is the pooled role.
    """
    layers, heads = effect.shape
    axes = theme.canvas(DOUBLE, 0.42 * layers + 1.3)
    top = np.nanmax(effect, initial=1e-6)
    pale = {"cmap": "Greys", "vmin": 0, "vmax": 2 * top}  # so that marks stand out
    mesh = theme.layer_head_mesh(axes, effect, **pale)
    axes.figure.colorbar(mesh, ax=axes, label=label, format="{x:g}").ax.set_ylim(0, top)
    for role, (across, upwards) in PLACES.items():
        rows = table[(table["role"] == role) & table["assigned"].eq(True)]
        for (layer, head), labels in rows.groupby(["layer", "head"])[[*FILLS]]:
            strictest = [fill for count, (fill, _) in FILLS.items() if labels[count].eq(True).any()][-1]
            axes.plot(head + across, layer + upwards, ms=6.5, fillstyle=strictest, **_look(role))
    grid = {"color": "0.75", "linewidth": 0.6, "zorder": 0}
    axes.hlines(np.arange(1, layers) - 0.5, -0.5, heads - 0.5, **grid)
    axes.vlines(np.arange(1, heads) - 0.5, -0.5, layers - 0.5, **grid)
    for layer, head in np.argwhere(framed):
        corner = head - 0.46, layer - 0.46
        axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, ec=MATCHING_HEADS, lw=2.2))
    axes.set(xlabel=HEAD, ylabel=LAYER_UPWARDS, xlim=(-0.5, heads - 0.5), ylim=(-0.5, layers - 0.5))
    theme.integer_ticks(axes, bins=12)
    key = [Line2D([], [], label=role, **_look(role)) for role in PLACES]
    look = {"color": "0.3", "linestyle": "", "marker": "o", "markerfacecoloralt": "white"}
    key += [Line2D([], [], fillstyle=fill, label=name, **look) for fill, name in FILLS.values()]
    square = {"marker": "s", "ms": 9, "mfc": "none", "mec": MATCHING_HEADS, "mew": 2.2}
    key += [Line2D([], [], linestyle="", label=frame, **square)]
    axes.figure.legend(handles=key, ncols=4, loc="outside lower center", title="roles after fine-tuning")
    return axes.figure


def _look(role: str) -> dict[str, object]:
    """The mark of a role, whose empty part is white."""
    look = {"marker": marker(role), "color": colour(role), "markeredgecolor": ink(role)}
    return look | {"markerfacecoloralt": "white", "linestyle": ""}
