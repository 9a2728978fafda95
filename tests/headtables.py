"""Tables of heads as a study leaves them, with chance numbers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

LAYERS, HEADS = 3, 4
ROLES = ("local", "nsubj", "delimiter", "block")
TASKS, STATES = ("mrpc", "sst-2"), ("pretrained", "finetuned")


def role_tables(
    layers: int = LAYERS,
    heads: int = HEADS,
    tasks: Sequence[str] = TASKS,
    states: Sequence[str] = STATES,
    roles: Sequence[str] = ROLES,
    controlled: bool = False,
) -> pd.DataFrame:
    """Role tables of chance numbers with every kind of label; block is untestable in the last task."""
    keys = ["task", "state", "role", "layer", "head"]
    index = pd.MultiIndex.from_product([tasks, states, roles, range(layers), range(heads)], names=keys)
    table = index.to_frame(index=False)
    rng = np.random.default_rng(0)
    mean = rng.gamma(1.5, 3, len(table))
    table = table.assign(n=rng.integers(50, 60, len(table)), mean=mean, low=0.9 * mean, high=1.1 * mean)
    drawn = pd.DataFrame(rng.random((len(table), 3)) < 0.5, columns=["a", "b", "c"]).astype("boolean")
    table = table.assign(assigned=drawn["a"], assigned_audited=drawn["b"], status="tested")
    if controlled:
        table = table.assign(
            control="twin", control_share=rng.random(len(table)), assigned_controlled=drawn["c"]
        )
    lost = (table["task"] == tasks[-1]) & (table["role"] == "block")
    table.loc[lost, ["mean", "low", "high", "assigned", "assigned_audited"]] = pd.NA
    table.loc[lost, "n"], table.loc[lost, "status"] = 0, "untestable: no sequence has the role"
    return table


def other_tables() -> dict[str, pd.DataFrame]:
    """Tables as a study leaves them: of heads by task and state, of heads alone, of pairs of heads, of claims."""
    index = pd.MultiIndex.from_product([range(LAYERS), range(HEADS)], names=["layer", "head"])
    heads = index.to_frame(index=False)
    number = heads["layer"] * HEADS + heads["head"]
    masses = [heads.assign(task=task, state=state, cls=number / 100) for task in TASKS for state in STATES]
    verdicts = {"claim": ["C1: many heads", "C2: few"], "published": ["most " * 20, "few"]}
    return {
        "masses": pd.concat(masses, ignore_index=True),
        "importance-mrpc": heads.assign(drop=number / 1000),
        "distances": heads.assign(other_layer=0, other_head=1, distance=2.0),
        "layers": pd.DataFrame({"layer": [0], "heads": [3]}),
        "claims": pd.DataFrame(verdicts | {"estimate": [0.5, np.nan], "verdict": ["holds", "undecided"]}),
    }
