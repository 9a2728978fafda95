"""Figures of surface patterns, gradients, entropies and head distances, after those of Clark 2019 (1 to 4 and 6)."""

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLUE, GREEN, ORANGE, SKY, VERMILION, WINE
from analysis.figures.diagrams import attention_lines
from analysis.figures.theme import DOUBLE, LAYER, rows_of_axes

SHARE = "proportion of attention"
NATS = "entropy (nats)"
# Columns of the surface table by panel, and how they are drawn; the marks differ, so that they are distinct in grey.
LOOKS = {
    "previous": {"label": "previous token", "color": BLUE, "marker": "<"},
    "next": {"label": "next token", "color": VERMILION, "marker": ">"},
    "self": {"label": "itself", "color": "0.35", "marker": "o"},
    "cls": {"label": "[CLS]", "color": VERMILION, "marker": "^"},
    "sep": {"label": "[SEP]", "color": BLUE, "marker": "s"},
    "punct": {"label": "full stops and commas", "color": "0.35", "marker": "o"},
    "sep_sep": {"label": "[SEP] to [SEP]", "color": GREEN, "marker": "D"},
    "rest_sep": {"label": "other tokens to [SEP]", "color": BLUE, "marker": "s"},
    "entropy": {"label": "mean of all rows", "color": BLUE, "marker": "o"},
    "entropy_cls": {"label": "row of [CLS]", "color": VERMILION, "marker": "^"},
    "other": {"label": "other tokens", "color": GREEN, "marker": "D"},
}
PANELS = (("previous", "next", "self"), ("cls", "sep", "punct"), ("sep_sep", "rest_sep"))
BEHAVIOUR_LOOKS = {
    "other": {"color": "0.65", "marker": "o"},
    "next token": {"color": VERMILION, "marker": ">"},
    "previous token": {"color": BLUE, "marker": "<"},
    "broad": {"color": ORANGE, "marker": "^"},
    "[CLS]": {"color": WINE, "marker": "*"},
    "[SEP]": {"color": GREEN, "marker": "s"},
    "full stops and commas": {"color": SKY, "marker": "D"},
}
UNIFORM = {"color": "black", "linestyle": ":", "linewidth": 1.0}
STRETCHED = {"linestyle": "--", "linewidth": 1.0}
REFERENCE = "mean of a layer of BERT-base on Wikipedia (published), its 12 layers stretched to this depth"
RING = {"s": 48, "facecolor": "none", "edgecolor": "black", "linewidth": 1.0}
NONE_OF_THE_KIND = "no head of this encoder\nattends most to this"


def example_heads(
    maps: Mapping[str, Float[np.ndarray, "token token"] | None],
    tokens: Sequence[str],
    last: int = 14,
) -> Figure:
    """Attention of heads in one sequence: lines from each token (left) to the tokens it attends to (right).

    A panel per title, three in a row; a panel without a map says that there is no such head. It shows the first token
    and the `last` ones; each row of attention is divided by its sum over them, and a line is as opaque as its weight.
    Source: Clark 2019, figure 1; departure: with [CLS].
    """
    shown = np.unique([0, *range(max(0, len(tokens) - last), len(tokens))])
    names = [tokens[position] for position in shown]
    if len(shown) < len(tokens):
        names[0] += " …"  # marks the tokens left out
    figure, grid = rows_of_axes(len(maps), 3, 0.135 * len(shown) + 0.45, 0.3)
    for axes, (name, attention) in zip(grid, maps.items(), strict=True):
        axes.set_title(name)
        if attention is None:
            axes.text(
                0.5, 0.5, NONE_OF_THE_KIND, transform=axes.transAxes, ha="center", va="center", color="0.4"
            )
            axes.axis("off")
            continue
        cells = attention[np.ix_(shown, shown)]
        attention_lines(axes, cells / cells.sum(axis=1, keepdims=True), names)
    figure.supxlabel("attending token (left), attended token (right)")
    figure.supylabel("tokens of the sequence, in order")
    return figure


def surface_patterns(
    table: pd.DataFrame, uniform: pd.Series, reference: pd.DataFrame | None = None
) -> Figure:
    """Shares of attention of every head by layer (marks) and their mean over a layer's heads (lines).

    Three panels with separate scales: neighbours and the token itself; special tokens and punctuation; [SEP] by
    attending token. Dots at the right edge: a head that attends uniformly. `table` and `uniform` are those of
    `surface_table` and `uniform_values`. `reference` is that of `published.surface_layers`, with its layers stretched
    to the depth of this encoder (dashed). Source: Clark 2019, section 3.1 and figure 2.
    """
    figure, grid = plt.subplots(1, 3, figsize=(DOUBLE, 2.9), layout="constrained")
    for axes, names in zip(grid, PANELS, strict=True):
        _by_layer(axes, {name: table[["layer", name]].set_axis(["layer", "value"], axis=1) for name in names})
        for name in names:
            axes.axhline(uniform[name], xmin=0.95, color=LOOKS[name]["color"], linestyle=":", linewidth=1.2)
        _stretched(axes, reference, names, int(table["layer"].max()))
        axes.set_ylim(bottom=0)
        axes.set_xlabel(LAYER)
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)
    grid[0].set_ylabel(SHARE)
    if reference is not None:
        figure.legend(
            handles=[Line2D([], [], color="0.4", **STRETCHED, label=REFERENCE)], loc="outside lower center"
        )
    return figure


