"""The role table of the tests of figures."""

import numpy as np
import pandas as pd

LAYERS, HEADS = 3, 5
ROLES = ["local", "syntactic", "delimiter", "nsubj", "dobj", "amod", "advmod", "block", "cls", "sep", "match"]


def role_table() -> pd.DataFrame:
    """A role table of LAYERS x HEADS; head (1, 2) of every role and all of `block` cannot be tested."""
    rng = np.random.default_rng(0)
    rows = pd.MultiIndex.from_product([ROLES, range(LAYERS), range(HEADS)], names=["role", "layer", "head"])
    table = rows.to_frame(index=False)[["layer", "head", "role"]].assign(n=20, sd=1.0)
    table["mean"], table["p"] = rng.gamma(2, 2, len(table)), rng.random(len(table))
    untested = (table["layer"] == 1) & (table["head"] == 2) | (table["role"] == "block")
    table.loc[untested, ["mean", "p"]] = np.nan
    table["t"] = table["mean"] - 3
    table["assigned"] = (table["mean"] > 3).astype("boolean").mask(untested)
    return table[["layer", "head", "role", "n", "mean", "sd", "t", "p", "assigned"]]
