"""The results of this paper's notebooks in sentences for the README, each with its control."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from analysis.figures.words import in_words, listed

RULES = ["published", "audited", "controlled"]
SPECIAL = {"cls": "[CLS]", "sep": "[SEP]"}
BERT_BASE = "bert-base"
SINK = "BERT-base parks it on [SEP], more than half of a middle layer's attention (Clark et al. 2019)."
WEAK = ("delimiter", "cls", "sep")  # roles whose only control is a uniform head
CONTROLS = {
    "uniform": "heads with uniform attention",
    "random weights": "heads of an encoder with random weights",
}


def highlights(results: Any) -> list[str]:
    """Which labels are left under control, the block role beside its controls, and where attention rests."""
    masses, encoder = results.load_table("masses"), results.load_table("claims")["encoder"].iloc[0]
    tasks = masses["task"].unique()
    tables = [results.load_table(f"roles-{task}-finetuned") for task in tasks]
    return [
        surviving_labels(pd.concat(tables), len(tables)),
        block_under_control(results.load_table("controls"), tasks),
        resting_attention(masses, encoder),
    ]


def surviving_labels(roles: pd.DataFrame, tasks: int) -> str:
    """How many published labels of each role are left when a head must beat the role's control; from role tables."""
    labels = roles.groupby("role", sort=False)[["assigned", "assigned_controlled"]].sum().astype(int)
    told = [f"{role} {controlled} of {given}" for role, given, controlled in labels.itertuples() if given]
    strict = [text for text in told if text.split()[0] not in WEAK]
    weak = [
        f"{SPECIAL.get(role, role)} {labels.loc[role, 'assigned']}" for role in WEAK if role in labels.index
    ]
    return (
        f"Which roles survive a control? Over {in_words(tasks)} tasks, so many of the labels that the published rule "
        f"gives beat a control that cannot know the role: {listed(strict)}. The other labels ({listed(weak)}) have "
        "only a uniform head to beat, so they say little."
    )


def resting_attention(masses: pd.DataFrame, encoder: str) -> str:
    """Whether attention rests on [CLS] or [SEP] before fine-tuning, and where BERT-base's does if this is another one.

    `masses` as saved by the notebook of changes; `encoder` is its name with or without a description.
    """
    rows = masses[masses["state"] == "pretrained"].groupby(["task", "layer"])[["cls", "sep"]].mean()
    parts = [
        f"{name} up to {rows[column].max():.0%} (layer {rows[column].idxmax()[1]}, {rows[column].idxmax()[0]})"
        for column, name in SPECIAL.items()
    ]
    described = encoder.split(": ")[:2][-1]  # without the name for loading it and the rest of the note
    said = (
        f"Before fine-tuning ({described}) heads park attention on {SPECIAL[rows.max().idxmax()]}: a layer "
        f"gives {listed(parts)} on average."
    )
    name = encoder.split(":")[0].split("/")[-1].lower()
    return said if name.startswith(BERT_BASE) else f"{said} {SINK}"


def block_under_control(controls: pd.DataFrame, tasks: Sequence[str]) -> str:
    """How many heads, and how many control heads, have the block role by each rule; from `control_table`."""
    block = controls[controls["role"] == "block"]
    heads = block[(block["control"] == "heads") & (block["state"] == "finetuned") & block["task"].isin(tasks)]
    published, audited, controlled = heads[RULES].sum().astype(int)
    others = block[block["control"].isin(CONTROLS)].replace({"control": CONTROLS}).set_index("control")
    given = listed(f"{int(row['published'])} {name}" for name, row in others.iterrows())
    left = f"only {controlled} beat" if controlled else "none beats"
    return (
        f"Block fails it: the published rule labels {published} heads and the audited rule {audited}, but {left} a "
        f"head that spreads rows of the same entropy evenly. On {others['task'].iloc[0]} alone the published rule "
        f"also labels {given}."
    )
