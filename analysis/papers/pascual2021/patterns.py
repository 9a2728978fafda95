"""Patterns of heads on every map: mean scores, attention at each offset, and mass on special tokens."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from analysis.papers.pascual2021.names import ATTENTION
from analysis.scores.kept import Kept
from analysis.statistics.resampling import bootstrap

REACH = 10  # offsets on either side
SAME = 1e-6  # masses count as equal if they differ by less
TARGETS = {"[CLS]": "cls", "[SEP]": "sep"}


def offset_profiles(kept: Mapping[str, Kept], reach: int = REACH) -> pd.DataFrame:
    """Mean mass at every offset over rows that have such a token, heads and sequences: map, layer, offset, mass."""
    parts = []
    for name, each in kept.items():
        found = np.array([at_offsets(each.maps[layout.id].cpu().numpy(), reach) for layout in each.sequences])
        mass = np.nanmean(found, axis=(0, 2))
        table = (
            pd.DataFrame(mass)
            .rename_axis("layer")
            .reset_index()
            .melt("layer", var_name="offset", value_name="mass")
        )
        parts.append(table.assign(map=name, offset=table["offset"].astype(int) - reach))
    return pd.concat(parts, ignore_index=True)[["map", "layer", "offset", "mass"]]


def at_offsets(
    maps: Float[np.ndarray, "*head token token"], reach: int = REACH
) -> Float[np.ndarray, "*head offset"]:
    """Mean of every diagonal from -`reach` to `reach`; NaN beyond the sequence."""
    tokens = maps.shape[-1]
    means = [
        np.diagonal(maps, offset, -2, -1).mean(-1)
        if abs(offset) < tokens
        else np.full(maps.shape[:-2], np.nan)
        for offset in range(-reach, reach + 1)
    ]
    return np.stack(means, axis=-1)


def pattern_table(scores: Mapping[str, xr.DataArray]) -> pd.DataFrame:
    """Mean score of every head for each pattern, a column per map: pattern, layer, head, ...

    `scores` hold patterns as roles (see `with_patterns`).
    """
    means = {name: each.mean("sequence").reset_coords(drop=True).to_series() for name, each in scores.items()}
    return pd.DataFrame(means).rename_axis(index={"role": "pattern"}).reset_index()


def sink_table(scores: Mapping[str, xr.DataArray], resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """Mass on [CLS] and on [SEP] in each map, mean over rows, heads and sequences, with BCa intervals over sequences.

    Columns map, target, layer, mass, low, high, n, changed (the share of sequences in which the mass differs from that
    in attention). Rows without a layer are means over all heads.
    """
    parts = []
    for (name, each), (target, role) in product(scores.items(), TARGETS.items()):
        masses = _masses(each, role)
        changed = (np.abs(masses - _masses(scores[ATTENTION], role)) > SAME).any(axis=1).mean()
        interval = bootstrap(masses, 0.0, None, resamples=resamples, seed=seed)
        part = pd.DataFrame({"map": name, "target": target, "layer": [np.nan, *each["layer"].values]})
        part = part.assign(mass=masses.mean(axis=0), low=interval.low, high=interval.high, n=len(masses))
        parts.append(part.assign(changed=changed))
    return pd.concat(parts, ignore_index=True)


def _masses(scores: xr.DataArray, role: str) -> Float[np.ndarray, "sequence column"]:
    """The mean mass on the role's tokens of every sequence, over all heads and over those of each layer."""
    marks = scores["separators"] if role == "sep" else 1
    masses = (
        (scores.sel(role=role) * marks / scores["tokens"]).mean("head").transpose("sequence", "layer").values
    )
    return np.concatenate([masses.mean(axis=1, keepdims=True), masses], axis=1)
