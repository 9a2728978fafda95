"""What the figures show, in sentences made from the tables."""

import numpy as np
import pandas as pd

from analysis.figures.words import listed
from analysis.papers.kovaleva2019.names import (
    CLS,
    HETEROGENEOUS,
    LINGUISTIC,
    SEP,
)
from analysis.papers.kovaleva2019.quality import macro_f1
from analysis.texts.tasks import task_named


def labelling(quality: pd.DataFrame, chosen: str) -> str:
    """Macro-F1 of the labellers, and the labeller in use."""
    values = macro_f1(quality)
    told = [
        f"the {labeller} {listed(f'{value:.2f} on {name} maps' for name, value in row.items())}"
        for labeller, row in values.iterrows()
    ]
    return f"Macro-F1: {'; '.join(told)}. Used from here on: the {chosen}."


def shares(table: pd.DataFrame) -> str:
    """The heterogeneous share of each task, and the largest change of any share by fine-tuning."""
    wide = table.pivot(index=["task", "pattern"], columns="state", values="share")
    latest = wide["finetuned" if "finetuned" in wide else "pretrained"]
    found = listed(
        f"{latest[task, HETEROGENEOUS]:.0%} of the maps of {task}" for task in dict.fromkeys(table["task"])
    )
    text = f"Heterogeneous are {found}; in BERT-base the article finds 32% for mrpc and 61% for qqp."
    if "finetuned" in wide:
        moved = 100 * (wide["finetuned"] - wide["pretrained"])
        task, pattern = moved.abs().idxmax()
        text += f" Fine-tuning moves no share by more than {abs(moved[task, pattern]):.1f} points ({pattern}, {task})."
    return text


def links(table: pd.DataFrame, alpha: float = 0.05) -> str:
    """For each direction, all pairs: the heads beyond the 99th percentile, and those above their distance control."""
    told = []
    for direction, part in table[table["mode"] == "all_pairs"].groupby("direction", sort=False):
        beyond = part[part["mean"] > part["mean"].quantile(0.99)]
        names = listed(f"{row.layer}-{row.head} ({row.mean:.2f})" for row in beyond.itertuples())
        above = int((part["p_by"] < alpha).sum())
        told.append(
            f"{direction.replace('_', ' ')}: {names} beyond the 99th percentile of the means, and {above} of "
            f"{len(part)} heads above what they give pairs at the same distance"
        )
    beyond = "Some heads lie beyond a percentile by its definition; the control is what counts."
    return f"From {'; from '.join(told)}. {beyond}"


def separators(table: pd.DataFrame) -> str:
    """The layers that attend most to [CLS] and to [SEP], before fine-tuning."""
    rows = table[(table["mode"] == "aligned") & (table["state"] == "pretrained")]
    told = []
    for feature in (CLS, SEP):
        means = rows[rows["feature"] == feature].groupby("layer")["mean"].mean()
        told.append(
            f"{feature} gets most in layer {means.idxmax()} ({means.max():.0%}; layer mean over the tasks)"
        )
    return f"Before fine-tuning {listed(told)}."


def gains(table: pd.DataFrame) -> str:
    """The largest gain of a linguistic feature by fine-tuning, next to attention to [CLS] and [SEP]."""
    means = _feature_means(table)
    if "finetuned" not in means:
        return "No fine-tuned state was read."
    change = (means["finetuned"] - means["pretrained"]).unstack("feature")[list(LINGUISTIC)]
    task, feature = change.stack().idxmax()
    special = means["pretrained"].unstack("feature")[[CLS, SEP]].mean()
    return (
        f"The largest gain is that of {feature} in {task}, {100 * change.loc[task, feature]:+.1f} points of attention "
        f"(mean over the heads), where [CLS] has {special[CLS]:.0%} and [SEP] {special[SEP]:.0%} before fine-tuning."
    )


def _feature_means(table: pd.DataFrame) -> pd.DataFrame:
    rows = table[table["mode"] == "aligned"]
    return rows.groupby(["task", "feature", "state"])["mean"].mean().unstack("state")