def gradient_layers(heads: pd.DataFrame, title: str) -> Figure:
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
    figure.suptitle(title)
    return figure


def entropy_layers(table: pd.DataFrame, uniform: pd.Series, reference: pd.DataFrame | None = None) -> Figure:
    """Entropy of attention of every head by layer (marks) and the layer's mean (line); dotted: uniform attention.

    Left: the mean over all rows, right: the row of [CLS]; `reference` as in `surface_patterns` (dashed).
    Source: Clark 2019, figure 4.
    """
    figure, grid = plt.subplots(1, 2, figsize=(DOUBLE, 2.6), sharey=True, layout="constrained")
    for axes, name in zip(grid, ("entropy", "entropy_cls"), strict=True):
        _by_layer(axes, {name: table[["layer", name]].set_axis(["layer", "value"], axis=1)})
        axes.axhline(uniform[name], label="uniform attention", **UNIFORM)
        _stretched(axes, reference, [name], int(table["layer"].max()))
        axes.set(xlabel=LAYER, ylim=(0, 1.08 * uniform[name]))
        axes.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), borderaxespad=0.2)
    grid[0].set_ylabel(NATS)
    if reference is not None:
        figure.legend(
            handles=[Line2D([], [], color="0.4", **STRETCHED, label=REFERENCE)], loc="outside lower center"
        )
    return figure


def head_map(places: pd.DataFrame, behaviour: pd.Series, linguistic: pd.DataFrame, stress: float) -> Figure:
    """Heads in the plane (`embed`), by behaviour (left) and by layer (right); only distances are meaningful.

    Rings mark the heads of `quantities.linguistic_heads`, named layer-head. Source: Clark 2019, figure 6.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(DOUBLE, 4.1), layout="compressed")
    for name, look in BEHAVIOUR_LOOKS.items():
        chosen = places[(behaviour == name).to_numpy()]
        if len(chosen):
            left.scatter(chosen["x"], chosen["y"], s=22, linewidth=0, label=f"{name} ({len(chosen)})", **look)
    layers = int(places["layer"].max()) + 1
    shades = mpl.colormaps["viridis"].resampled(layers)
    for layer, part in places.groupby("layer"):
        right.scatter(
            part["x"], part["y"], s=26, color=shades(layer), edgecolor="0.3", linewidth=0.3, label=layer
        )
    ringed = places.merge(linguistic, on=["layer", "head"])
    left.scatter(ringed["x"], ringed["y"], label=f"finds a relation or antecedents ({len(ringed)})", **RING)
    for row in ringed.itertuples():
        left.annotate(f"{row.layer}-{row.head}", (row.x, row.y), xytext=(5, 3), textcoords="offset points",
                      fontsize=7)  # fmt: skip
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "handletextpad": 0.2, "columnspacing": 0.8}
    left.legend(ncols=2, **below)
    right.legend(ncols=6, title=LAYER, **below)
    for axes in (left, right):
        axes.set(xticks=[], yticks=[], aspect="equal", **_square(places))
    figure.supylabel(f"MDS of Jensen-Shannon distances (stress {stress:.2f})")
    return figure


def _stretched(axes: Axes, reference: pd.DataFrame | None, names: Sequence[str], last: int) -> None:
    """The published layer means of the columns `names`, stretched to the depth of this encoder."""
    if reference is None:
        return
    across = reference["layer"] * last / reference["layer"].max()
    for name in reference.columns.intersection(names):
        axes.plot(across, reference[name], color=LOOKS[name]["color"], **STRETCHED)


def _square(places: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Limits of both axes for a square that contains all places, with a margin."""
    reach = 0.55 * max(np.ptp(places["x"]), np.ptp(places["y"]))
    middles = {axis: (places[axis].min() + places[axis].max()) / 2 for axis in ("x", "y")}
    return {f"{axis}lim": (middle - reach, middle + reach) for axis, middle in middles.items()}


def _by_layer(axes: Axes, parts: Mapping[str, pd.DataFrame]) -> None:
    """Marks for heads side by side within their layer, and lines through the layers' means.

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
