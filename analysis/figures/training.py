"""The course of fine-tuning runs: loss and scores over epochs."""

import itertools

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.colours import BLACK, BLUE, GREEN, ORANGE, VERMILION
from analysis.figures.theme import as_written, rows_of_axes

# Colour and marker of the first run, the second and on; then again from the first.
LOOKS = tuple(zip((BLACK, BLUE, VERMILION, GREEN, ORANGE), "os^Dv", strict=True))


def learnt(rows: pd.DataFrame) -> str:
    """How many runs of a task trained successfully; columns metric, constant, bag_of_words, finetuned, trained."""
    first, scores = rows.iloc[0], rows["finetuned"]
    reach = f"{scores.min():.3f}" + (f" to {scores.max():.3f}" if scores.max() > scores.min() else "")
    return (
        f"{rows['trained'].sum()} of {len(rows)} runs trained successfully. Fine-tuning reaches {reach} "
        f"({first['metric']}), a bag of words {first['bag_of_words']:.3f}, the constant answer {first['constant']:.3f}."
    )


@as_written
def training_curves(history: pd.DataFrame) -> Figure:
    """Every measure of the log over epochs, a panel per measure and a line per run.

    `history` has columns seed, epoch, measure, value (loss in nats, scores as proportions or correlations).
    """
    measures, runs = list(dict.fromkeys(history["measure"])), list(dict.fromkeys(history["seed"]))
    figure, grid = rows_of_axes(len(measures), len(measures), 1.7)
    for axes, measure in zip(grid, measures, strict=True):
        for run, (colour, marker) in zip(runs, itertools.cycle(LOOKS), strict=False):
            rows = history[(history["measure"] == measure) & (history["seed"] == run)]
            axes.plot(rows["epoch"], rows["value"], color=colour, marker=marker, markersize=3.5, linewidth=1,
                      markerfacecolor="white", label=f"seed {run}")  # fmt: skip
        axes.set(xlabel="epoch", ylabel=measure)
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.margins(y=0.1)
        axes.set_xlim(0, 1.05 * history["epoch"].max())
    figure.legend(*grid[0].get_legend_handles_labels(), ncols=6, loc="outside upper center")
    return figure
