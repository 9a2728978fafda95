"""Figures of shared heads: UpSet diagram of the heads of each role, and overlap of each two roles (F5)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from analysis.errors import InputError
from analysis.figures.colours import MISSING, colour
from analysis.figures.theme import DOUBLE, canvas, in_order

SHARE = "proportion of the row role's heads\nthat also have the column role"


def overlap_upset(memberships: pd.DataFrame, most: int = 25) -> Figure:
    """UpSet diagram: how many heads have exactly each combination of roles, and how many have each role.

    `memberships` is boolean, with a row per head (layer, head) and a column per role; a missing value counts as no.
    The `most` largest combinations are drawn; the figure says how many are left out.
    Source: Pande 2021, Q1. (Drawn here because upsetplot 0.9 fails under pandas 3.)
    """
    roles = in_order(memberships.columns)
    members = memberships[roles].astype("boolean").fillna(False).astype(bool)
    sizes = members.value_counts()
    shown = sizes.head(most)
    pattern = np.array(list(shown.index), dtype=bool).reshape(len(shown), len(roles))
    figure, grid = plt.subplots(
        2, 2, figsize=(DOUBLE, 1.5 + 0.19 * len(roles)), width_ratios=(1, 4), sharex="col", sharey="row",
        height_ratios=(1.3, 0.19 * len(roles)), layout="constrained",
    )  # fmt: skip
    grid[0, 0].remove()
    _combination_bars(grid[0, 1], shown, sizes.iloc[most:])
    _role_bars(grid[1, 0], members.sum(), roles)
    _dot_matrix(grid[1, 1], pattern, roles)
    return figure


def overlap_heatmap(overlap: pd.DataFrame) -> Axes:
    """Overlap of each two roles: the colour is the share of the row role's heads that also have the column role.

    The number is how many heads have both; on the diagonal, the heads of the role itself. Only one triangle is drawn,
    in which the row role comes first in the order of the figures. `overlap` has a row per pair of roles, with columns
    role_a, role_b, heads_a, heads_b, both. Raises InputError if a pair occurs twice. Source: Pande 2021, Q1 (the share
    of local heads that are syntactic, claim C3).
    """
    if overlap.duplicated(["role_a", "role_b"]).any():
        raise InputError(
            "the overlap table has a pair of roles more than once; select one task and state first"
        )
    both_orders = pd.concat([overlap, overlap.rename(columns=_swapped)])
    roles = in_order(both_orders["role_a"])
    wide = both_orders.drop_duplicates(["role_a", "role_b"]).pivot(
        index="role_a", columns="role_b", values="both"
    )
    numbers = wide.reindex(index=roles, columns=roles).to_numpy(dtype=float, na_value=np.nan, copy=True)
    own = both_orders.groupby("role_a")["heads_a"].first()[roles].to_numpy(dtype=float)
    np.fill_diagonal(numbers, own)
    numbers[np.tril_indices(len(roles), -1)] = np.nan
    shares = np.divide(numbers, own[:, None], out=np.full_like(numbers, np.nan), where=own[:, None] > 0)
    return _annotated(canvas(DOUBLE / 2 + 0.4, 3.2), shares, numbers, roles)


def _swapped(column: str) -> str:
    """The column of the overlap table for the same pair in reverse order."""
    stem, _, side = column.rpartition("_")
    return f"{stem}_{ {'a': 'b', 'b': 'a'}[side] }" if side in {"a", "b"} else column


def _combination_bars(axes: Axes, sizes: pd.Series, left_out: pd.Series) -> None:
    """Heads per combination of roles, with their numbers."""
    bars = axes.bar(range(len(sizes)), sizes, width=0.7, color="0.25")
    axes.bar_label(bars, fontsize=7, padding=1)
    axes.set_ylabel("heads with exactly\nthese roles")
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.tick_params(bottom=False, labelbottom=False, labelleft=True)
    axes.spines[["top", "right"]].set_visible(False)
    if len(left_out):
        note = f"not drawn: {len(left_out)} smaller combinations ({left_out.sum()} heads)"
        axes.text(1, 1, note, transform=axes.transAxes, ha="right", va="top")


def _role_bars(axes: Axes, sizes: pd.Series, roles: list[str]) -> None:
    """Heads per role, as bars to the left."""
    axes.set(xlim=(1.4 * max(sizes.max(), 1), 0), ylim=(len(roles) - 0.5, -0.5), xlabel="heads with the role")
    bars = axes.barh(range(len(roles)), sizes[roles], height=0.6, color=[colour(role) for role in roles])
    axes.bar_label(bars, fontsize=7, padding=1)
    axes.tick_params(left=False, labelleft=False)
    axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.spines[["top", "left"]].set_visible(False)


def _dot_matrix(axes: Axes, pattern: Bool[np.ndarray, "combination role"], roles: list[str]) -> None:
    """The roles in each combination: filled dots joined by a line; pale dots for the other roles."""
    combinations, rows = np.nonzero(~pattern)
    axes.scatter(combinations, rows, s=14, color=MISSING, linewidth=0)
    combinations, rows = np.nonzero(pattern)
    axes.scatter(combinations, rows, s=22, color="0.15", linewidth=0, zorder=3)
    for combination, row in enumerate(pattern):
        held = np.flatnonzero(row)
        axes.plot([combination] * len(held), held, color="0.15", linewidth=1.2)
    axes.set(xlabel="combination of roles (no dark dot: none of them)", xticks=[])
    axes.set_xlim(-0.6, len(pattern) - 0.4)
    axes.set_yticks(range(len(roles)), labels=roles)
    axes.tick_params(length=0, labelleft=True)
    axes.spines[:].set_visible(False)


def _annotated(
    axes: Axes,
    shares: Float[np.ndarray, "role role"],
    numbers: Float[np.ndarray, "role role"],
    roles: list[str],
) -> Axes:
    """The heat map of shares with a number in each cell of the triangle; grey if the row role has no head."""
    mesh = axes.imshow(np.ma.masked_invalid(shares), vmin=0, vmax=1, cmap="mako_r")
    for row, column in zip(*np.triu_indices(len(roles)), strict=True):
        empty = np.isnan(shares[row, column])
        if empty:
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, color=MISSING, linewidth=0))
        shade = "white" if not empty and shares[row, column] > 0.5 else "black"
        axes.text(
            column, row, f"{numbers[row, column]:.0f}", ha="center", va="center", fontsize=7, color=shade
        )
    axes.figure.colorbar(mesh, ax=axes, label=SHARE, shrink=0.8)
    axes.set_xticks(range(len(roles)), labels=roles, rotation=90)
    axes.set_yticks(range(len(roles)), labels=roles)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="column role", ylabel="row role")
    return axes
