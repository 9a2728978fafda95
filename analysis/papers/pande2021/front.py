"""The results of this paper's notebooks in three sentences for the README, each with its control."""

from collections.abc import Sequence
from typing import Protocol

import pandas as pd

from analysis.figures.words import listed
from analysis.papers.pande2021.sentences import changed_most, resting_attention

RULES = ["published", "audited", "controlled"]
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
        f"{resting_attention(masses, _described(encoder))} {SINK}",
        block_under_control(results.load_table("controls"), tasks),
        changed_most(changes),
    ]


SINK = "BERT-base parks it on [SEP], more than half of a middle layer's attention (Clark et al. 2019)."


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
