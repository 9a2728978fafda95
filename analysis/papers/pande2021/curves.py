"""Curves: how labels change with the threshold and the number of sequences, and labels of controls (F11, F12)."""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from analysis.errors import InputError
from analysis.figures.colours import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILION, WINE, colour
from analysis.figures.theme import DOUBLE, LAYER, in_order, integer_ticks, panels
from analysis.papers.pande2021.simulation import DIVISORS, analytic_power

# Colour, dash and mark of the first, second, ... task or control; they differ in grey too.
LOOKS = (
    {"color": BLACK, "linestyle": "-", "marker": "o"},
    {"color": BLUE, "linestyle": "--", "marker": "s"},
    {"color": VERMILION, "linestyle": "-.", "marker": "^"},
    {"color": GREY, "linestyle": ":", "marker": "D"},
    {"color": GREEN, "linestyle": (0, (6, 1)), "marker": "v"},
    {"color": ORANGE, "linestyle": (0, (3, 1, 1, 1, 1, 1)), "marker": "P"},
)
TAU = "threshold τ (score)"
TAU_VALUES = {
    "share": "proportion of heads\nwith the role",
    "jaccard": "Jaccard index with\nthe heads at the default τ",
}


class Rule(NamedTuple):
    """The look of a rule: its name, the position of its marks next to n (a factor), its colour, mark and line."""

    name: str
    beside: float
    marks: dict[str, str]

    def key(self, **changes: str) -> Line2D:
        """The rule's entry in a legend."""
        return Line2D([], [], label=self.name, **SMALL | self.marks | changes)


SMALL = {"markersize": 3.8, "linewidth": 0.8}
OPEN = {"color": BLUE, "markerfacecolor": "white"}
RULES = {
    "t": Rule("t test", 0.95, {"color": "black", "marker": "o", "linestyle": "-"}),
    "t_published": Rule("t test, population sd", 0.85, {"color": "0.45", "marker": "x", "linestyle": ":"}),
    "bootstrap_t": Rule("bootstrap-t", 1.06, OPEN | {"marker": "s", "linestyle": "--"}),
    "t_by": Rule("t test, BY", 0.95, {"color": colour("sep"), "marker": "D", "linestyle": "-."}),
    "audited": Rule("audited", 1.17, {"color": colour("delimiter"), "marker": "^", "linestyle": "-"}),
    "controlled": Rule("controlled", 1.29, {"color": WINE, "marker": "v", "linestyle": "--"}),
}
SINGLE_HEADS = ("t", "t_published", "bootstrap_t", "audited", "controlled")
WHOLE_FAMILIES = ("bootstrap_t", "t_by", "audited", "controlled")
POWERS = ("t", "bootstrap_t", "audited", "controlled")
NOMINAL = {"color": "0.3", "linestyle": (0, (4, 2)), "linewidth": 0.8}
THEORY = {"no correction": "-", "BY, one head of 144": "--"}  # dashes; Bonferroni would hide the second


