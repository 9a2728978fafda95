"""Do role scores predict how much a head matters? Slopes within layers, and a test that permutes heads there."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy import linalg

from analysis.roles import Head
from analysis.statistics.significance import adjust
from analysis.synthesis.agreement import RUN, RUN_HEAD

BATCH = 2000  # permutations at a time, to limit memory
NO_SPREAD = 1e-9  # a standardised sum of squares below this share of the heads is rounding
ALL_ROLES = "all roles"
RAW, RANKS, WITHOUT = VARIANTS = ("as measured", "ranks", "without the matching heads")
REGRESSION_COLUMNS = [
    "variant",
    "model",
    "term",
    "runs",
    "heads",
    "estimate",
    "low",
    "high",
    "share",
    "share_shuffled",
]
REGRESSION_COLUMNS += ["p_permutation", "p_holm", "r2_left_out", "status"]
LOST = "not applicable: no run has the change and the scores of all heads"
CONSTANT = "not applicable: scores or changes are the same for all heads of each layer"


class Grid(NamedTuple):
    """Changes and role scores of all heads in every run, centred within layer and run; 0 for heads that are not
    `included`.
    """

    change: Float[np.ndarray, "run layer head"]
    scores: Float[np.ndarray, "role run layer head"]
    included: Bool[np.ndarray, "layer head"]
    tasks: tuple[str, ...]


def standardised(
    table: pd.DataFrame, response: str, roles: Sequence[str], ranks: bool = False
) -> pd.DataFrame:
    """Rows of complete runs: the response in standard deviations of its run, role scores as z of log(1 + score).

    `table` has task, seed, layer, head, the response and a mean score per role. A run in which a head has no response
    or no score is left out. Tasks get equal weight, though single heads change some far more than others. With `ranks`,
    response and scores are ranks within the run.
    """
    measured = table[[response, *roles]].notna().all(axis=1)
    complete = measured.groupby([table[key] for key in RUN]).transform("all")
    rows = table.loc[complete, [*RUN_HEAD, response, *roles]].reset_index(drop=True)
    if rows.empty:
        return rows
    run = [rows[key] for key in RUN]
    values = pd.concat([rows[response].rename("change"), np.log1p(rows[[*roles]])], axis=1)
    if ranks:
        values = values.groupby(run).rank()
    by_run = values.groupby(run)
    z = (values - by_run.transform("mean")) / by_run.transform("std").replace(0, 1)
    return rows[RUN_HEAD].join(z)


def gridded(table: pd.DataFrame, roles: Sequence[str], without: Collection[Head] = ()) -> Grid:
    """The table of `standardised` as arrays; the heads `without` take no part."""
    shape = table.groupby(RUN).ngroups, table["layer"].nunique(), table["head"].nunique()
    ordered = table.sort_values(RUN_HEAD)
    change, *scores = ordered[["change", *roles]].to_numpy(float).T.reshape(1 + len(roles), *shape)
    included = np.ones(shape[1:], bool)
    for head in without:
        included[head] = False
    tasks = tuple(ordered["task"].to_numpy().reshape(shape)[:, 0, 0].astype(str))
    centred_scores = np.stack([_centred(values, included) for values in scores])
    return Grid(_centred(change, included), centred_scores, included, tasks)


def _centred(
    values: Float[np.ndarray, "... layer head"], included: Bool[np.ndarray, "layer head"]
) -> Float[np.ndarray, "... layer head"]:
    """The values minus the mean of their layer; 0 for heads that take no part."""
    sums = np.where(included, values, 0).sum(-1, keepdims=True)
    return np.where(included, values - sums / np.maximum(included.sum(-1, keepdims=True), 1), 0)


def products(
    grid: Grid, permutations: int, seed: int = 0
) -> tuple[Float[np.ndarray, " role"], Float[np.ndarray, " draw role"]]:
    """Sums of score times change: for the heads as they are, and with changes permuted among the heads of a layer.

    A permutation moves a head's changes in all runs together, which keeps the similarity of its runs.
    """
    crossed = np.einsum("krlh,rlg->klhg", grid.scores, grid.change)  # scores of head h with changes of head g
    layers, heads = grid.included.shape
    rng, parts = np.random.default_rng(seed), []
    places = np.ix_(range(layers), range(heads))
    for start in range(0, permutations, BATCH):
        order = permute_within_layers(grid.included, min(BATCH, permutations - start), rng)
        parts.append(crossed[:, *places, order].sum(axis=(-1, -2)).T)
    return np.einsum("klhh->k", crossed), np.concatenate(parts)


def permute_within_layers(
    included: Bool[np.ndarray, "layer head"], count: int, rng: np.random.Generator
) -> Int[np.ndarray, "draw layer head"]:
    """Permutes heads within each layer and leaves excluded heads in place."""
    order = np.broadcast_to(np.arange(included.shape[1]), (count, *included.shape)).copy()
    for layer, row in enumerate(included):
        heads = np.flatnonzero(row)
        order[:, layer, heads] = rng.permuted(np.tile(heads, (count, 1)), axis=1)
    return order


def shares(grid: Grid, sums: Float[np.ndarray, "... role"]) -> Float[np.ndarray, "..."]:
    """The share of the changes' variance within layers that the role scores explain together."""
    gram = np.einsum("krlh,mrlh->km", grid.scores, grid.scores)
    return np.einsum("...k,km,...m->...", sums, linalg.pinvh(gram), sums) / (grid.change**2).sum()


