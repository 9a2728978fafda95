"""Figures of surface patterns, gradients, entropies and head distances, after those of Clark 2019 (1 to 4 and 6)."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .theme import DOUBLE, LAYER, titled

SHARE = "proportion of attention"
NATS = "entropy (nats)"
# Columns of the surface table, panel by panel, and how each is drawn; marks differ so that they tell apart in grey.
LOOKS = {
    "previous": {"label": "previous token", "color": "#0072B2", "marker": "<"},
    "next": {"label": "next token", "color": "#D55E00", "marker": ">"},
    "self": {"label": "itself", "color": "0.35", "marker": "o"},
    "cls": {"label": "[CLS]", "color": "#D55E00", "marker": "^"},
    "sep": {"label": "[SEP]", "color": "#0072B2", "marker": "s"},
    "punct": {"label": "full stops and commas", "color": "0.35", "marker": "o"},
    "sep_sep": {"label": "[SEP] to [SEP]", "color": "#009E73", "marker": "D"},
    "rest_sep": {"label": "other tokens to [SEP]", "color": "#0072B2", "marker": "s"},
    "entropy": {"label": "mean of all rows", "color": "#0072B2", "marker": "o"},
    "entropy_cls": {"label": "row of [CLS]", "color": "#D55E00", "marker": "^"},
    "other": {"label": "other tokens", "color": "#009E73", "marker": "D"},
}
PANELS = (("previous", "next", "self"), ("cls", "sep", "punct"), ("sep_sep", "rest_sep"))
BEHAVIOUR_LOOKS = {
    "other": {"color": "0.65", "marker": "o"},
    "next token": {"color": "#D55E00", "marker": ">"},
    "previous token": {"color": "#0072B2", "marker": "<"},
    "broad": {"color": "#E69F00", "marker": "^"},
    "[CLS]": {"color": "#882255", "marker": "*"},
    "[SEP]": {"color": "#009E73", "marker": "s"},
    "full stops and commas": {"color": "#56B4E9", "marker": "D"},
}
UNIFORM = {"color": "black", "linestyle": "--", "linewidth": 0.8}


def example_heads(
    maps: Mapping[str, Float[np.ndarray, "token token"]],
    tokens: Sequence[str],
    last: int = 14,
    title: str = "",
) -> Figure:
    """What heads attend to in one sequence: lines from each token (left) to those it attends to (right).

    A panel per title. Shown are the first token and the `last` ones; each row of attention is divided by its sum
    over them, and a line is as opaque as its weight. Source: Clark 2019, figure 1; departure: with [CLS].
    """
    shown = np.unique([0, *range(max(0, len(tokens) - last), len(tokens))])
    names = [tokens[position] for position in shown]
    if len(shown) < len(tokens):
        names[0] += " …"  # what is left out
    figure, grid = plt.subplots(
        1, len(maps), figsize=(DOUBLE, 0.15 * len(shown) + 0.8), squeeze=False, layout="constrained"
    )
    for axes, (name, attention) in zip(grid.flat, maps.items(), strict=True):
        _arcs(axes, attention[np.ix_(shown, shown)], names)
        axes.set_title(name)
    figure.supxlabel("attending token (left), attended token (right)")
    figure.supylabel("tokens of the sequence, in order")
    return titled(figure, title)


def _arcs(axes: Axes, attention: Float[np.ndarray, "token token"], tokens: Sequence[str]) -> None:
    """One panel of `example_heads`."""
    weights = attention / attention.sum(axis=1, keepdims=True)
    heights = -np.arange(len(tokens))
    rows, columns = np.divmod(np.arange(weights.size), len(tokens))
    ends = np.stack([np.stack([np.zeros(weights.size), heights[rows]], 1),
                     np.stack([np.ones(weights.size), heights[columns]], 1)], 1)  # fmt: skip
    colours = np.tile(mpl.colors.to_rgba("#0072B2"), (weights.size, 1))
    colours[:, 3] = np.clip(weights.ravel(), 0, 1)
    axes.add_collection(LineCollection(ends, colors=colours, linewidths=1.0))
    for height, token in zip(heights, tokens, strict=True):
        axes.text(-0.06, height, token, ha="right", va="center", fontsize=7)
        axes.text(1.06, height, token, ha="left", va="center", fontsize=7)
    axes.set(xlim=(-1.1, 2.1), ylim=(-len(tokens) + 0.4, 0.6), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def surface_patterns(table: pd.DataFrame, uniform: pd.Series, title: str = "") -> Figure:
    """Shares of attention of every head by layer (marks) and their mean over a layer's heads (lines).

    Three panels: neighbours and the token itself; special tokens and punctuation; [SEP] by who attends. Short
    dashes at the right edge: a head that attends uniformly. `table` and `uniform` are those of `surface_table` and
    `uniform_values`. Source: Clark 2019, section 3.1 and figure 2.
    """
    figure, grid = plt.subplots(1, 3, figsize=(DOUBLE, 2.9), sharey=True, layout="constrained")
    for axes, names in zip(grid, PANELS, strict=True):
        _by_layer(axes, {name: table[["layer", name]].set_axis(["layer", "value"], axis=1) for name in names})
        for name in names:
            axes.axhline(uniform[name], xmin=0.95, color=LOOKS[name]["color"], linestyle=":", linewidth=1.2)
        axes.set(ylim=(-0.02, 1.02), xlabel=LAYER)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)
    grid[0].set_ylabel(SHARE)
    return titled(figure, title)


def gradient_layers(heads: pd.DataFrame, title: str = "") -> Figure:
    """Mean |gradient| of the masked-language loss by layer (lines) and head (marks), for attention to each group.

    The scale is logarithmic; heads are those of `gradient_heads`. Source: Clark 2019, figure 3.
    """
    figure, axes = plt.subplots(figsize=(DOUBLE * 0.75, 2.7), layout="constrained")
    parts = {group: part.rename(columns={"importance": "value"}) for group, part in heads.groupby("group")}
    _by_layer(axes, {group: parts[group] for group in ("cls", "sep", "punct", "other")})
    axes.set(xlabel=LAYER, ylabel="mean |∂loss / ∂attention| (nats)", yscale="log")
    figure.legend(
        *axes.get_legend_handles_labels(), ncols=4, loc="outside lower center", title="attention to"
    )
    return titled(figure, title)


def entropy_layers(table: pd.DataFrame, uniform: pd.Series, title: str = "") -> Figure:
    """Entropy of attention of every head by layer (marks) and the layer's mean (line); dashed: uniform attention.

    Left the mean over all rows, right the row of [CLS]. Source: Clark 2019, figure 4.
    """
    figure, grid = plt.subplots(1, 2, figsize=(DOUBLE, 2.4), sharey=True, layout="constrained")
    for axes, name in zip(grid, ("entropy", "entropy_cls"), strict=True):
        _by_layer(axes, {name: table[["layer", name]].set_axis(["layer", "value"], axis=1)})
        axes.axhline(uniform[name], label="uniform attention", **UNIFORM)
        axes.set(xlabel=LAYER, ylim=(0, 1.08 * uniform[name]))
        axes.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)
    grid[0].set_ylabel(NATS)
    return titled(figure, title)


def head_map(places: pd.DataFrame, behaviour: pd.Series, stress: float, title: str = "") -> Figure:
    """Heads in the plane (`embed`), by behaviour (left) and by layer (right); only distances mean anything.

    Source: Clark 2019, figure 6.
    """
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(DOUBLE, 3.4), sharex=True, sharey=True, layout="constrained"
    )
    for name, look in BEHAVIOUR_LOOKS.items():
        chosen = places[(behaviour == name).to_numpy()]
        if len(chosen):
            left.scatter(chosen["x"], chosen["y"], s=22, linewidth=0, label=f"{name} ({len(chosen)})", **look)
    left.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), handletextpad=0.2, columnspacing=0.8)
    layers = places["layer"].max() + 1
    shades = mpl.colormaps["viridis"].resampled(int(layers))
    drawn = right.scatter(
        places["x"], places["y"], c=places["layer"], cmap=shades, vmin=-0.5, vmax=layers - 0.5, s=26,
        edgecolor="0.3", linewidth=0.3,
    )  # fmt: skip
    bar = figure.colorbar(drawn, ax=right, location="top", aspect=40, pad=0.02)
    bar.set_label(LAYER)
    bar.ax.xaxis.set_major_locator(MaxNLocator(int(layers), integer=True))
    for axes in (left, right):
        axes.set(xticks=[], yticks=[], aspect="equal")
    figure.supylabel(f"MDS of Jensen-Shannon distances (stress {stress:.2f})")
    return titled(figure, title)


def _by_layer(axes: Axes, parts: Mapping[str, pd.DataFrame]) -> None:
    """Marks of heads side by side within their layer, and lines through the layers' means.

    `parts` maps a key of LOOKS to a frame with columns layer and value, a row per head.
    """
    shifts = (np.arange(len(parts)) - (len(parts) - 1) / 2) * 0.22
    for shift, (name, part) in zip(shifts, parts.items(), strict=True):
        look = LOOKS[name]
        axes.scatter(
            part["layer"] + shift, part["value"], s=8, alpha=0.55, linewidth=0,
            color=look["color"], marker=look["marker"],
        )  # fmt: skip
        means = part.groupby("layer")["value"].mean()
        axes.plot(means.index + shift, means, markersize=4, linewidth=1.2, **look)
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
