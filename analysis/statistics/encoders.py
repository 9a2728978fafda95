"""Several encoders: whether claims hold on each, by how much they differ, and in which layers roles sit."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from analysis.statistics.claims import (
    INCONCLUSIVE,
    INDEPENDENT,
    NOT_APPLICABLE,
    NOT_SUPPORTED,
    SUPPORTED,
    UNIT,
    Claim,
    changes_with_run,
    judge,
)
from analysis.statistics.intervals import MINIMUM_RUNS, t_interval

BOTH, UNDECIDED = "supported on both", "supported on one, undecided on the other"
REFUTED, NONE, NOT_JUDGED = "supported on one, refuted on the other", "supported on none", "not judged"
ALL, SOME = "supported on all", "supported on some"  # in place of the first three with more than two encoders
# In the order of figures and tables. Not judged: without a unit that all encoders have, or without a verdict on one.
AGREEMENTS = (BOTH, ALL, UNDECIDED, SOME, REFUTED, NONE, NOT_JUDGED)
DIFFER, ALIKE = "differ", "not shown to differ"
Z = stats.norm.ppf(0.975)


def units_of_claims(claims: pd.DataFrame) -> pd.DataFrame:
    """The units of claims whose units were not saved: the mean over all units of a claim as a single one."""
    measured = claims.dropna(subset="estimate")
    count = measured["units"].fillna(1).astype(int).astype(str)
    names = ("mean of " + count + " units").where(count != "1", "")
    columns = {"unit": names, "value": measured["estimate"]}
    return measured.assign(**columns)[["claim", *UNIT, "runs"]]


def encoder_table(units: Mapping[str, pd.DataFrame], known: Iterable[Claim]) -> pd.DataFrame:
    """A row per claim and encoder: what the claim is on the units that all encoders have.

    `units` are the units of all claims by encoder: claim, unit, value, low, high, runs. The columns: claim, encoder,
    units (their names), estimate, low, high, runs, borrowed (the encoders whose variance between runs is taken where
    there are fewer than three runs), verdict, difference from the first encoder with difference_low and
    difference_high, relation (DIFFER or ALIKE), and holds, one of AGREEMENTS. A claim that measures no encoder is left
    out. Estimates are means over units, also where a claim is about every unit.
    """
    rows = []
    for claim in (claim for claim in known if claim.measures != "data"):
        frames = {name: table[table["claim"] == claim.id].set_index("unit") for name, table in units.items()}
        frames = {name: frame[np.isfinite(frame["value"].astype(float))] for name, frame in frames.items()}
        common = [*dict.fromkeys(unit for frame in frames.values() for unit in frame.index)]
        present = [name for name, frame in frames.items() if len(frame)]
        common = [unit for unit in common if all(unit in frames[name].index for name in present)]
        compared = {name: frames[name].loc[common] for name in present if common}
        rows += _rows(claim, compared, [*units])
    columns = "claim encoder units estimate low high runs borrowed verdict difference difference_low difference_high"
    return pd.DataFrame(rows, columns=[*columns.split(), "relation", "holds"])


def _rows(claim: Claim, frames: Mapping[str, pd.DataFrame], names: Sequence[str]) -> list[dict]:
    """The rows of one claim for all encoders, from the units that those in `frames` share."""
    independent, rows, means = claim.unit in INDEPENDENT, [], {}
    for name in names:
        row = {"claim": claim.id, "encoder": name, "verdict": NOT_APPLICABLE, "relation": ""}
        if name in frames:
            lenders = {other: frame for other, frame in frames.items() if _runs(frame) >= MINIMUM_RUNS}
            single = 0 < _runs(frames[name]) < MINIMUM_RUNS and changes_with_run(claim)
            between = between_runs(lenders.values()) if single else (0.0, np.inf)
            widened = with_runs(frames[name], between)
            result = judge(
                *widened[UNIT[1:]].to_numpy(float).T,
                claim.threshold,
                claim.relation,
                claim.every,
                independent,
            )
            undecided = single and not lenders
            means[name] = mean_of_units(frames[name], between, independent)
            value, low, high = t_interval(*means[name])
            row |= {"units": ", ".join(frames[name].index), "estimate": value, "low": low, "high": high}
            row |= {"runs": _runs(frames[name]), "borrowed": ", ".join(lenders) if single else ""}
            row["verdict"] = INCONCLUSIVE if undecided else result.verdict
        rows.append(row)
    if names[0] in means:
        for row in (row for row in rows[1:] if row["encoder"] in means):
            (first, first_parts), (other, parts) = means[names[0]], means[row["encoder"]]
            ends = t_interval(other - first, [*first_parts, *parts])
            row |= dict(zip(("difference", "difference_low", "difference_high"), ends, strict=True))
            row["relation"] = DIFFER if ends[1] > 0 or ends[2] < 0 else ALIKE
    holds = agreement([row["verdict"] for row in rows])
    return [row | {"holds": holds} for row in rows]


def _runs(frame: pd.DataFrame) -> int:
    """The smallest number of runs of a claim's units; 0 for the encoder before fine-tuning."""
    return int(np.nan_to_num(frame["runs"].astype(float).min()))


