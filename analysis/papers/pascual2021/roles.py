"""Roles and patterns on every map: which heads keep them, mean scores, mass at each offset and on special tokens."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float

from analysis.papers.pascual2021.measures import ABSENT, ATTENTION, GLOBAL, LOST, PARTLY, PERSISTS
from analysis.scores.map_store import MapStore
from analysis.statistics.judge import NOT_APPLICABLE
from analysis.statistics.resampling import Clusters, bootstrap, counted, limits
from analysis.statistics.significance import published_labels, quiet, t_test

REACH = 10  # offsets on either side
SAME = 1e-6  # masses count as equal if they differ by less
TARGETS = {"[CLS]": "cls", "[SEP]": "sep"}

Labels = Bool[np.ndarray, "replicate head"]
SURVIVAL = ["role", "map", "heads", "kappa", "low", "high"]


def labels(
    scores: Float[np.ndarray, "sequence head"], tau: float, alpha: float, resamples: int, seed: int
) -> Labels:
    """Published labels of every head, on the sequences and then on resamples of them; NaN sequences are left out.

    With the same seed, all maps have the same resamples. With fewer than two sequences, no head has a role.
    """
    present = scores[np.isfinite(scores).all(axis=1)]
    if len(present) < 2:
        return np.zeros((1 + resamples, scores.shape[1]), bool)
    sums, units = Clusters.of(present), len(present)
    drawn = np.random.default_rng(seed).integers(units, size=(resamples, units))
    counts = np.concatenate([np.ones((1, units), int), counted(drawn, units)])
    mean, _, sd = sums.of_scores(counts)
    test = t_test(np.full(mean.shape, units), mean, sd, tau)
    return published_labels(test, tau, alpha) == 1


def kappa(first: Labels, second: Labels) -> Float[np.ndarray, " replicate"]:
    """Cohen's kappa of two labellings of the same heads; NaN if both label all heads, or none."""
    both = [each.mean(axis=-1) for each in (first, second)]
    chance = both[0] * both[1] + (1 - both[0]) * (1 - both[1])
    with quiet():
        found = ((first == second).mean(axis=-1) - chance) / (1 - chance)
    return np.where(chance < 1, found.round(12), np.nan)  # so that 0 has no rounding error


def survival_table(
    scores: Mapping[str, xr.DataArray],
    tau: float = 3.0,
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """Heads with each role on each map, and their agreement with attention.

    Columns role, map, heads, kappa with low and high, heads_low, heads_high, n (sequences with the role). `scores` are
    composed, from the same sequences for all maps. Labels follow the published rule; intervals are 95 % percentile
    intervals over sequences, from the replicates that have a kappa. Values are missing if a role is undefined on a map
    or absent from all sequences; attention has no kappa with itself.
    """
    rows = []
    for role in scores[ATTENTION]["role"].values:
        of_map = {name: _flat(each, role) for name, each in scores.items()}
        found = {name: labels(each, tau, alpha, resamples, seed) for name, each in of_map.items()}
        for name, each in found.items():
            n = int(np.isfinite(of_map[name]).all(axis=1).sum())
            agreement = kappa(found[ATTENTION], each) if name != ATTENTION else np.full(len(each), np.nan)
            row = {"role": role, "map": name, "n": n, "kappa": agreement[0]}
            row |= dict(zip(("low", "high"), limits(agreement + 0 * agreement[0]), strict=True))
            heads = each.sum(axis=1)
            row |= {
                "heads": heads[0],
                **dict(zip(("heads_low", "heads_high"), limits(heads), strict=True)),
            }
            rows.append(row if n > 1 else {"role": role, "map": name, "n": n})
    columns = [*SURVIVAL, "heads_low", "heads_high", "n"]
    return pd.DataFrame(rows).reindex(columns=columns).astype({"heads": "Int64"})


def _flat(scores: xr.DataArray, role: str) -> Float[np.ndarray, "sequence head"]:
    found = scores.sel(role=role).transpose("sequence", "layer", "head").values
    return found.reshape(len(found), found.shape[1] * found.shape[2])


def persistence_table(
    scores: Mapping[str, xr.DataArray],
    tau: float = 3.0,
    alpha: float = 0.05,
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """Heads of each layer with each pattern on attention, on attribution and on both, and a verdict per pattern.

    Columns pattern, layer, attention, attribution, kept (heads), weakest (heads in the layer that has fewest on
    attribution) with its percentile interval low, high over sequences, and verdict: a pattern persists if every layer
    has a head with it on attribution. `scores` hold patterns as roles (see `with_patterns`).
    """
    parts = []
    layers, heads = (scores[ATTENTION].sizes[name] for name in ("layer", "head"))
    for pattern in scores[ATTENTION]["role"].values:
        flat = [_flat(scores[name], pattern) for name in (ATTENTION, GLOBAL)]
        on, still = (labels(each, tau, alpha, resamples, seed).reshape(-1, layers, heads) for each in flat)
        weakest = still.sum(axis=2).min(axis=1)
        low, high = limits(weakest)
        tested = np.isfinite(flat[0]).all(axis=1).sum() > 1
        part = pd.DataFrame({"pattern": pattern, "layer": range(layers), "attention": on[0].sum(axis=1)})
        part = part.assign(attribution=still[0].sum(axis=1), kept=(on[0] & still[0]).sum(axis=1))
        parts.append(
            part.assign(weakest=weakest[0], low=low, high=high, verdict=_verdict(on[0], still[0], tested))
        )
    return pd.concat(parts, ignore_index=True)


def _verdict(on: Bool[np.ndarray, "layer head"], still: Bool[np.ndarray, "layer head"], tested: bool) -> str:
    """Whether a pattern persists on attribution."""
    of_layers = still.any(axis=1)
    if not tested:
        return NOT_APPLICABLE
    if of_layers.any():
        return PERSISTS if of_layers.all() else PARTLY
    return LOST if on.any() else ABSENT


def offset_profiles(kept: Mapping[str, MapStore], reach: int = REACH) -> pd.DataFrame:
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
