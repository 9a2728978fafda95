"""Figures of shared heads: UpSet of the roles' sets of heads, overlap of each two roles (F5)."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.errors import InputError
from analysis.figures.theme import DOUBLE, MISSING, canvas, colour, in_order, titled

OVERLAPS = {
    "jaccard": "Jaccard index\n(heads with both / heads with either)",
    "share_of_a": "proportion of the row role's heads\nthat also have the column role",
}


def overlap_upset(memberships: pd.DataFrame, most: int = 25, title: str = "") -> Figure:
    """UpSet diagram: how many heads have exactly each combination of roles, and how many have each role.

    `memberships` is boolean, a row per head (layer, head), a column per role; a missing value counts as no.
    The `most` largest combinations are drawn; the figure says how many are left out.
    Source: Pande 2021, Q1. (upsetplot 0.9 fails under pandas 3, hence drawn here.)
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
    return titled(figure, title)


def overlap_heatmap(
    overlap: pd.DataFrame, axes: Axes | None = None, value: str = "jaccard", title: str = ""
) -> Axes:
    """Overlap of each two roles: the colour is `value`, the number is how many heads have both.

    `overlap` has a row per pair of roles, in one or both orders, with columns role_a, role_b, heads_a,
    heads_b, both, jaccard, share_of_a, share_of_b. The diagonal gives the heads of the role itself.
    Raises InputError when `value` is no key of OVERLAPS or a pair stands there twice. Source: Pande 2021, Q1.
    """
    if value not in OVERLAPS:
        raise InputError(f"value {value!r} is not an overlap; choose one of {', '.join(OVERLAPS)}")
    if overlap.duplicated(["role_a", "role_b"]).any():
        raise InputError(
            "the overlap table has a pair of roles more than once; select one task and state first"
        )
    both_orders = pd.concat([overlap, overlap.rename(columns=_swapped)]).drop_duplicates(["role_a", "role_b"])
    roles = in_order(both_orders["role_a"])
    wide = both_orders.pivot(index="role_a", columns="role_b").reindex(index=roles)
    shares = wide[value].reindex(columns=roles).to_numpy(dtype=float, na_value=np.nan, copy=True)
    numbers = wide["both"].reindex(columns=roles).to_numpy(dtype=float, na_value=np.nan, copy=True)
    own = both_orders.groupby("role_a")["heads_a"].first()[roles].to_numpy(dtype=float)
    np.fill_diagonal(shares, np.where(own > 0, 1.0, np.nan))
    np.fill_diagonal(numbers, own)
    return _annotated(canvas(axes, DOUBLE / 2 + 0.4, 3.4), shares, numbers, roles, OVERLAPS[value], title)


def _swapped(column: str) -> str:
    """The column of the overlap table that says the same of the pair in the other order."""
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
    """Heads per role, growing to the left."""
    axes.set(xlim=(1.4 * max(sizes.max(), 1), 0), ylim=(len(roles) - 0.5, -0.5), xlabel="heads with the role")
    bars = axes.barh(range(len(roles)), sizes[roles], height=0.6, color=[colour(role) for role in roles])
    axes.bar_label(bars, fontsize=7, padding=1)
    axes.tick_params(left=False, labelleft=False)
    axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.spines[["top", "left"]].set_visible(False)


def _dot_matrix(axes: Axes, pattern: Bool[np.ndarray, "combination role"], roles: list[str]) -> None:
    """Which roles each combination holds: filled dots joined by a line, pale dots for the others."""
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
    label: str,
    title: str,
) -> Axes:
    """The heat map of overlaps with a number in each cell; grey where neither role has a head."""
    text = pd.DataFrame(numbers).map(lambda number: "" if np.isnan(number) else f"{number:.0f}")
    axes.set_facecolor(MISSING)
    bar = {"label": label, "shrink": 0.8}
    sns.heatmap(
        shares, vmin=0, vmax=1, cmap="mako_r", annot=text, fmt="", annot_kws={"fontsize": 7}, square=True,
        linewidths=0.4, xticklabels=roles, yticklabels=roles, cbar_kws=bar, ax=axes,
    )  # fmt: skip
    axes.set(xlabel="role", ylabel="role", title=title)
    axes.tick_params(length=0)
    return axes