def tau_curves(sweep: pd.DataFrame, tau: float | int) -> Figure:
    """Heads with each role over the threshold (top), and their overlap with those at `tau` (bottom); a line per task.

    A panel per role; dashes mark `tau`. Top: the proportion of testable heads with the role. Bottom: the Jaccard index
    of these heads with those at `tau`. `sweep` has columns task, role, tau, testable, heads, jaccard.
    """
    tasks, roles = _looks(sweep["task"]), in_order(sweep["role"])
    share = sweep.assign(share=sweep["heads"] / sweep["testable"])
    columns = min(5, len(roles))
    rows = -(-len(roles) // columns)
    figure = plt.figure(figsize=(DOUBLE, 2 * (1.05 * rows + 0.3) + 0.3), layout="constrained")
    for part, (value, name) in zip(figure.subfigures(2, 1, hspace=0.03), TAU_VALUES.items(), strict=True):
        grid = part.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for surplus in grid.flat[len(roles) :]:
            surplus.remove()
        for panel, role in zip(grid.flat, roles, strict=False):
            for task, look in tasks.items():
                line = share[(share["role"] == role) & (share["task"] == task)]
                panel.plot(line["tau"], line[value], **_thin(look), markevery=4)
            panel.axvline(tau, color="0.3", linestyle=(0, (2, 2)), linewidth=0.8)
            panel.set(title=role, ylim=(-0.03, 1.03))
        part.supylabel(name)
        part.supxlabel(TAU)
    _legend(figure, _handles(tasks))
    return figure


def tau_layer_maps(layers: pd.DataFrame, tau: float | int) -> Figure:
    """Heads with each role by layer (y) and threshold (x), mean over tasks; dashes mark `tau`.

    `layers` has columns task, role, layer, tau, heads.
    """
    roles = in_order(layers["role"])
    figure, axes = panels(len(roles), 5, 1.1, TAU, LAYER)
    means = layers.groupby(["role", "layer", "tau"])["heads"].mean()
    for panel, role in zip(axes, roles, strict=True):
        grid = means[role].unstack()
        mesh = panel.pcolormesh(
            grid.columns, grid.index, grid, cmap="mako_r", vmin=0, vmax=means.max(), shading="nearest"
        )
        panel.axvline(tau, color="0.5", linestyle=(0, (2, 2)), linewidth=0.9)
        integer_ticks(panel, bins=5)
        panel.set_title(role)
    figure.colorbar(mesh, ax=axes, aspect=40, pad=0.02, label="heads with the role (mean over tasks)")
    return figure


def stability_curves(stability: pd.DataFrame) -> Figure:
    """Jaccard index of the heads labelled on a sample and on all sequences, a panel per role and a line per task.

    Bars: one standard deviation over samples on each side. `stability` has columns task, role, size, jaccard,
    jaccard_sd.
    """
    tasks, roles = _looks(stability["task"]), in_order(stability["role"])
    sizes = np.unique(stability["size"])
    figure, axes = panels(len(roles), 5, 1.5, "sequences", "Jaccard index with the labels on all sequences")
    for panel, role in zip(axes, roles, strict=True):
        rows = stability[stability["role"] == role]
        for task, look in tasks.items():
            line = rows[rows["task"] == task]
            panel.errorbar(line["size"], line["jaccard"], line["jaccard_sd"], elinewidth=0.6, **_thin(look))
        panel.set(title=role, xscale="log", ylim=(-0.03, 1.03))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xticks(sizes, labels=[f"{size:d}" for size in sizes], rotation=90)
    _legend(figure, _handles(tasks))
    return figure


def control_counts(controls: pd.DataFrame) -> Figure:
    """Heads with each role (published label) in an encoder and in controls, a panel per task, a mark for each.

    `controls` has columns task, control, role, published.
    """
    looks, roles = _looks(controls["control"]), in_order(controls["role"])
    tasks = list(dict.fromkeys(controls["task"]))
    figure, axes = panels(len(tasks), 4, 0.19 * len(roles) + 0.3, "heads with the role", "role")
    shifts = np.linspace(-0.27, 0.27, len(looks))
    for panel, task in zip(axes, tasks, strict=True):
        for (control, look), shift in zip(looks.items(), shifts, strict=True):
            rows = controls[(controls["task"] == task) & (controls["control"] == control)]
            heights = np.array([roles.index(role) for role in rows["role"]]) + shift
            panel.plot(rows["published"].astype(float), heights, **_mark(look))
        panel.set(title=task, ylim=(len(roles) - 0.5, -0.5))
        panel.set_yticks(range(len(roles)), labels=roles)
        panel.set_yticks(np.arange(1, len(roles)) - 0.5, minor=True)
        panel.grid(axis="y", which="minor", color="0.85", linewidth=0.5)
        panel.tick_params(axis="y", which="both", length=0)
    _legend(figure, [Line2D([], [], label=control, **_mark(look)) for control, look in looks.items()])
    return figure


def size_curves(rates: pd.DataFrame, alpha: float) -> Figure:
    """How often a true mean of tau gets a label, over n: a column per shape of the scores, a line per rule.

    Top: rates of single heads. Bottom: rates of families of 144 heads with any label. Dashes mark `alpha`; bars are
    95 % Monte-Carlo intervals. `rates` is a table of `simulation.size_table`; only its rows at effect 0 count. Raises
    InputError if there are none.
    """
    null = rates[rates["effect"] == 0]
    if null.empty:
        raise InputError("the rates hold no effect of 0; put one into effects")
    figure, grid = _over_n(2, null)
    for (row, column), axes in np.ndenumerate(grid):
        here = null[null["shape"] == null["shape"].unique()[column]]
        rules, suffix = ((SINGLE_HEADS, ""), (WHOLE_FAMILIES, "_family"))[row]
        for rule in rules:
            _rates(axes, here[here["rule"] == rule + suffix], RULES[rule])
        axes.axhline(alpha, zorder=0, **NOMINAL)
    grid[0, 0].set(ylabel="heads with a\nfalse label (proportion)", ylim=(-0.01, None))
    grid[1, 0].set(ylabel="families with any\nfalse label (proportion)", ylim=(-0.06, 1.06))
    keys = [*(rule.key() for rule in RULES.values()), Line2D([], [], label=f"nominal {alpha:g}", **NOMINAL)]
    figure.legend(handles=keys, ncols=7, loc="outside lower center")
    return figure


def power_curves(rates: pd.DataFrame, alpha: float) -> Figure:
    """How often a true mean above tau gets a label, over n: a row per effect, a column per shape of the scores.

    Marks with 95 % Monte-Carlo intervals are simulated (a table of `simulation.size_table`, its rows with an effect);
    every head of a family has the effect. Lines are the t test on normal scores, at level `alpha` and at the level that
    BY gives a head if it alone has the effect. Raises InputError if there is no effect.
    """
    shifted = rates[rates["effect"] > 0]
    if shifted.empty:
        raise InputError("the rates hold no effect above 0; put one into effects, such as 0.5")
    effects = shifted["effect"].unique()
    figure, grid = _over_n(len(effects), shifted)
    n = np.geomspace(0.75 * shifted["n"].min(), 1.3 * shifted["n"].max(), 60)
    for (row, column), axes in np.ndenumerate(grid):
        for correction, dash in THEORY.items():
            power = analytic_power(n, effects[row], alpha / DIVISORS[correction])
            axes.plot(n, power, dash, color="0.6", linewidth=0.9, zorder=0)
        here = (shifted["effect"] == effects[row]) & (shifted["shape"] == shifted["shape"].unique()[column])
        for rule in POWERS:
            _rates(axes, shifted[here & (shifted["rule"] == rule)], RULES[rule], linestyle="")
        axes.set(ylim=(-0.04, 1.04), ylabel="" if column else f"effect {effects[row]:g} sd")
    figure.supylabel("heads labelled (proportion)")
    names = (f"theory, {correction}" for correction in THEORY)
    theory = [Line2D([], [], color="0.6", linestyle=dash, label=name)
              for name, dash in zip(names, THEORY.values(), strict=True)]  # fmt: skip
    simulated = [RULES[rule].key(linestyle="") for rule in POWERS]
    figure.legend(handles=[*theory, *simulated], ncols=6, loc="outside lower center")
    return figure


def _looks(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The look of each distinct name, in the order in which they appear."""
    return dict(zip(dict.fromkeys(names), itertools.cycle(LOOKS), strict=False))


def _thin(look: dict[str, str]) -> dict[str, object]:
    """A line with open marks that is thin enough for small panels."""
    return look | {"linewidth": 1.0, "markersize": 2.8, "markerfacecolor": "white", "markeredgewidth": 0.8}


def _mark(look: dict[str, str]) -> dict[str, object]:
    """A mark without a line, filled for the first look only."""
    filled = look["color"] if look is LOOKS[0] else "white"
    return look | {"linestyle": "", "markersize": 4, "markerfacecolor": filled, "markeredgewidth": 0.9}


def _handles(looks: dict[str, dict[str, str]]) -> list[Line2D]:
    return [Line2D([], [], label=name, **_thin(look)) for name, look in looks.items()]


def _legend(figure: Figure, handles: list[Line2D]) -> None:
    """Legend above the panels."""
    figure.legend(handles=handles, ncols=len(handles), loc="outside upper center")


def _over_n(rows: int, rates: pd.DataFrame) -> tuple[Figure, np.ndarray]:
    """Panels with a column per shape and a common logarithmic axis of n; panels in a row share a scale."""
    shapes, sizes = rates["shape"].unique(), rates["n"].unique()
    figure, grid = plt.subplots(
        rows, len(shapes), figsize=(DOUBLE, 1.35 * rows + 0.9), sharex=True, sharey="row", squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for column, (axes, shape) in enumerate(zip(grid[0], shapes, strict=True)):
        axes.set(title=f"{shape.replace('_', '-')} scores", xscale="log")
        axes.set_xticks(sizes, labels=[f"{n:,}" for n in sizes])
        axes.xaxis.set_minor_locator(NullLocator())
        grid[-1, column].set_xlabel("sequences (log scale)")
    return figure, grid


def _rates(axes: Axes, rows: pd.DataFrame, rule: Rule, **changes: str) -> None:
    """The rates of one rule with their intervals."""
    reach = rows[["low", "high"]].sub(rows["rate"], axis=0).abs().T.to_numpy()
    marks = SMALL | rule.marks | changes
    axes.errorbar(rows["n"] * rule.beside, rows["rate"], reach, elinewidth=0.8, label=rule.name, **marks)
