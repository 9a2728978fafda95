"""Figures with a value of every head: links, similarity, disabling (Kovaleva et al. 2019, figures 3, 5 and 8)."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.figure import Figure

from analysis.figures.theme import HEAD, LAYER, layer_head_mesh, rows_of_axes
from analysis.statistics.layers import head_grid


class Panel(NamedTuple):
    """The values of the heads of one encoder, and the heads that get a dot."""

    values: Float[np.ndarray, "layer head"]
    dots: Bool[np.ndarray, "layer head"] | None = None


def head_panels(
    panels: Mapping[str, Panel],
    label: str,
    columns: int = 4,
    height: float = 1.5,
    **colours: object,
) -> Figure:
    """A layer x head map for each panel, on one colour scale, with the dots of the panel."""
    figure, grid = rows_of_axes(len(panels), columns, height, 0.4)
    for axes, (name, panel) in zip(grid, panels.items(), strict=True):
        mesh = layer_head_mesh(axes, panel.values, **colours)
        if panel.dots is not None:
            layers, heads = np.nonzero(panel.dots)
            axes.scatter(heads, layers, s=5, color="black", edgecolor="white", linewidth=0.3)
        axes.set_title(name, fontsize=7.5)
    figure.supxlabel(HEAD)
    figure.supylabel(LAYER)
    figure.colorbar(mesh, ax=grid, label=label, shrink=0.8, pad=0.01, aspect=30)
    return figure


def link_maps(table: pd.DataFrame, published: pd.DataFrame, alpha: float = 0.05) -> Figure:
    """Attention between frame elements and targets in every head, and at the same distance elsewhere.

    A dot means more than at the same distance (adjusted p < `alpha`). Source: Kovaleva 2019, figure 3.
    """
    panels = {}
    for (mode, direction), part in table.groupby(["mode", "direction"], sort=False):
        told = f"{direction.replace('_', ' ')}\n{'as released' if mode == 'faithful' else 'all pairs'}"
        panels[told] = Panel(
            head_grid(part, "mean"), head_grid(part.assign(dot=part["p_by"] < alpha), "dot") > 0
        )
        if mode == "faithful" and direction == "element_to_target":
            panels["the same,\nat the same distance"] = Panel(head_grid(part, "control"))
    panels["element to target, as released\n(BERT-base, published)"] = Panel(head_grid(published, "link"))
    most = max(np.nanmax(panel.values) for panel in panels.values())
    label = "largest attention of the link, mean over sentences"
    return head_panels(panels, label, 3, 1.75, cmap="mako_r", vmin=0, vmax=most)


def similarity_maps(table: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Cosine similarity of maps before and after fine-tuning, mean over the seeds, for each task and padding.

    `table` is that of `tables.cosine_table`. Source: Kovaleva 2019, figure 5.
    """
    panels = {}
    for (padding, task), part in table.groupby(["padding", "task"], sort=False):
        means = part.groupby(["layer", "head"], as_index=False)["mean"].mean()
        panels[f"{task}, {padding}"] = Panel(head_grid(means, "mean"))
    ordered = dict(sorted(panels.items(), key=lambda item: item[0].split(", ")[1]))  # cropped, then kept
    ordered["qqp, kept\n(BERT-base, published)"] = Panel(head_grid(published, "cosine"))
    label = "cosine similarity before and after fine-tuning"
    columns = min(6, max(3, table["task"].nunique()))
    return head_panels(ordered, label, columns, 1.5, cmap="mako", vmin=0, vmax=1)


def disabled_heads(table: pd.DataFrame, alpha: float = 0.05) -> Figure:
    """Change of each task's metric, in points, when one head attends equally to all tokens.

    `table` has columns task, layer, head, metric, baseline, change, p_by, and a row per task and head. A dot means p_by
    < `alpha`. Source: Kovaleva 2019, figure 8.
    """
    panels = {}
    for task, part in table.groupby("task", sort=False):
        first = part.iloc[0]
        name = f"{task}\n{first['metric']} {first['baseline']:.3f}"
        panels[name] = Panel(
            100 * head_grid(part, "change"), head_grid(part.assign(dot=part["p_by"] < alpha), "dot") > 0
        )
    most = max(np.nanmax(np.abs(panel.values)) for panel in panels.values()) or 1.0
    label = "change of the metric (points)"
    return head_panels(panels, label, 3, 1.75, cmap="vlag_r", vmin=-most, vmax=most)
