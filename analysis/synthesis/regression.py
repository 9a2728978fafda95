"""Do role scores predict how much a head matters? A mixed model, and a test that permutes heads within layers."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from jaxtyping import Float, Int
from scipy import linalg, stats
from statsmodels.regression.mixed_linear_model import MixedLMResults
from tqdm.auto import tqdm

from analysis.errors import InputError
from analysis.statistics.significance import adjust

RUN, HEAD = ["task", "seed"], ["layer", "head"]
EFFECTS = {"task": "0 + C(task)", "run": "0 + C(run)", "unit": "0 + C(unit)"}
BATCH = 2000  # permutations at a time, to limit memory
COLUMNS = [
    "model",
    "term",
    "runs",
    "heads",
    "estimate",
    "low",
    "high",
    "p",
    "share",
    "share_shuffled",
    "p_permutation",
]
COLUMNS += ["p_holm", "null_mixed", "null_permutation", "null_low", "null_high", "status"]
ALL_ROLES = "all roles"
NOT_FITTED = "the mixed model cannot be fitted"
LOST = "untestable: no run has the change and the scores of all heads"


class Grid(NamedTuple):
    """Changes and role scores of all heads in every run, each centred within its layer and run."""

    change: Float[np.ndarray, "run layer head"]
    scores: Float[np.ndarray, "role run layer head"]


def standardised(table: pd.DataFrame, response: str, roles: Sequence[str]) -> pd.DataFrame:
    """Rows of complete runs: the response in standard deviations of its run, role scores as z of log(1 + score).

    `table` has task, seed, layer, head, the response and a mean sieve bias score per role. A run is left out if some
    head has no response or no score. Standardising gives tasks equal weight, though single heads change some tasks far
    more than others. Raises InputError if no run is complete.
    """
    whole = (
        table[[response, *roles]].notna().all(axis=1).groupby([table[key] for key in RUN]).transform("all")
    )
    chosen = table.loc[whole, [*RUN, *HEAD, response, *roles]].reset_index(drop=True)
    if chosen.empty:
        raise InputError(
            f"no run has {response} and the scores of {', '.join(roles)} for all heads: compute them first"
        )
    runs = chosen.groupby(RUN, sort=False)
    scale = runs[response].transform("std").replace(0, 1)
    logs = np.log1p(chosen[[*roles]])
    of_run = logs.groupby([chosen[key] for key in RUN])
    scores = (logs - of_run.transform("mean")) / of_run.transform("std").replace(0, 1)
    return chosen.assign(change=chosen[response] / scale, **scores)


def mixed_model(table: pd.DataFrame, roles: Sequence[str]) -> pd.DataFrame:
    """Coefficients of role scores in change ~ roles + layer: term, estimate, low, high, p, status; a row per role.

    `table` is that of `standardised`. Layers are levels; random effects are the task, the run (task and seed) and the
    head. A head is the same in all runs: without its random effect, the model would reject shuffled scores far too
    often. With it, the model still rejects them too often for several roles (`null_rates` tells which); the intervals
    are too narrow there, and the permutation test decides. Estimates are standard deviations of the change per standard
    deviation of log(1 + score); intervals are meant for 95 %.
    """
    data = table.rename(columns={role: f"role_{number}" for number, role in enumerate(roles)})
    names = [f"role_{number}" for number in range(len(roles))]
    try:
        fit = _fitted(data, " + ".join(["change ~ C(layer)", *names]))
    except (np.linalg.LinAlgError, ValueError):  # too few heads, or constant scores
        return pd.DataFrame({"term": [*roles]}).assign(status=NOT_FITTED)
    estimate, error = fit.fe_params[names].to_numpy(), fit.bse_fe[names].to_numpy()
    reach = stats.norm.ppf(0.975) * error
    found = {"term": [*roles], "estimate": estimate, "low": estimate - reach, "high": estimate + reach}
    p = 2 * stats.norm.sf(np.abs(estimate / error))
    return pd.DataFrame(found | {"p": p}).assign(status="fitted" if fit.converged else "did not converge")


def _fitted(data: pd.DataFrame, formula: str) -> MixedLMResults:
    """The fit of a mixed model with random effects of task, run and head, if they differ from each other."""
    data = data.assign(run=_joined(data, RUN), unit=_joined(data, HEAD))
    levels = {name: data[name].nunique() for name in EFFECTS}
    effects = {name: term for name, term in EFFECTS.items() if 1 < levels[name] < len(data)}
    if levels["run"] == levels["task"]:
        effects.pop("run", None)  # with one run per task, task and run are the same
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a variance of zero lies on the boundary; this is not an error
        model = smf.mixedlm(formula, data, groups=np.ones(len(data)), vc_formula=effects)
        return model.fit(method=["powell", "lbfgs"])


def _joined(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    return table[[*columns]].astype(str).agg("-".join, axis=1)


def gridded(table: pd.DataFrame, roles: Sequence[str]) -> Grid:
    """The table of `standardised` as arrays; raises InputError if runs have different heads."""
    change, *scores = map(_centred, _arrays(table, ["change", *roles]))
    return Grid(change, np.stack(scores))


def _arrays(table: pd.DataFrame, columns: Sequence[str]) -> Float[np.ndarray, "column run layer head"]:
    shape = table.groupby(RUN).ngroups, table["layer"].nunique(), table["head"].nunique()
    if np.prod(shape) != len(table) or table.duplicated([*RUN, *HEAD]).any():
        raise InputError(
            "runs differ in their heads, or have a head twice: give one row for every run, layer and head"
        )
    ordered = table.sort_values([*RUN, *HEAD])
    return ordered[[*columns]].to_numpy(float).T.reshape(len(columns), *shape)


def _centred(values: Float[np.ndarray, "... head"]) -> Float[np.ndarray, "... head"]:
    return values - values.mean(axis=-1, keepdims=True)


def products(
    grid: Grid, permutations: int, seed: int = 0
) -> tuple[Float[np.ndarray, "role"], Float[np.ndarray, "draw role"]]:
    """Sums of score times change: for the heads as they are, and with changes permuted among the heads of a layer.

    A permutation moves a head's changes in all runs together, which keeps the similarity of its runs.
    """
    crossed = np.einsum("krlh,rlg->klhg", grid.scores, grid.change)  # scores of head h with changes of head g
    _, layers, heads, _ = crossed.shape
    observed = np.einsum("klhh->k", crossed)
    rng, parts = np.random.default_rng(seed), []
    places = np.arange(layers)[:, None], np.arange(heads)[None]
    for start in range(0, permutations, BATCH):
        size = min(BATCH, permutations - start), layers, heads
        order: Int[np.ndarray, "draw layer head"] = rng.permuted(
            np.broadcast_to(np.arange(heads), size), axis=-1
        )
        parts.append(crossed[:, places[0], places[1], order].sum(axis=(-1, -2)).T)
    return observed, np.concatenate(parts)


def shares(
    grid: Grid, sums: Float[np.ndarray, "... role"], together: bool = False
) -> Float[np.ndarray, "..."]:
    """The share of the changes' variance within layers that role scores explain: each role alone, or all together."""
    total = (grid.change**2).sum()
    gram = np.einsum("krlh,mrlh->km", grid.scores, grid.scores)
    if not together:
        return sums**2 / np.maximum(np.diag(gram), 1e-12) / total
    return np.einsum("...k,km,...m->...", sums, linalg.pinvh(gram), sums) / total


