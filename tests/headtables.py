"""Tables of heads in the form of a study, with random numbers, and arrays of scores."""

from base64 import b64decode
from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

LAYERS, HEADS = 3, 4
ROLES = ("local", "nsubj", "delimiter", "block")
ALL_ROLES = "local syntactic delimiter nsubj dobj amod advmod block cls sep match".split()
TASKS, STATES = ("mrpc", "sst-2"), ("pretrained", "finetuned")


def heads_by(layers: int = LAYERS, heads: int = HEADS, **keys: Sequence) -> pd.DataFrame:
    """A row for every head under each combination of the keys."""
    keys |= {"layer": range(layers), "head": range(heads)}
    return pd.MultiIndex.from_product([*keys.values()], names=[*keys]).to_frame(index=False)


def role_tables(
    controlled: bool = False,
    tasks=TASKS,
    states=STATES,
    roles=ROLES,
    layers: int = LAYERS,
    heads: int = HEADS,
) -> pd.DataFrame:
    """Role tables of random numbers with every kind of label; block cannot be tested in the last task."""
    table = heads_by(layers, heads, task=tasks, state=states, role=roles)
    rng = np.random.default_rng(0)
    mean = rng.gamma(1.5, 3, len(table))
    table = table.assign(n=rng.integers(50, 60, len(table)), mean=mean, low=0.9 * mean, high=1.1 * mean)
    labels = pd.DataFrame(rng.random((len(table), 3)) < 0.5, columns=["a", "b", "c"]).astype("boolean")
    table = table.assign(assigned=labels["a"], assigned_corrected=labels["b"], status="tested")
    if controlled:
        table = table.assign(control="twin", control_mean=mean * rng.random(len(table)))
        table = table.assign(assigned_controlled=labels["c"])
    untested = (table["task"] == tasks[-1]) & (table["role"] == "block")
    table.loc[untested, ["mean", "low", "high", "assigned", "assigned_corrected"]] = pd.NA
    table.loc[untested, "n"], table.loc[untested, "status"] = 0, "not applicable: no sequence has the role"
    return table


def role_table() -> pd.DataFrame:
    """A role table of all roles; head (1, 2) of every role and all of `block` cannot be tested."""
    rng, table = np.random.default_rng(0), heads_by(role=ALL_ROLES)
    table = table.assign(n=20, sd=1.0, mean=rng.gamma(2, 2, len(table)), p=rng.random(len(table)))
    untested = (table["layer"] == 1) & (table["head"] == 2) | (table["role"] == "block")
    table.loc[untested, ["mean", "p"]] = np.nan
    return table.assign(t=table["mean"] - 3, assigned=(table["mean"] > 3).astype("boolean").mask(untested))


def unpacked_mask(text: str, length: int) -> np.ndarray:
    """The mask of a sequence of this length, from the text that `pack` made."""
    bits = np.unpackbits(np.frombuffer(b64decode(text), np.uint8), count=length * length)
    return bits.reshape(length, length).astype(bool)


def score_array(
    values: np.ndarray, roles: Sequence[str], arithmetic: str = "corrected", **of_sequences: Sequence
) -> xr.DataArray:
    """Scores (sequence, role, layer, head); the other coordinates have a value for every sequence."""
    sequences = [f"s{number}" for number in range(len(values))]
    layers, heads = map(range, values.shape[2:])
    axes = {"sequence": sequences, "role": [*roles], "layer": layers, "head": heads}
    others = {name: ("sequence", column) for name, column in of_sequences.items()}
    return xr.DataArray(values, axes | others, [*axes], attrs={"arithmetic": arithmetic})


def value_tables() -> dict[str, pd.DataFrame]:
    """Other numbers of heads: one of three runs in the first task, one of the encoder."""
    rng = np.random.default_rng(1)
    effect, norm = heads_by(task=TASKS[:1], seed=(0, 1, 2)), heads_by()
    return {
        "ablation effect": effect.assign(value=rng.normal(0, 0.02, len(effect))),
        "norm": norm.assign(value=rng.uniform(1, 2, len(norm))),
    }
