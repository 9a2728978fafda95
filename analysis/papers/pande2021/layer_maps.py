"""Heat maps of roles over layers: heads with each role, gained and lost by fine-tuning (F7, F8)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from analysis.figures.colours import MISSING
from analysis.figures.theme import LAYER, in_order, rows_of_axes

STATE_NAMES = {"pretrained": "pre-trained", "finetuned": "fine-tuned"}
MOVES = {"gained": "gained by fine-tuning", "lost": "lost by fine-tuning"}
ROW = 0.15  # inches per role
FEW_LAYERS = 8  # with up to this many layers, four panels in a row still have readable numbers


def layer_profile(counts: pd.DataFrame) -> Figure:
    """Heads with each role per layer: a map of roles x layers per task and state, with the number of heads in cells.

    `counts` has columns task, state, layer, role, heads; role may also be `multi-functional` or `none`. Grey: the role
    is untestable. Source: Pande 2021, Q2.
    """
    states = [state for state in STATE_NAMES if state in set(counts["state"])]
    groups = counts.groupby(["state", "task"], sort=False)
    maps = {
        f"{task}, {STATE_NAMES[state]}": groups.get_group((state, task))
        for state in states
        for task in dict.fromkeys(counts.loc[counts["state"] == state, "task"])
    }
    return _role_layer_maps(maps, "heads", in_order(counts["role"]))


def transitions_plot(transitions: pd.DataFrame) -> Figure:
    """Heads that gain (top) and lose (bottom) each role by fine-tuning per layer: a map of roles x layers per task.

    `transitions` has columns task, layer, role, gained, lost. Grey: the role is untestable. Source: Pande 2021, Q3.
    """
    maps = {
        f"{task}: {move}": rows.assign(heads=rows[move])
        for move in MOVES
        for task, rows in transitions.groupby("task", sort=False)
    }
    label = "heads that gain or lose the role by fine-tuning"
    return _role_layer_maps(maps, label, in_order(transitions["role"]))


def _role_layer_maps(maps: Mapping[str, pd.DataFrame], label: str, roles: list[str]) -> Figure:
    """A map of roles x layers for each title, from columns role, layer, heads, on one colour scale."""
    layers = 1 + max(int(rows["layer"].max()) for rows in maps.values())
    columns = 4 if layers <= FEW_LAYERS else 2
    height = ROW * len(roles) + 0.25
    figure, grid = rows_of_axes(len(maps), columns, height, 0.35, sharex=True, sharey=True)
    most = max(1.0, max(float(part["heads"].max()) for part in maps.values()))
    for axes, (name, part) in zip(grid, maps.items(), strict=True):
        heads = pd.to_numeric(part["heads"]).astype("Float64").to_numpy(dtype=float, na_value=np.nan)
        wide = part.assign(heads=heads).pivot(index="role", columns="layer", values="heads")
        _role_layer_map(axes, wide.reindex(index=roles, columns=range(layers)), most)
        axes.set_title(name)
    figure.supxlabel(LAYER)
    figure.supylabel("role (grey: untestable)")
    scale = ScalarMappable(Normalize(0, most), "mako_r")
    figure.colorbar(scale, ax=grid, aspect=40, pad=0.02, label=label)
    return figure


def _role_layer_map(axes: Axes, heads: pd.DataFrame, most: float) -> None:
    """One map, with a number in each cell that has heads."""
    values = heads.to_numpy()
    axes.set_facecolor(MISSING)
    axes.imshow(np.ma.masked_invalid(values), cmap="mako_r", vmin=0, vmax=most, aspect="auto")
    for row, layer in zip(*np.nonzero(np.nan_to_num(values)), strict=True):
        shade = "white" if values[row, layer] > most / 2 else "black"
        axes.text(layer, row, f"{values[row, layer]:g}", ha="center", va="center", fontsize=7, color=shade)
    axes.set_xticks(range(values.shape[1]))
    axes.set_yticks(range(len(heads)), labels=heads.index)
    axes.tick_params(length=0)