def permutation_test(grid: Grid, permutations: int = 9999, seed: int = 0) -> pd.DataFrame:
    """share, share_shuffled and p_permutation: a row per role alone, and a last row for all together.

    Two-sided. The statistic is the share of variance within layers that role scores explain; share_shuffled is its mean
    when heads of a layer exchange their changes. The test assumes only that heads of a layer are exchangeable if roles
    predict nothing.
    """
    observed, drawn = products(grid, permutations, seed)
    own = np.append(shares(grid, observed), shares(grid, observed, together=True))
    others = np.column_stack([shares(grid, drawn), shares(grid, drawn, together=True)])
    p = (1 + (others >= own - 1e-12).sum(axis=0)) / (1 + permutations)
    return pd.DataFrame({"share": own, "share_shuffled": others.mean(axis=0), "p_permutation": p})


def null_rates(
    table: pd.DataFrame,
    role: str,
    shuffles: int = 999,
    permutations: int = 199,
    alpha: float = 0.05,
    seed: int = 0,
) -> dict[str, float]:
    """How often each test rejects when a role's scores are permuted among the heads of a layer, alike in all runs.

    null_mixed, null_permutation: shares of the shuffles with p < `alpha`; null_low, null_high: the 95 % range of such a
    share for a test of exactly this size (binomial). The mixed model is fitted once, without the role; all shuffles use
    its variances (generalised least squares), which saves one fit per shuffle.
    """
    change, scores = _arrays(table, ["change", role])
    _, layers, heads = change.shape
    drawn = np.broadcast_to(np.arange(heads), (shuffles, layers, heads))
    order = np.random.default_rng(seed).permuted(drawn, axis=-1)
    shuffled = scores[:, np.arange(layers)[:, None], order].transpose(1, 0, 2, 3)
    tests = [
        permutation_test(Grid(_centred(change), _centred(each)[None]), permutations, seed + number)
        for number, each in enumerate(
            tqdm(shuffled, desc=f"shuffled scores of {role}", unit="shuffle"), start=1
        )
    ]
    p = [_held_variances(table, shuffled), np.array([test["p_permutation"][0] for test in tests])]
    low, high = stats.binom.ppf([0.025, 0.975], shuffles, alpha) / shuffles
    rates = [float((each < alpha).mean()) for each in p]
    return dict(
        zip(("null_mixed", "null_permutation", "null_low", "null_high"), (*rates, low, high), strict=True)
    )


