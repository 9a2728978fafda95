"""The course of fine-tuning runs: loss and scores over epochs."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.lines import curves


def learnt(rows: pd.DataFrame) -> str:
    """How many runs of a task trained successfully; columns metric, constant, bag_of_words, finetuned, trained."""
    first, scores = rows.iloc[0], rows["finetuned"]
    reach = f"{scores.min():.3f}" + (f" to {scores.max():.3f}" if scores.max() > scores.min() else "")
    return (
        f"{rows['trained'].sum()} of {len(rows)} runs trained successfully. Fine-tuning reaches {reach} "
        f"({first['metric']}), a bag of words {first['bag_of_words']:.3f}, the constant answer {first['constant']:.3f}."
    )


def training_curves(history: pd.DataFrame) -> Figure:
    """Every measure of the log over epochs, a panel per measure and a line per run.

    `history` has columns seed, epoch, measure, value (loss in nats, scores as proportions or correlations).
    """
    units = {
        "training loss": "training loss (nats, or squared error)",
        "accuracy": "dev accuracy (proportion)",
        "f1": "dev F1",
    }
    runs = history.assign(
        run="seed " + history["seed"].astype(str), measure=history["measure"].replace(units)
    )
    grid = curves(runs, "epoch", "value", series="run", column="measure", height=1.9, sharey=False)
    grid.set(xlim=(0.8 * history["epoch"].min(), 1.05 * history["epoch"].max())).set_axis_labels("epoch", "")
    for axes in grid.axes.flat:
        axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    return grid.figure
