"""The results of this paper's notebooks in three sentences for the README, each with its control."""

from collections.abc import Sequence
from typing import Protocol

import pandas as pd

from analysis.figures.words import in_words, listed

RULES = ["published", "audited", "controlled"]
SPECIAL = {"cls": "[CLS]", "sep": "[SEP]"}
BERT_BASE = "bert-base"
SINK = "BERT-base parks it on [SEP], more than half of a middle layer's attention (Clark et al. 2019)."
CONTROLS = {
    "uniform": "heads with uniform attention",
    "random weights": "heads of an encoder with random weights",
}


class Tables(Protocol):
    """Where the tables are: the results of a profile."""

    def load_table(self, name: str) -> pd.DataFrame:
        """A table by name."""


def highlights(results: Tables) -> list[str]:
    """Where attention rests, how much of the block role is left under control, and which layer fine-tuning changes."""
    masses, encoder = results.load_table("masses"), results.load_table("claims")["encoder"].iloc[0]
    tasks = masses["task"].unique()
    changes = pd.concat([results.load_table(f"change-{task}").assign(task=task) for task in tasks])
    return [
        resting_attention(masses, encoder),
        block_under_control(results.load_table("controls"), tasks),
        changed_most(changes),
    ]


def resting_attention(masses: pd.DataFrame, encoder: str) -> str:
    """Whether attention rests on [CLS] or [SEP] before fine-tuning, and where BERT-base's does if this is another one.

    `masses` as saved by the notebook of changes; `encoder` is its name with or without a description.
    """
    rows = masses[masses["state"] == "pretrained"].groupby(["task", "layer"])[["cls", "sep"]].mean()
    parts = [
        f"{name} up to {rows[column].max():.0%} (layer {rows[column].idxmax()[1]}, {rows[column].idxmax()[0]})"
        for column, name in SPECIAL.items()
    ]
    said = (
        f"Before fine-tuning ({_described(encoder)}) heads park attention on {SPECIAL[rows.max().idxmax()]}: a layer "
        f"gives {listed(parts)} on average."
    )
    name = encoder.split(":")[0].split("/")[-1].lower()
    return said if name.startswith(BERT_BASE) else f"{said} {SINK}"


def changed_most(changes: pd.DataFrame) -> str:
    """Which layer changes most in how many tasks; `changes` has columns task, layer, difference."""
    sizes = (
        changes.assign(size=changes["difference"].abs()).groupby(["task", "layer"])["size"].mean().unstack()
    )
    tops = sizes.idxmax(axis=1)
    layer = tops.value_counts().index[0]
    there, elsewhere = sizes[layer].mean(), sizes.drop(columns=layer).mean(axis=None)
    return (
        f"Layer {layer} changes most in {in_words((tops == layer).sum())} of {in_words(len(tops))} tasks (mean change "
        f"{there:.2g} against {elsewhere:.2g} in the other layers)."
    )


def block_under_control(controls: pd.DataFrame, tasks: Sequence[str]) -> str:
    """How many heads, and how many control heads, have the block role by each rule; from `control_table`."""
    block = controls[controls["role"] == "block"]
    heads = block[(block["control"] == "heads") & (block["state"] == "finetuned") & block["task"].isin(tasks)]
    published, audited, controlled = heads[RULES].sum().astype(int)
    others = block[block["control"].isin(CONTROLS)].replace({"control": CONTROLS}).set_index("control")
    given = listed(f"{int(row['published'])} {name}" for name, row in others.iterrows())
    left = f"only {controlled} beat" if controlled else "none beats"
    return (
        f"The block role fails its control: over all tasks the published rule labels {published} heads and the audited "
        f"rule {audited}, but {left} a head that spreads rows of the same entropy evenly. On "
        f"{others['task'].iloc[0]} alone the published rule also labels {given}."
    )


def _described(encoder: str) -> str:
    """What an encoder is, without the name for loading it and the rest of the note."""
    return encoder.split(": ")[1] if ": " in encoder else encoder
