"""Matching heads: heads that attend to the same word piece in the other text, and what they cost.

No paper of this study names this role. Heads are chosen on the encoder before fine-tuning; costs are measured after.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb, prod
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy import stats

from analysis.statistics.answers import METRICS
from analysis.statistics.claims import read_claims, sampled, tabled, untestable
from analysis.statistics.layers import drawn_layer_means, head_grid
from analysis.statistics.resampling import limits, resampled
from analysis.statistics.significance import role_table

CLAIMS = [each for each in read_claims(Path(__file__).with_name("claims.yaml")) if each.id.startswith("R")]

Head = tuple[int, int]  # layer and head, both 0-based
ROLES = ("match", "match_control", "match_own")
# Of the match score of a matching head, before fine-tuning; said before QQP and RTE were looked at.
THRESHOLD = 5.0
EDITS = ("edges off", "edges only", "as much elsewhere")
DRAWS = 499
COLUMNS = ["layer", "head", *ROLES, "low", "high", "n", "status", "assigned"]


def matching_table(
    scores: xr.DataArray, tau: float | int = THRESHOLD, alpha: float = 0.05, minimum: int = 100, seed: int = 0
) -> pd.DataFrame:
    """The scores of every head for ROLES, and whether it matches: the columns COLUMNS.

    low, high: the 95 % t interval of the match score over sequences, simultaneous over heads. `assigned` is the
    controlled label: the match score exceeds that of the control, in the same sequences, by more than `tau` - 1, by the
    audited rule (see `role_table`), and its mean is above `tau`; NaN if too few pairs share a word.
    """
    match, control = (scores.sel(role=[name]) for name in ROLES[:2])
    excess = match.copy(data=match.values - control.values)
    table = role_table(excess, tau - 1, alpha, minimum, seed=seed)[
        ["layer", "head", "n", "status", "assigned_audited"]
    ]
    means = scores.mean("sequence").sel(role=[*ROLES]).to_dataset("role").to_dataframe().reset_index()
    found = table.merge(means[["layer", "head", *ROLES]], on=["layer", "head"])
    one, heads = match.squeeze("role", drop=True), len(found)
    error = (one.std("sequence", ddof=1) / np.sqrt(one.notnull().sum("sequence"))).to_series().to_numpy()
    reach = stats.t.ppf(1 - alpha / 2 / heads, found["n"].clip(lower=2) - 1) * error
    above = (found["assigned_audited"] & (found["match"] > tau)).mask(found["assigned_audited"].isna())
    ends = {"low": found["match"] - reach, "high": found["match"] + reach}
    return found.assign(assigned=above, **ends)[COLUMNS]


def costs(logits: xr.DataArray, labels: Int[np.ndarray, " sequence"]) -> Float[np.ndarray, "sequence head"]:
    """The change of the loss (nats) of every sequence without each head; `logits` as `predict` gives them."""
    values = logits.transpose("intervention", "sequence", "class").values
    losses = METRICS["loss"].columns(values, labels)[..., 0]
    return (losses[1:] - losses[0]).T


def lead(
    costs: Float[np.ndarray, "sequence head"],
    own: Bool[np.ndarray, " head"],
    draws: int = DRAWS,
    seed: int = 0,
) -> Float[np.ndarray, " replicate"]:
    """Mean cost of some heads minus the highest cost of all others: the sample, then sequences drawn anew (nats)."""
    n = len(costs)
    means = resampled(n, draws, seed) @ costs / n
    return means[:, own].mean(axis=1) - means[:, ~own].max(axis=1)


def exact_p(
    costs: Float[np.ndarray, "layer head"], heads: Sequence[Head], most: int = 200_000, seed: int = 0
) -> tuple[float, int]:
    """The share of sets of as many heads from the same layers whose summed cost is at least that of `heads`.

    It is exact, with the number of sets, up to `most` sets; else it comes from so many random sets.
    """
    layers, counts = np.unique([layer for layer, _ in heads], return_counts=True)
    observed = sum(costs[head] for head in heads)
    sizes = [comb(costs.shape[1], int(count)) for count in counts]
    if prod(sizes) <= most:
        sums = np.zeros(1)
        for layer, count in zip(layers, counts, strict=True):
            own = [sum(chosen) for chosen in combinations(costs[layer].tolist(), int(count))]
            sums = (sums[:, None] + own).ravel()
        return float((sums >= observed - 1e-12).mean()), len(sums)
    rng = np.random.default_rng(seed)
    drawn = sum(
        rng.permuted(np.tile(costs[layer], (most // 20, 1)), axis=1)[:, :count].sum(axis=1)
        for layer, count in zip(layers, counts, strict=True)
    )
    return float((1 + (drawn >= observed - 1e-12).sum()) / (1 + len(drawn))), len(drawn)


def by_group(
    changes: Float[np.ndarray, " sequence"],
    groups: Mapping[str, Bool[np.ndarray, " sequence"]],
    seed: int = 0,
) -> pd.DataFrame:
    """The mean change in groups of sequences with its 95 % percentile interval: group, n, mean, low, high."""
    rows = []
    for name, chosen in groups.items():
        values = changes[chosen]
        mean, ends = np.nan, (np.nan, np.nan)
        if len(values):
            means = resampled(len(values), DRAWS, seed) @ values / len(values)
            mean, ends = means[0], limits(means) if len(values) > 1 else ends
        rows.append((name, len(values), mean, *ends))
    return pd.DataFrame(rows, columns=["group", "n", "mean", "low", "high"])


def names_of(heads: Sequence[Head]) -> str:
    """Heads as text, "1-1, 2-9"."""
    return ", ".join(f"{layer}-{head}" for layer, head in sorted(heads)) or "none"


def top(scores: Float[np.ndarray, " head"], count: int) -> Bool[np.ndarray, " head"]:
    """The `count` heads with the highest scores, of equal ones the first; missing scores come last."""
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
    return np.isin(np.arange(len(scores)), order[:count])


def frames(
    heads: pd.DataFrame,
    own: Sequence[Head],
    costs: Mapping[str, Float[np.ndarray, "sequence head"]],
    edges: Mapping[str, Float[np.ndarray, "edit sequence"]],
    roles: Mapping[str, pd.DataFrame],
    pairs: Sequence[str],
) -> dict[str, pd.DataFrame]:
    """The frame of every claim R1 to R6, by its id (see `analysis.statistics.claims`).

    `heads` is the table of `matching_table` with task and state, `own` the matching heads. `costs` holds by task the
    mean over the trained runs of `costs`; `edges`, by pair task, the changes of the loss with the matching heads' edges
    off, as much taken elsewhere, and the heads off. `roles` holds by task the scores (layer, head, role, mean) before
    fine-tuning; `pairs` names the tasks with two texts.
    """
    before, untrained = (heads[heads["state"] == state] for state in ("pretrained", "untrained"))
    chosen = _mask(heads, own)
    of_pairs = {task: each for task, each in costs.items() if task in pairs}
    singles = {task: each for task, each in costs.items() if task not in pairs}
    others = {
        f"{role} in {task}": lead(each, top(part.sort_values(["layer", "head"])["mean"].to_numpy(), len(own)))
        for task, each in of_pairs.items()
        for role, part in roles[task].groupby("role", sort=False)
        if role != "match" and len(own) and part["mean"].notna().any()
    }
    return {
        "R1": _few(before, untrained),
        "R2": _largest(before, untrained),
        "R3": _leading(of_pairs, chosen, before),
        "R4": _leading(singles, chosen),
        "R5": _carried(edges) if len(own) else untestable("no head matches"),
        "R6": _sampled(others, of_pairs),
    }


def _mask(heads: pd.DataFrame, own: Sequence[Head]) -> Bool[np.ndarray, " head"]:
    places = heads[["layer", "head"]].drop_duplicates().sort_values(["layer", "head"])
    return np.array([place in {*own} for place in places.itertuples(index=False, name=None)])


def _sampled(
    draws: Mapping[str, Float[np.ndarray, " replicate"]],
    costs: Mapping[str, Float[np.ndarray, "sequence head"]],
    control: Mapping[str, float] | None = None,
    note: str = "",
) -> pd.DataFrame:
    if not draws:
        return untestable(note or "no head matches, or no run has learnt such a task")
    return sampled(draws, min(map(len, costs.values())), control=control, note=note)


def _few(before: pd.DataFrame, untrained: pd.DataFrame) -> pd.DataFrame:
    """R1: the share of heads that match before fine-tuning, by pair task; the control is the untrained encoder."""
    parts = {
        task: part for task, part in before.groupby("task", sort=False) if part["assigned"].notna().all()
    }
    if not parts:
        return untestable("too few pairs share a word")
    shares = {
        task: drawn_layer_means(head_grid(part.astype({"assigned": float}), "assigned")).mean(axis=1)
        for task, part in parts.items()
    }
    control = {task: part["assigned"].mean() for task, part in untrained.groupby("task", sort=False)}
    return sampled(shares, len(next(iter(parts.values()))), control=control)


def _largest(before: pd.DataFrame, untrained: pd.DataFrame) -> pd.DataFrame:
    """R2: the largest match score before fine-tuning, by pair task; its high end is that of any head."""
    if before.empty:
        return untestable("no pairs")
    without = untrained.groupby("task")["match"].max()
    rows = []
    for task, part in before.groupby("task", sort=False):
        best = part.loc[part["match"].idxmax()]
        ends = best["match"], best["low"], part["high"].max(), best["n"], without.get(task, np.nan)
        rows.append((f"{task}, head {best['layer']}-{best['head']}", *ends))
    found = pd.DataFrame(rows, columns=["unit", "match", "low", "high", "n", "untrained"])
    return tabled(found, "unit", "match", control="untrained")


def _leading(
    costs: Mapping[str, Float[np.ndarray, "sequence head"]],
    own: Bool[np.ndarray, " head"],
    before: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """R3, R4: by task, what the matching heads cost beyond the costliest other head.

    The control takes as many heads that attend most to the other words of the other text.
    """
    if not own.any():
        return untestable("no head matches")
    draws = {task: lead(each, own) for task, each in costs.items()}
    control, told = {}, []
    for task, each in costs.items():
        ranks = stats.rankdata(-each.mean(axis=0))[own].astype(int)
        told.append(f"ranks {', '.join(map(str, sorted(ranks)))} of {len(own)} in {task}")
        if before is not None:
            part = before[before["task"] == task].sort_values(["layer", "head"])
            control[task] = lead(each, top(part["match_control"].to_numpy(), int(own.sum())))[0]
    return _sampled(draws, costs, control or None, "; ".join(told))


def _carried(edges: Mapping[str, Float[np.ndarray, "edit sequence"]], seed: int = 0) -> pd.DataFrame:
    """R5: by pair task, what the heads cost without their matching edges over what they cost when they are off.

    Tasks in which the heads do not surely cost something are left out. The control takes as much attention elsewhere.
    """
    draws, control = {}, {}
    for task, changes in edges.items():
        n = changes.shape[1]
        off, elsewhere, whole = (resampled(n, DRAWS, seed) @ changes.T / n).T
        if limits(whole)[0] > 0:  # a share of no cost is no number
            draws[task], control[task] = off / whole, float(elsewhere[0] / whole[0])
    note = "" if draws else "the heads cost nothing in any pair task"
    return _sampled(draws, {task: each.T for task, each in edges.items()}, control, note)
