"""Which heads keep their role on another map: labels on resampled sequences, agreement (kappa), persistence."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float
from scipy import stats

from analysis.papers.pascual2021.names import ABSENT, ATTENTION, GLOBAL, LOST, PARTLY, PERSISTS, UNTESTABLE
from analysis.statistics.resampling import Clusters, counted
from analysis.statistics.significance import quiet

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
    mean, error, _ = sums.moments(counts)
    with quiet():
        p = stats.t.sf(np.where(error > 0, (mean - tau) / error, np.nan), units - 1)
    return (mean > tau) & (p < alpha)


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
            row |= dict(zip(("low", "high"), _ends(agreement[1:] + 0 * agreement[0]), strict=True))
            heads = each.sum(axis=1)
            row |= {
                "heads": heads[0],
                **dict(zip(("heads_low", "heads_high"), _ends(heads[1:]), strict=True)),
            }
            rows.append(row if n > 1 else {"role": role, "map": name, "n": n})
    columns = [*SURVIVAL, "heads_low", "heads_high", "n"]
    return pd.DataFrame(rows).reindex(columns=columns).astype({"heads": "Int64"})


def _flat(scores: xr.DataArray, role: str) -> Float[np.ndarray, "sequence head"]:
    found = scores.sel(role=role).transpose("sequence", "layer", "head").values
    return found.reshape(len(found), found.shape[1] * found.shape[2])


def _ends(draws: np.ndarray) -> tuple[float, float]:
    known = draws[np.isfinite(draws)]
    return tuple(np.quantile(known, [0.025, 0.975])) if len(known) else (np.nan, np.nan)


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
        low, high = _ends(weakest[1:])
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
        return UNTESTABLE
    if of_layers.any():
        return PERSISTS if of_layers.all() else PARTLY
    return LOST if on.any() else ABSENT