def last_row(table: pd.DataFrame) -> str:
    """What [CLS] of the last layer attends to most, by task."""
    latest = table[table["state"] == table["state"].iloc[-1]]
    means = latest.groupby(["task", "feature"], sort=False)["mean"].mean().unstack("feature")
    told = [f"{row.idxmax()} in {task} ({row.max():.2f})" for task, row in means.iterrows()]
    return f"[CLS] of the last layer attends most to {listed(told)}, mean over its heads."


def verbs(table: pd.DataFrame, alpha: float = 0.05) -> str:
    """The head with most attention in each direction, next to the same distance, and how many heads are above that."""
    rows = table[table["state"] == "pretrained"]
    told = []
    for link, part in rows.groupby("link", sort=False):
        means = part.groupby(["layer", "head"])[["mean", "control"]].mean()
        layer, head = means["mean"].idxmax()
        mean, control = means.loc[(layer, head)]
        above = part[(part["p_by"] < alpha) & (part["low"] > 0)].groupby("task").size()
        told.append(
            f"{link}: head {layer}-{head} gives {mean:.2f}, and {control:.2f} to words at the same distance; "
            f"{_range(above.reindex(part['task'].unique(), fill_value=0))} heads of a task are above that control"
        )
    return f"{'. '.join(text[0].upper() + text[1:] for text in told)}."


def _range(counts: pd.Series) -> str:
    low, high = int(counts.min()), int(counts.max())
    return str(low) if low == high else f"{low} to {high}"


def similarity(table: pd.DataFrame) -> str:
    """The layers whose maps fine-tuning changes most, by task."""
    rows = table[table["padding"] == "cropped"]
    means = rows.groupby(["task", "layer"], sort=False)["mean"].mean().unstack("layer")
    least = means.columns.to_numpy()[np.argsort(means.to_numpy(), axis=1)[:, :2]]
    told = [
        f"{listed(sorted(layers.tolist()))} in {task}"
        for task, layers in zip(means.index, least, strict=True)
    ]
    return f"The two layers that change most are {listed(told)} (of {means.shape[1]}, counted from 0)."


def starts(table: pd.DataFrame) -> str:
    """The first metric of each task by start, mean over the seeds."""
    told = []
    for task, part in table.groupby("task", sort=False):
        metric = task_named(task).metrics[0]
        first = part[part["metric"] == metric]
        means = first.groupby("start", sort=False)["value"].mean()
        scores = ", ".join(f"{value:.2f} {start}" for start, value in means.items())
        told.append(f"{task} ({metric}; constant {first['constant'].iloc[0]:.2f}): {scores}")
    return f"{'. '.join(told)}."


def disabled(rises: pd.DataFrame) -> str:
    """How many heads raise each score, how many do so by chance, and the smallest effect that the test detects."""
    rows = rises[rises["unit"] == "head"].drop_duplicates("task")
    told = [
        f"in {row.task} {row.raised} of {row.variants} heads raise the {row.metric}, where chance gives up to "
        f"{row.raised_by_chance:.0f}, and {row.beyond} raise it beyond chance "
        f"({_standing_out(row.raised, row.rise, row.largest)}a loss of {100 * row.least:.1f} points is the least that "
        "a single test could find)"
        for row in rows.itertuples()
    ]
    text = f"{'; '.join(told)}."
    return text[0].upper() + text[1:]


def _standing_out(raised: int, rise: float, head: str) -> str:
    """The rise that stands out most from chance; nothing if no head raises the score."""
    return (
        f"the rise that stands out most from chance is {100 * rise:+.1f} points, head {head}; "
        if raised
        else ""
    )


def layers(table: pd.DataFrame) -> str:
    """The layers that cost most and least when disabled, by task."""
    rows = table[table["unit"] == "layer"]
    told = []
    for task, part in rows.groupby("task", sort=False):
        means = part[part["metric"] == part["metric"].iloc[0]].groupby("layer")["change"].mean()
        told.append(
            f"{task} loses most for layer {means.idxmin()} ({100 * means.min():+.1f} points) and least for "
            f"layer {means.idxmax()} ({100 * means.max():+.1f})"
        )
    return f"Without one layer: {'; '.join(told)}, mean over the runs."
