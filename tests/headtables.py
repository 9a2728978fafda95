"""Tables of heads in the form of a study, with random numbers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

LAYERS, HEADS = 3, 4
ROLES = ("local", "nsubj", "delimiter", "block")
TASKS, STATES = ("mrpc", "sst-2"), ("pretrained", "finetuned")


def _heads_by(**keys: Sequence) -> pd.DataFrame:
    index = pd.MultiIndex.from_product(
        [*keys.values(), range(LAYERS), range(HEADS)], names=[*keys, "layer", "head"]
    )
    return index.to_frame(index=False)


def role_tables(
    tasks: Sequence[str] = TASKS, states: Sequence[str] = STATES, controlled: bool = False
) -> pd.DataFrame:
    """Role tables of random numbers with every kind of label; block is untestable in the last task."""
    table = _heads_by(task=tasks, state=states, role=ROLES)
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
    """Tables in the form of a study: heads by task and state, heads alone, pairs of heads, and claims."""
    heads = _heads_by()
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


def measure_tables() -> dict[str, pd.DataFrame]:
    """Tables of heads in the form of the papers on pruning, patterns and attribution, and an atlas of heads."""
    rng = np.random.default_rng(1)
    task, seeds = TASKS[:1], (0, 1, 2)
    off = _heads_by(task=task, seed=seeds, metric=("accuracy", "loss"))
    even = _heads_by(task=task, seed=(0,), unit=("head",), metric=("accuracy",))
    layer = even[even["head"] == 0].assign(unit="layer", head=np.nan)
    importance = _heads_by(task=task, seed=(0,), granularity=("head",), normalised=(True, False))
    patterns = _heads_by(task=task, state=STATES, pattern=("vertical", "diagonal", "block"))
    atlas = _heads_by(task=task, seed=seeds)
    numbers = {f"measure_{number}": rng.random(len(atlas)) for number in range(13)}
    statuses = ["untestable: no classifier", *["tested"] * (len(atlas) - 1)]
    gates = {"gate": [None, *range(1, len(atlas))], "gate_status": statuses}
    maps = {
        f"roles-{name}-{TASKS[0]}-{state}": role_tables(task, [state], True).drop(columns=["task", "state"])
        for name in ("attribution", "effective")
        for state in STATES
    }
    return {
        "michel_ablation": _changed(off, rng),
        "michel_importance": importance.assign(importance=rng.random(len(importance))),
        "kovaleva_disable": pd.concat([_changed(even, rng), _changed(layer, rng)], ignore_index=True),
        "kovaleva_pattern_heads": patterns.assign(share=np.tile([0.1, 0.6, 0.0], 2).repeat(LAYERS * HEADS)),
        "atlas": atlas.assign(**numbers, **gates),
        **maps,
    }


def _changed(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    change = rng.normal(0, 0.02, len(rows))
    interval = {"low": change - 0.01, "high": change + 0.01}
    return rows.assign(
        baseline=0.8, change=change, **interval, p=rng.random(len(rows)), p_by=rng.random(len(rows)) / 8
    )