def between_runs(lenders: Iterable[pd.DataFrame]) -> tuple[float, float]:
    """The variance between runs, pooled over the units of encoders with three runs or more; and its degrees of freedom.

    Where `between` was not saved, the interval over runs and sequences is read as if runs alone made it.
    """
    variances, freedoms = [], []
    for frame in lenders:
        runs = frame["runs"].to_numpy(float)
        half = (frame["high"] - frame["low"]).to_numpy(float) / 2
        implied = runs * (half / stats.t.ppf(0.975, runs - 1)) ** 2
        saved = frame.reindex(columns=["between"])["between"].to_numpy(float)
        variances += [*np.where(np.isnan(saved), implied, saved)]
        freedoms += [*(runs - 1)]
    if not variances:
        return 0.0, np.inf
    return float(np.average(variances, weights=freedoms)), float(np.sum(freedoms))


def with_runs(frame: pd.DataFrame, between: tuple[float, float]) -> pd.DataFrame:
    """Units whose intervals cover other runs too, given the variance between runs and its degrees of freedom."""
    variance, freedom = between
    if not variance:
        return frame
    rows = []
    for unit in frame[[*UNIT[1:], "runs"]].astype(float).itertuples(index=False):
        of_runs = (variance / max(unit.runs, 1), freedom)
        sides = (((end - unit.value) / Z) ** 2 for end in (unit.low, unit.high))
        below, above = (t_interval(unit.value, [(side, np.inf), of_runs]) for side in sides)
        rows.append((below[1], above[2]))
    return frame.assign(low=[low for low, _ in rows], high=[high for _, high in rows])


def mean_of_units(
    frame: pd.DataFrame, between: tuple[float, float], independent: bool
) -> tuple[float, list[tuple[float, float]]]:
    """The mean of units, and the parts of its variance with their degrees of freedom: of their intervals, of runs.

    Units that share sequences have the mean of their standard errors, as `judge` takes it.
    """
    errors = (frame["high"] - frame["low"]).to_numpy(float) / 2 / Z
    own = np.sum(errors**2) / len(errors) ** 2 if independent else np.mean(errors) ** 2
    variance, freedom = between
    of_runs = variance / max(_runs(frame), 1) / (len(frame) if independent else 1)
    parts = [(float(own), np.inf), *([(float(of_runs), freedom)] if of_runs else [])]
    return float(frame["value"].astype(float).mean()), parts


def agreement(verdicts: Sequence[str]) -> str:
    """One of AGREEMENTS, from the verdicts of a claim on two encoders or more."""
    if NOT_APPLICABLE in verdicts or len(verdicts) < 2:
        return NOT_JUDGED
    supported = [verdict == SUPPORTED for verdict in verdicts]
    if all(supported):
        return BOTH if len(verdicts) == 2 else ALL
    if not any(supported):
        return NONE
    if len(verdicts) > 2:
        return SOME
    return REFUTED if NOT_SUPPORTED in verdicts else UNDECIDED


def agreement_counts(table: pd.DataFrame) -> pd.Series:
    """The number of claims with each of AGREEMENTS that there are, from the rows of `encoder_table`."""
    several = table["encoder"].nunique() > 2
    names = [
        name for name in AGREEMENTS if name not in ((BOTH, UNDECIDED, REFUTED) if several else (ALL, SOME))
    ]
    return (
        table.drop_duplicates("claim")["holds"].value_counts().reindex(names, fill_value=0).rename("claims")
    )


def role_shares(table: pd.DataFrame, roles: Iterable[str]) -> dict[str, Float[np.ndarray, "layer head"]]:
    """The share of the tasks in which each head has each role; NaN where it is not applicable in any.

    `table` has task, role, layer, head and assigned.
    """
    labels = table.astype({"assigned": "Float64"})
    shares = labels.groupby(["role", "layer", "head"])["assigned"].mean()
    return {role: shares[role].unstack().to_numpy(float, na_value=np.nan) for role in roles}


def layer_correlations(
    first: Mapping[str, Float[np.ndarray, "_ _"]], second: Mapping[str, Float[np.ndarray, "_ _"]]
) -> dict[str, tuple[float, float, float]]:
    """Pearson correlation of the layer profiles of each role on two encoders, with its interval (Fisher's z).

    A layer profile is the mean of a role's shares over heads; the interval is over layers. Roles whose profile is
    constant, and encoders with different numbers of layers, have none.
    """
    correlations = {}
    for role, grid in first.items():
        profiles = [pd.DataFrame(shares).mean(axis=1) for shares in (grid, second[role])]
        if len({len(profile) for profile in profiles}) == 1 and all(
            profile.nunique() > 1 for profile in profiles
        ):
            result = stats.pearsonr(*profiles)
            ends = result.confidence_interval() if len(profiles[0]) > 3 else (np.nan, np.nan)
            correlations[role] = tuple(map(float, (result.statistic, *ends)))
    return correlations
