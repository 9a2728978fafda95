"""All heads of an encoder in one picture: roles, ablation effects and matching heads."""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from analysis.figures import theme
from analysis.figures.colours import MATCHING_HEADS, colour, ink, marker
from analysis.figures.grids import LAYER_UPWARDS
from analysis.figures.theme import DOUBLE, HEAD, as_written

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
    mesh = theme.layer_head_mesh(
        axes, effect, cmap="Greys", vmin=0, vmax=2 * top
    )  # pale, so that marks stand out
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
        axes.add_patch(
            Rectangle((head - 0.46, layer - 0.46), 0.92, 0.92, fill=False, ec=MATCHING_HEADS, lw=2.2)
        )
    axes.set(xlabel=HEAD, ylabel=LAYER_UPWARDS, xlim=(-0.5, heads - 0.5), ylim=(-0.5, layers - 0.5))
    theme.integer_ticks(axes, bins=12)
    key = [Line2D([], [], label=role, **_look(role)) for role in PLACES]
    look = {"color": "0.3", "linestyle": "", "marker": "o", "markerfacecoloralt": "white"}
    key += [Line2D([], [], fillstyle=fill, label=name, **look) for fill, name in FILLS.values()]
    key += [
        Line2D([], [], linestyle="", marker="s", ms=9, mfc="none", mec=MATCHING_HEADS, mew=2.2, label=frame)
    ]
    axes.figure.legend(handles=key, ncols=4, loc="outside lower center", title="roles after fine-tuning")
    return axes.figure


def _look(role: str) -> dict[str, object]:
    """The mark of a role, whose empty part is white."""
    look = {"marker": marker(role), "color": colour(role), "markeredgecolor": ink(role)}
    return look | {"markerfacecoloralt": "white", "linestyle": ""}
