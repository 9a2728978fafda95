"""Findings on the claims of Michel 2019: measures on resampled sequences, and tables of the notebooks."""

from dataclasses import dataclass, field

import pandas as pd
import xarray as xr

from analysis.papers.michel2019.figures import main_metric
from analysis.papers.michel2019.tables import IMPORTANCE
from analysis.statistics.measures import with_limits
from analysis.statistics.verdicts import Finding, untestable

SHARED = 16  # smallest batch size at which the article says that pruning pays
BLIND = 10.0  # points: a test that misses losses this large cannot support "no loss"


@dataclass(frozen=True)
class Evidence:
    """The evidence for the claims; a table is empty or None if no notebook made it.

    `draws` has the rows of `draws.evidence`: measures on the sample (replicate 0) and on resamples. `least` is the
    smallest loss that a test on the sample detects (points, median over tasks), by claim.
    """

    draws: pd.DataFrame
    rises: pd.DataFrame | None = None
    transfer: pd.DataFrame | None = None
    speed: pd.DataFrame | None = None
    least: pd.Series = field(default_factory=lambda: pd.Series(dtype=float))
    drawn: str = "sequences"


def shares(found: Evidence, claim: str) -> Finding:
    """M1, M3, M5: a share in every unit; untestable if the smallest loss that the test detects is large.

    The shares of M5 are steps of a tenth of the heads.
    """
    measures = _measures(found, claim)
    if measures is None:
        return untestable("no fine-tuned classifiers")
    if not found.least[claim] <= BLIND:
        return untestable(f"the tests find only losses from {found.least[claim]:.1f} points on")
    sample = measures.isel(replicate=0).to_series()
    value = ", ".join(f"{unit} {share:.0%}" for unit, share in sample.items())
    steps = " (steps of a tenth of the heads)" if claim == "M5" else ""
    return Finding(
        f"{value}{steps}; losses below {found.least[claim]:.1f} points pass unseen",
        _numbers(found, claim),
        measures,
        control=_beside(found, claim),
    )


def differences(found: Evidence, claim: str) -> Finding:
    """M6, M8: a difference of two means of scores."""
    measures = _measures(found, claim)
    if measures is None or measures.isel(replicate=0).isnull().any():
        return untestable(
            "no classifier that is ahead of the constant answer early on" if claim == "M8" else "no orders"
        )
    sample = measures.isel(replicate=0).to_series()
    value = ", ".join(f"{unit} {each:+.3f}" for unit, each in sample.items())
    return Finding(value, _numbers(found, claim), measures, control=_beside(found, claim))


def rising(found: Evidence) -> Finding:
    """M2: the rise of the score that is furthest from chance, with its simultaneous interval."""
    if found.rises is None or found.rises.empty:
        return untestable("no fine-tuned classifiers")
    best = found.rises.loc[found.rises["p"].idxmin()]
    value = (
        f"head {best['largest']} in {best['task']} {100 * best['rise']:+.1f} points; "
        f"{found.rises['beyond'].sum()} of {found.rises['variants'].sum()} heads beyond chance"
    )
    raised, by_chance = found.rises["raised"].sum(), found.rises["raised_by_chance"].sum()
    control = f"{raised} heads rise, swapped answers give up to {by_chance:.0f}"
    best = best.copy()
    best["high"] = found.rises["highest_end"].max()  # only if no end is above 0, no removal raises the score
    return _limited(value, int(found.rises["variants"].sum()), {"": best}, "rise", control)


def agreeing(found: Evidence) -> Finding:
    """M4: the correlation of effects on two data sets."""
    if found.transfer is None or found.transfer.empty:
        return untestable("no two data sets of one question")
    halves = found.transfer["data_a"].str.contains(",")
    rows = {f"{row['data_a']} and {row['data_b']}": row for _, row in found.transfer[~halves].iterrows()}
    value = ", ".join(
        f"{name} r = {row['r']:.2f}, Spearman {row['spearman']:.2f}" for name, row in rows.items()
    )
    ceiling = ", ".join(f"{r:.2f}" for r in found.transfer.loc[halves, "r"])
    return _limited(value, len(rows), rows, "r", f"halves of one set: {ceiling}")


def faster(found: Evidence) -> Finding:
    """M7: the speed-up at large batches, for every encoder."""
    rows = None if found.speed is None else found.speed[found.speed["batch"] >= SHARED]
    if rows is None or rows.empty:
        return untestable(f"no times at {SHARED} sequences at once or more")
    named = {f"{row['model']}, {row['batch']}": row for _, row in rows.iterrows()}
    value = ", ".join(f"{name} {row['speedup']:.2f}" for name, row in named.items())
    bounds = ", ".join(f"{bound:.2f}" for bound in rows["bound"].unique())
    return _limited(value, len(rows), named, "speedup", f"the arithmetic allows {bounds}")


def _measures(found: Evidence, claim: str) -> xr.DataArray | None:
    rows = found.draws[found.draws["claim"] == claim]
    if rows.empty:
        return None
    wide = rows.pivot(index="unit", columns="replicate", values="value").loc[rows["unit"].unique()]
    return xr.DataArray(wide.to_numpy(), {"unit": [*wide.index]}, ("unit", "replicate"))


def _numbers(found: Evidence, claim: str) -> int | dict[str, int]:
    rows = found.draws[found.draws["claim"] == claim].drop_duplicates("unit")
    numbers = rows.set_index("unit")["n"].astype(int).to_dict()
    return numbers if len(numbers) > 1 else next(iter(numbers.values()))


def _beside(found: Evidence, claim: str) -> str:
    """The same measure with heads pruned at random."""
    rows = found.draws[(found.draws["claim"] == f"{claim} at random") & (found.draws["replicate"] == 0)]
    if rows.empty:
        return ""
    form = "{:+.3f}" if claim == "M6" else "{:.0%}"
    means = rows.groupby("unit", sort=False)["value"].mean()
    return "random orders: " + ", ".join(f"{unit} {form.format(mean)}" for unit, mean in means.items())


def _limited(value: str, n: int, rows: dict[str, pd.Series], column: str, control: str) -> Finding:
    """A finding with intervals from a table."""
    ends = ([row[name] for row in rows.values()] for name in (column, "low", "high"))
    return Finding(value, n, *with_limits(rows, *ends), control)


def least_losses(single: pd.DataFrame, one_head: pd.DataFrame, pruned: pd.DataFrame) -> pd.Series:
    """The smallest loss that a test detects (points, median over tasks with a lead and runs), by claim of no loss.

    From `overview` of single heads and of one head left, and from `prunable_table`, which has no share for tasks that
    `draws.with_a_lead` leaves out.
    """
    able = pruned.dropna(subset="share")
    single, one_head = (part[part["task"].isin(able["task"])] for part in (single, one_head))
    parts = {
        "M1": main_metric(single)["least"],
        "M3": main_metric(one_head[one_head["chosen_on"] == "train"])["least"],
        "M5": able.loc[able["order"] == IMPORTANCE, "least"],
    }
    return pd.Series({claim: 100 * part.median() for claim, part in parts.items()})