def _held_variances(
    table: pd.DataFrame, scores: Float[np.ndarray, "shuffle run layer head"]
) -> Float[np.ndarray, " shuffle"]:
    """Wald p of each array of scores in change ~ score + layer, with the variances of the model without scores."""
    data = table.sort_values([*RUN, *HEAD])
    fit = _fitted(data, "change ~ C(layer)")
    covariance = fit.scale * np.eye(len(data))
    known = data.assign(run=_joined(data, RUN), unit=_joined(data, HEAD))
    for name, variance in zip(fit.model.exog_vc.names, fit.vcomp, strict=True):
        codes = known[name].astype("category").cat.codes.to_numpy()
        covariance += variance * (codes[:, None] == codes[None])
    factor = linalg.cholesky(covariance, lower=True)
    columns = np.column_stack([data["change"], fit.model.exog, scores.reshape(len(scores), -1).T])
    white = linalg.solve_triangular(factor, columns, lower=True)
    count = fit.model.exog.shape[1]
    basis = np.linalg.qr(white[:, 1 : 1 + count])[0]
    rest = white - basis @ (basis.T @ white)
    change, others = rest[:, 0], rest[:, 1 + count :]
    z = change @ others / np.sqrt((others**2).sum(axis=0))
    return 2 * stats.norm.sf(np.abs(z))


def regression_table(
    table: pd.DataFrame,
    roles: Sequence[str],
    together: Sequence[str],
    permutations: int = 9999,
    shuffles: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """COLUMNS: each role alone (model "alone"), then the roles `together` in one model, then all these as one term.

    `table` is the atlas with a column `response` and a column of mean scores per role. A role without a score in any
    complete run is untestable. p_holm corrects p_permutation over the roles alone.
    """
    rows = [_alone(table, role, permutations, shuffles, seed) for role in roles]
    joint = _together(table, together, permutations, seed)
    found = pd.concat([pd.DataFrame(rows), joint], ignore_index=True).reindex(columns=COLUMNS)
    alone = found["model"] == "alone"
    return found.assign(
        p_holm=pd.Series(adjust(found.loc[alone, "p_permutation"], "holm"), found.index[alone])
    )


def _alone(table: pd.DataFrame, role: str, permutations: int, shuffles: int, seed: int) -> dict:
    try:
        data = standardised(table, "response", [role])
    except InputError:
        return {"model": "alone", "term": role, "status": LOST}
    tested = permutation_test(gridded(data, [role]), permutations, seed).iloc[0].to_dict()
    counts = {"runs": data.groupby(RUN).ngroups, "heads": len(data[HEAD].drop_duplicates())}
    fitted = mixed_model(data, [role]).iloc[0].to_dict()
    checked = {} if fitted["status"] == NOT_FITTED else null_rates(data, role, shuffles, seed=seed)
    return {"model": "alone"} | counts | fitted | tested | checked


def _together(table: pd.DataFrame, roles: Sequence[str], permutations: int, seed: int) -> pd.DataFrame:
    tested = [role for role in roles if table[role].notna().any()]
    try:
        data = standardised(table, "response", tested)
    except InputError:
        return pd.DataFrame([{"model": "together", "term": ALL_ROLES, "status": LOST}])
    every = permutation_test(gridded(data, tested), permutations, seed).iloc[[-1]].assign(term=ALL_ROLES)
    joint = pd.concat([mixed_model(data, tested), every.assign(status="tested")], ignore_index=True)
    counts = {"runs": data.groupby(RUN).ngroups, "heads": len(data[HEAD].drop_duplicates())}
    return joint.assign(model="together", **counts)
