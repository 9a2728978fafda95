"""Statistical figures: distributions, roles and changes per layer, attention mass, p-values (F3, F7-F9)."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis.figures.theme import (
    BLUE,
    DOUBLE,
    LAYER,
    OTHER_MARKER,
    ROLE_MARKERS,
    SCORE,
    VERMILION,
    colour,
    fill,
    grid_size,
    in_order,
    panels,
    titled,
)

POOLED, STRONGEST = "all heads pooled", "head with the highest mean"
GROUP_COLOURS = {POOLED: "0.8", STRONGEST: colour("local")}
BOXES = {
    "widths": 0.5,
    "patch_artist": True,
    "boxprops": {"facecolor": "0.8", "linewidth": 0.7},
    "medianprops": {"color": "black", "linewidth": 1.2},
    "manage_ticks": False,
}
MASSES = {
    "sep": {"label": "[SEP]", "color": colour("sep"), "marker": "d", "markersize": 4, "linewidth": 1.0},
    "cls": {"label": "[CLS]", "color": colour("cls"), "marker": "^", "markersize": 3.5, "linewidth": 1.0},
    "other": {"label": "other tokens", "color": "0.2", "marker": "o", "markersize": 3, "linewidth": 1.0},
}
RULE_MARKS = {  # how far below the line of a role its runs are drawn, and how
    "published": (
        -0.15,
        {"marker": "o", "markersize": 3.5, "color": BLUE, "label": "published label, a run"},
    ),
    "audited": (
        0.2,
        {
            "marker": "D",
            "markersize": 3.5,
            "markerfacecolor": "none",
            "color": VERMILION,
            "label": "audited label, a run",
        },
    ),
}
PRETRAINED_MARK = {
    "linestyle": "none", "marker": "|", "markersize": 11, "color": "black", "label": "published label, pre-trained",
}  # fmt: skip
STATE_LINES = {"pretrained": "--", "finetuned": "-"}
STATE_NAMES = {"pretrained": "pre-trained", "finetuned": "fine-tuned"}


def score_distributions(scores: xr.DataArray, tau: float, title: str = "") -> Figure:
    """Scores of single sequences per role (left), and how skewed they are in each head (right).

    Left, on a logarithmic axis that starts at the 1st percentile: letter values (boxes of quantiles halving
    outwards from the median), pooled over all heads and for the head with the highest mean, whose layer and
    head stand beside the role; diamonds mark means, dashes `tau`. Right: sample skewness of every head
    (0 = symmetric), whiskers over all heads. Source: Pande 2021, a bare average misleads.
    """
    frame = scores.rename("score").to_series().dropna().reset_index()
    roles = in_order(scores["role"].values.tolist())
    means = frame.groupby(["role", "layer", "head"])["score"].agg(["mean", "skew"])
    strongest = means["mean"].groupby("role").idxmax()
    size = (DOUBLE, 0.33 * len(roles) + 0.9)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=size, width_ratios=(5, 3), sharey=True, layout="constrained"
    )
    _letter_values(left, _pooled_and_strongest(frame, strongest), roles)
    left.axvline(tau, color="black", linestyle="--", linewidth=0.8)
    names = {role: f"{role} ({layer}, {head})" for role, layer, head in strongest}
    left.set(xlabel=SCORE, ylabel="role (layer, head with the highest mean)", ylim=(len(roles) - 0.5, -0.5))
    left.set_yticks(range(len(roles)), labels=[names.get(role, f"{role} (no score)") for role in roles])
    skewness = [means["skew"].dropna()[role] if role in strongest else [] for role in roles]
    right.boxplot(skewness, positions=range(len(roles)), orientation="horizontal", whis=(0, 100), **BOXES)
    right.axvline(0, color="0.5", linewidth=0.8, zorder=0)
    right.set(xlabel="skewness over sequences\n(one value per head)", ylabel="")
    _legend_distributions(figure, tau)
    return titled(figure, title)


def layer_profile(counts: pd.DataFrame, title: str = "") -> Figure:
    """Heads of each role per layer, a row per role and a column per task: bars fine-tuned, line pre-trained.

    `counts` has columns task, state, layer, role, heads; role may also be `multi-functional` or `none`.
    With one state only, bars show it. A role without counts for a task reads "untestable".
    Source: Pande 2021, Q2.
    """
    *earlier, last = [state for state in STATE_NAMES if state in set(counts["state"])]
    edges = np.arange(counts["layer"].max() + 2) - 0.5
    figure, cells = _role_task_grid(counts, ["heads"], "number of heads")
    for (role, task), axes in cells.items():
        rows = counts[(counts["role"] == role) & (counts["task"] == task)]
        heads = rows.pivot(index="layer", columns="state", values="heads").reindex(range(len(edges) - 1))
        axes.bar(heads.index, heads[last].astype(float), width=0.8, **fill(role))
        for state in earlier:
            axes.stairs(heads[state].astype(float), edges, color="black", linewidth=0.9, baseline=None)
    lines = [Line2D([], [], color="black", linewidth=0.9, label=STATE_NAMES[state]) for state in earlier]
    bars = Patch(facecolor="0.7", label=STATE_NAMES[last])
    figure.legend(handles=[*lines, bars], ncols=2, loc="outside upper right")
    return titled(figure, title)


def transitions_plot(transitions: pd.DataFrame, title: str = "") -> Figure:
    """Heads that gain a role by fine-tuning (bars up) and that lose it (hatched bars down), per layer.

    A row per role, a column per task. `transitions` has columns task, layer, role, gained, lost.
    Source: Pande 2021, Q3.
    """
    upwards = "number of heads (gained above, lost below the line)"
    figure, cells = _role_task_grid(transitions, ["gained", "lost"], upwards)
    for (role, task), axes in cells.items():
        rows = transitions[(transitions["role"] == role) & (transitions["task"] == task)]
        axes.bar(rows["layer"], rows["gained"].astype(float), width=0.8, **fill(role))
        hatched = fill(role) | {"facecolor": "white", "hatch": "//////"}
        axes.bar(rows["layer"], -rows["lost"].astype(float), width=0.8, **hatched)
        axes.axhline(0, color="0.3", linewidth=0.6)
        axes.yaxis.set_major_formatter(lambda height, _: f"{abs(height):g}")
    gained = Patch(facecolor="0.4", label="gained by fine-tuning")
    lost = Patch(facecolor="white", edgecolor="0.4", hatch="//////", label="lost by fine-tuning")
    figure.legend(handles=[gained, lost], ncols=2, loc="outside upper right")
    return titled(figure, title)


def counts_over_seeds(counts: pd.DataFrame, title: str = "") -> Figure:
    """Heads with each role, one panel per task: a mark per fine-tuning run, published and audited labels.

    `counts` has the columns task, seed (missing: the pre-trained encoder, drawn as a line), role, published
    and audited (heads).
    """
    tasks, roles = counts["task"].unique(), in_order(counts["role"].unique())
    figure, grid = panels(len(tasks), 4, 0.22 * len(roles) + 0.5, "heads", "role")
    for axes, task in zip(grid, tasks, strict=True):
        rows = counts[counts["task"] == task]
        place = rows["role"].map(roles.index)
        runs = rows["seed"].notna()
        for label, (shift, marks) in RULE_MARKS.items():
            axes.plot(rows.loc[runs, label], place[runs] + shift, linestyle="none", **marks)
        axes.plot(rows.loc[~runs, "published"], place[~runs], **PRETRAINED_MARK)
        axes.set_title(task)
        axes.set_yticks(range(len(roles)), roles)
        axes.set_ylim(len(roles) - 0.5, -0.5)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    handles, _ = grid[0].get_legend_handles_labels()
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return titled(figure, title)


def mass_change(masses: pd.DataFrame, title: str = "") -> Figure:
    """Share of attention to [SEP], to [CLS] and to other tokens, mean over the heads of a layer, per task.

    `masses` has columns task, state, layer, head, sep, cls, other (proportions). Solid with filled marks:
    fine-tuned; dashed with open marks: pre-trained. Source: Pande 2021, Q3.
    """
    tasks = list(dict.fromkeys(masses["task"]))
    figure, axes = panels(len(tasks), 4, 1.7, LAYER, "proportion of attention")
    means = masses.groupby(["task", "state", "layer"])[list(MASSES)].mean()
    for panel, task in zip(axes, tasks, strict=True):
        for state, dash in STATE_LINES.items():
            for target, look in MASSES.items():
                if (task, state) in means.index:
                    line = means.loc[(task, state), target]
                    face = "white" if dash == "--" else look["color"]
                    panel.plot(line.index, line, dash, markerfacecolor=face, **look)
        panel.set_title(task)
        panel.set_ylim(0, 1)
        panel.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    figure.legend(handles=_mass_key(), ncols=5, loc="outside lower center")
    return titled(figure, title)


def p_values(table: pd.DataFrame, alpha: float, title: str = "") -> Figure:
    """Every p-value against the place of its head, beside their histogram (log counts); a line at `alpha`.

    Untestable heads have no p-value and are left out. Source: Pande 2021, released notebooks.
    """
    layers, heads = grid_size(table)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(DOUBLE, 2.5), width_ratios=(3, 1), sharey=True, layout="constrained"
    )
    tested = table.dropna(subset="p")
    for role in in_order(table["role"]):
        rows = tested[tested["role"] == role]
        look = {"marker": ROLE_MARKERS.get(role, OTHER_MARKER), "color": colour(role), "s": 9, "linewidth": 0}
        left.scatter(rows["layer"] * heads + rows["head"], rows["p"], label=role, rasterized=True, **look)
    right.hist(tested["p"].astype(float), bins=np.linspace(0, 1, 41), orientation="horizontal", color="0.55")
    right.set(xscale="log", xlabel="number of p-values")
    left.set(xlabel="head, in layer order (ticks: first head of a layer)", ylabel="p-value (one-sided)")
    left.set_xticks(np.arange(layers) * heads, labels=[str(layer) for layer in range(layers)])
    for axes in (left, right):
        axes.axhline(alpha, color="black", linestyle="--", linewidth=0.8)
    figure.legend(*left.get_legend_handles_labels(), ncols=5, loc="outside lower center")
    return titled(figure, title)


def _pooled_and_strongest(frame: pd.DataFrame, strongest: pd.Series) -> pd.DataFrame:
    """The scores of all heads, then again those of each role's strongest head; column `heads` says which."""
    index = pd.MultiIndex.from_frame(frame[["role", "layer", "head"]])
    chosen = frame[index.isin(list(strongest))]
    return pd.concat([frame.assign(heads=POOLED), chosen.assign(heads=STRONGEST)], ignore_index=True)


