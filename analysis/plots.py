"""Statistical figures: distributions, roles and changes per layer, attention mass, p-values (F3, F7-F9)."""

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

from analysis.theme import DOUBLE, LAYER, OTHER_MARKER, ROLE_MARKERS, SCORE, colour, in_order, luminance, panels

POOLED, STRONGEST = "all heads pooled", "head with the highest mean"
GROUP_COLOURS = {POOLED: "0.8", STRONGEST: colour("local")}
MASSES = {"sep": ("[SEP]", colour("sep"), "d"), "cls": ("[CLS]", colour("cls"), "*"), "other": ("other", "0.2", "o")}
STATE_LINES = {"pretrained": "--", "finetuned": "-"}


def score_distributions(scores: xr.DataArray, tau: float, title: str = "") -> Figure:
    """Scores of single sequences per role (left), and how skewed they are in each head (right).

    Left: boxes of quantiles halving outwards from the median (letter values), pooled over all heads and for the head
    with the highest mean, whose layer and head stand beside the role; a diamond marks each mean; dashes mark `tau`.
    The axis is logarithmic and ends at the 1st percentile. Right: sample skewness of every head over sequences
    (0 = symmetric); whiskers span all heads. Source: Pande 2021, "a bare average misleads".
    """
    frame = scores.rename("score").to_series().dropna().reset_index()
    roles = in_order(frame["role"])
    means = frame.groupby(["role", "layer", "head"])["score"].agg(["mean", "skew"])
    strongest = means["mean"].groupby("role").idxmax()
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(DOUBLE, 0.33 * len(roles) + 0.9), width_ratios=(5, 3), sharey=True, layout="constrained"
    )
    _letter_values(left, _pooled_and_strongest(frame, strongest), roles)
    left.axvline(tau, color="black", linestyle="--", linewidth=0.8)
    names = [f"{role} ({strongest[role][1]}, {strongest[role][2]})" for role in roles]
    left.set(xlabel=SCORE, ylabel="role (layer, head with the highest mean)")
    left.set_yticks(range(len(roles)), labels=names)
    sns.boxplot(means.reset_index(), x="skew", y="role", order=roles, hue="role", palette=colour_map(roles),
                legend=False, whis=(0, 100), width=0.5, linewidth=0.7, ax=right)  # fmt: skip
    right.axvline(0, color="0.5", linewidth=0.8, zorder=0)
    right.set(xlabel="skewness over sequences, one value per head", ylabel="")
    _legend_distributions(figure, tau)
    figure.suptitle(title) if title else None
    return figure


def layer_profile(counts: pd.DataFrame, title: str = "") -> Figure:
    """Heads of each role per layer: a row per role, a column per task; bars for the last state, a line for the first.

    `counts` has columns task, state, layer, role, heads; role may also be `multi-functional` or `none`.
    A role without rows for a task reads "not tested". Source: Pande 2021, Q2.
    """
    figure, cells = _role_task_grid(counts)
    states = [state for state in STATE_LINES if state in set(counts["state"])]
    for (role, task), axes in cells.items():
        rows = counts[(counts["role"] == role) & (counts["task"] == task)]
        if rows["heads"].isna().all():
            _not_tested(axes)
            continue
        *earlier, last = (rows[rows["state"] == state].sort_values("layer") for state in states)
        axes.bar(last["layer"], last["heads"].astype(float), width=0.8, **_fill(role))
        for other in earlier:
            axes.step(other["layer"], other["heads"].astype(float), where="mid", color="black", linewidth=0.8)
    _whole_numbers(cells.values(), counts["layer"].max() + 1)
    figure.supylabel("number of heads")
    figure.suptitle(title) if title else None
    return figure