def permutation_test(grid: Grid, permutations: int = 9999, seed: int = 0) -> dict[str, float]:
    """The two-sided test of the share of variance within layers that the role scores explain together.

    share_shuffled is the mean under permutation; heads of a layer are exchangeable if roles predict nothing.
    """
    explained, by_chance = (shares(grid, sums) for sums in products(grid, permutations, seed))
    p = (1 + (by_chance >= explained - 1e-12).sum()) / (1 + permutations)
    return {"share": float(explained), "share_shuffled": by_chance.mean(), "p_permutation": p}


def slopes(grid: Grid) -> Float[np.ndarray, " role"]:
    """The slopes of the change on all role scores together, within layers (standard deviations of both)."""
    gram = np.einsum("krlh,mrlh->km", grid.scores, grid.scores)
    return linalg.pinvh(gram) @ np.einsum("krlh,rlh->k", grid.scores, grid.change)


def slope_interval(
    grid: Grid, draws: int = 999, seed: int = 0
) -> tuple[Float[np.ndarray, " role"], Float[np.ndarray, " role"]]:
    """The 95 % percentile interval of `slopes` when the heads of each layer are drawn with replacement."""
    rng, estimates = np.random.default_rng(seed), []
    for _ in range(draws):
        order = np.tile(np.arange(grid.included.shape[1]), (len(grid.included), 1))
        for layer, row in enumerate(grid.included):
            order[layer, row] = rng.choice(np.flatnonzero(row), row.sum())
        change = np.take_along_axis(grid.change, order[None], -1)
        scores = np.take_along_axis(grid.scores, order[None, None], -1)
        centred = {"change": _centred(change, grid.included), "scores": _centred(scores, grid.included)}
        estimates.append(slopes(grid._replace(**centred)))
    low, high = np.quantile(estimates, [0.025, 0.975], axis=0)
    return low, high


def left_out_r2(grid: Grid) -> float:
    """R2 within layers on each task, with slopes of the other tasks; NaN with one task. Below 0: worse than nothing."""
    tasks = np.array(grid.tasks)
    if len(set(tasks)) < 2:
        return np.nan
    error = 0.0
    for task in dict.fromkeys(grid.tasks):
        fitted, left_out = tasks != task, tasks == task
        estimates = slopes(grid._replace(change=grid.change[fitted], scores=grid.scores[:, fitted]))
        error += ((grid.change[left_out] - np.tensordot(estimates, grid.scores[:, left_out], 1)) ** 2).sum()
    return float(1 - error / (grid.change**2).sum())


def regression_table(
    table: pd.DataFrame,
    roles: Sequence[str],
    together: Sequence[str],
    matching: Collection[Head] = (),
    permutations: int = 9999,
    resamples: int = 499,
    seed: int = 0,
    variants: Sequence[str] = VARIANTS,
) -> pd.DataFrame:
    """REGRESSION_COLUMNS: each role alone, the roles `together` in one model, and all these as one term.

    `table` is that of `role_scores`. Every row stands once for each of `variants`; WITHOUT leaves out the heads
    `matching`. A role without a score in any complete run, or without spread, has no test. p_holm corrects
    p_permutation over the tests of a variant.
    """
    parts, joint = [], [role for role in together if table[role].notna().any()] or [*together]
    for variant in variants:
        without = matching if variant == WITHOUT else ()
        options = {"without": without, "permutations": permutations, "resamples": resamples, "seed": seed}
        rows = [_model(table, [role], variant, **options).assign(model="alone") for role in roles]
        rows.append(_model(table, joint, variant, **options).assign(model="together"))
        models = pd.concat(rows, ignore_index=True).assign(variant=variant)
        parts.append(models.assign(p_holm=adjust(models["p_permutation"], "holm")))
    return pd.concat(parts, ignore_index=True).reindex(columns=REGRESSION_COLUMNS)


def _model(
    table: pd.DataFrame,
    roles: Sequence[str],
    variant: str,
    without: Collection[Head],
    permutations: int,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """A row per role with its slope and, with several roles, a last row for all; a single role is tested itself."""
    empty = {"term": [*roles, ALL_ROLES] if len(roles) > 1 else [*roles], "p_permutation": np.nan}
    data = standardised(table, "response", roles, ranks=variant == RANKS)
    if data.empty:
        return pd.DataFrame(empty | {"status": LOST})
    grid = gridded(data, roles, without)
    least = NO_SPREAD * grid.change.size
    if (grid.change**2).sum() < least or ((grid.scores**2).sum(axis=(1, 2, 3)) < least).any():
        return pd.DataFrame(empty | {"status": CONSTANT})
    low, high = slope_interval(grid, resamples, seed)
    terms = pd.DataFrame({"term": [*roles], "estimate": slopes(grid), "low": low, "high": high})
    tested = permutation_test(grid, permutations, seed) | {"r2_left_out": left_out_r2(grid)}
    if len(roles) > 1:
        terms = pd.concat([terms, pd.DataFrame([tested | {"term": ALL_ROLES}])], ignore_index=True)
    else:
        terms = terms.assign(**tested)
    return terms.assign(runs=len(grid.tasks), heads=int(grid.included.sum()), status="tested")