def _letter_values(axes: Axes, frame: pd.DataFrame, roles: list[str]) -> None:
    """Letter-value boxes of both groups of heads per role on a logarithmic axis, and their means."""
    means = frame.groupby(["heads", "role"])["score"].mean()
    floor = max(float(frame["score"].quantile(0.01)), 1e-4)
    drawn = frame.assign(score=frame["score"].clip(lower=floor))  # zero has no place on a logarithmic axis
    sns.boxenplot(drawn, x="score", y="role", order=roles, hue="heads", palette=GROUP_COLOURS, log_scale=True,
                  showfliers=False, linewidth=0.4, legend=False, ax=axes)  # fmt: skip
    diamond = {"marker": "D", "s": 10, "color": "white", "edgecolor": "black", "zorder": 3}
    for group, shift in {POOLED: -0.2, STRONGEST: 0.2}.items():
        axes.scatter(means[group].reindex(roles), np.arange(len(roles)) + shift, **diamond)
    axes.set_xlim(left=floor)


def _role_task_grid(
    counts: pd.DataFrame, values: list[str], upwards: str
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """A figure with one small panel per role (rows) and task (columns); the panels with data."""
    roles, tasks = in_order(counts["role"]), list(dict.fromkeys(counts["task"]))
    size = {"nrows": len(roles), "ncols": len(tasks), "figsize": (DOUBLE, 0.5 * len(roles) + 0.9)}
    figure, grid = plt.subplots(**size, sharex=True, sharey=True, squeeze=False, layout="constrained")
    cells = dict(zip(itertools.product(roles, tasks), grid.flat, strict=True))
    tested = set(counts.dropna(subset=values)[["role", "task"]].itertuples(index=False, name=None))
    for (role, task), axes in cells.items():
        if (role, task) not in tested:
            axes.text(0.5, 0.5, "untestable", transform=axes.transAxes, ha="center", va="center", color="0.5")
        if role == roles[0]:
            axes.set_title(task)
        if task == tasks[0]:
            axes.set_ylabel(role, rotation=0, ha="right", va="center")
    axes.set_xlim(-0.6, counts["layer"].max() + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    figure.supxlabel(LAYER)
    figure.supylabel(upwards)
    return figure, {cell: cells[cell] for cell in cells if cell in tested}


def _mass_key() -> list[Line2D]:
    """Legend of the attention masses: colour and mark per target, dash per state."""
    targets = [Line2D([], [], **look) for look in MASSES.values()]
    states = [Line2D([], [], color="0.2", linestyle=STATE_LINES[state], label=STATE_NAMES[state])
              for state in STATE_LINES]  # fmt: skip
    return targets + states


def _legend_distributions(figure: Figure, tau: float) -> None:
    """Legend of the score distributions, below them."""
    handles = [Patch(facecolor=shade, label=group) for group, shade in GROUP_COLOURS.items()]
    mean = {"marker": "D", "markersize": 3.5, "markerfacecolor": "white", "markeredgecolor": "black"}
    handles.append(Line2D([], [], linestyle="", label="mean", **mean))
    handles.append(Line2D([], [], color="black", linestyle="--", linewidth=0.8, label=f"τ = {tau:g}"))
    figure.legend(handles=handles, ncols=4, loc="outside lower center")
