"""What the paper's figures draw: grids of heads, and attention to features over layers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.figures.colours import BLUE, GREEN, PURPLE, VERMILION
from analysis.figures.theme import as_written, rows_of_axes
from analysis.papers.kovaleva2019.names import CLS, NEGATION, SEP
from analysis.statistics.layers import head_grid

COLOURS = (BLUE, VERMILION, GREEN, PURPLE)
DASHES = {"pretrained": "--", "finetuned": "-"}
GROUPS = {
    "special tokens, punctuation": (CLS, SEP, "punctuation"),
    "parts of speech, negation": ("noun", "verb", "pronoun", NEGATION),
    "arguments of verbs": ("subject", "object"),
}


def head_panels(
    table: pd.DataFrame, value: str, by: Sequence[str]
) -> dict[str, Float[np.ndarray, "layer head"]]:
    """A column of a table as layers x heads for each combination of the columns `by`, which give the title."""
    groups = table.groupby([*by], sort=False)
    return {", ".join(map(str, names)): head_grid(rows, value) for names, rows in groups}


@as_written
def feature_lines(features: pd.DataFrame, bert_layers: pd.DataFrame, bert_features: pd.DataFrame) -> Figure:
    """Mean attention of a layer to each feature, at most four features a panel: mean and range over tasks.

    `features` is the table `kovaleva_features`; the others hold published values of BERT-base by layer and over all
    layers. BERT-base's layers are stretched to the depth of this encoder. Source: Kovaleva 2019, figure 6.
    """
    by_task = features.groupby(["feature", "state", "task", "layer"])["mean"].mean().unstack("layer")
    last = by_task.columns[-1]
    bert_layers = bert_layers[bert_layers["state"] == "pretrained"]
    depth = bert_layers["layer"] * last / bert_layers["layer"].max()
    figure, grid = rows_of_axes(len(GROUPS), 3, 2.1, 0.4)
    for axes, (title, names) in zip(grid, GROUPS.items(), strict=True):
        for name, colour in zip(names, COLOURS, strict=False):
            for state, dash in DASHES.items():
                rows = by_task.loc[(name, state)]
                axes.plot(rows.mean(), dash, color=colour, label=name if dash == "-" else None)
                axes.fill_between(rows.columns, rows.min(), rows.max(), color=colour, alpha=0.12, linewidth=0)
            bert = bert_layers["feature"] == name
            axes.plot(depth[bert], bert_layers["mean"][bert], "D:", color=colour, mfc="white", ms=3, lw=0.7)
            means = bert_features[bert_features["feature"] == name]
            axes.plot([last + 1] * len(means), means["pretrained"], "D", color=colour, mfc="white", ms=4)
            axes.plot([last + 1] * len(means), means["finetuned"], "D", color=colour, ms=4)
        axes.set(title=title, ylim=(0, None))
        ticks = np.arange(0, last + 1, max(1, last // 4))
        axes.set_xticks([*ticks, last + 1], [*ticks, "BERT"])
        axes.legend(fontsize=6.5)
    styles = [Line2D([], [], color="black", linestyle=dash, label=state) for state, dash in DASHES.items()]
    for state, face in zip(DASHES, ("white", "black"), strict=True):
        styles += [
            Line2D(
                [], [], color="black", linestyle="", marker="D", mfc=face, ms=4, label=f"BERT-base, {state}"
            )
        ]
    figure.legend(handles=styles, ncols=4, loc="outside upper center")
    figure.supxlabel(
        "layer (0-based; dotted: the 12 layers of BERT-base at equal depth; right: mean over its layers)"
    )
    figure.supylabel("mean attention")
    return figure
