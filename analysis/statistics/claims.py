"""Claims as data: what a paper says, how it is measured here, the interval and the verdict.

A claim stands in the `claims.yaml` of its paper. A measure is a tidy table (a "frame"), a row per unit and replicate:

- unit, value, n: what is measured (a task, a relation, a layer; "" if there is one), the number, the cases behind it;
- replicate: 0 for the sample, from 1 on for draws of the bootstrap; `run` names the fine-tuning run of a sample row;
- or low, high: the ends of a ready 95 % interval, in the place of draws;
- optional: control (what a control gives for the same row) and note (words that follow the value).

`sampled`, `tabled` and `untestable` make such frames.
"""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
import yaml
from scipy import stats

from analysis.errors import InputError

LEVEL = 0.95
COMPARISONS = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
HOLDS, FAILS, UNDECIDED, UNTESTABLE = "holds", "does not hold", "undecided", "untestable"
EVERY, SOME = "every", "some"
ARTICLE, STUDY = "the article's", "this study's"


@dataclass(frozen=True)
class Claim:
    """One claim as it stands in `claims.yaml`.

    It says that the measure is in `relation` to `bound` in `every` unit, or in `some` unit. `origin` tells whether the
    article makes the claim or this study asks it. `format` writes the measure; `control` names what the column
    `control` of the frame holds. `by_label`: it rests on role labels and is judged under the controlled label too.
    `figure` names the figure that shows it. A claim that stands for its paper on the front page has a `headline`: its
    words there, with {} for what is found.
    """

    id: str
    brief: str
    statement: str
    source: str
    definition: str
    published: str
    relation: str
    bound: float | int
    units: str = EVERY
    origin: str = ARTICLE
    format: str = "{:.0%}"
    control: str = ""
    by_label: bool = False
    figure: str = ""
    headline: str = ""


class Verdict(NamedTuple):
    """The estimate of the unit that decides, its interval, p, the method and the verdict.

    `pooled` is the median of the units; `holding` of `unit_count` units hold by their own 95 % interval. The verdict is
    that of any bound on the same side of `turns_low` and `turns_high`, and undecided for bounds between them.
    """

    estimate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    p: float = np.nan
    method: str = ""
    verdict: str = UNTESTABLE
    unit: str = ""
    lowest_run: float = np.nan
    highest_run: float = np.nan
    pooled: float = np.nan
    holding: int = 0
    unit_count: int = 0
    turns_low: float = np.nan
    turns_high: float = np.nan


def read_claims(path: Path) -> list[Claim]:
    """The claims of a YAML file, in its order; raises InputError for an unknown or missing field."""
    known = {field.name for field in fields(Claim)}
    claims = []
    for number, entry in enumerate(yaml.safe_load(path.read_text(encoding="utf-8")), 1):
        name = f"{path}: claim {entry.get('id', number)}"
        if unknown := set(entry) - known:
            raise InputError(f"{name} has the unknown field {min(unknown)!r}; use {', '.join(sorted(known))}")
        try:
            claim = Claim(**entry)
        except TypeError as error:
            raise InputError(f"{name}: {error}") from error
        if claim.relation not in COMPARISONS or claim.units not in (EVERY, SOME):
            raise InputError(f"{name}: relation is one of {', '.join(COMPARISONS)}, units {EVERY} or {SOME}")
        claims.append(claim)
    return claims


def untestable(reason: str) -> pd.DataFrame:
    """The frame of a claim that this evidence cannot test, and why."""
    return pd.DataFrame({"unit": [""], "replicate": 0, "value": np.nan, "n": 0, "note": reason})


def sampled(
    values: xr.DataArray | Mapping[str, Iterable[float]],
    n: int | Mapping[str, int],
    runs: int = 1,
    control: Mapping[str, float] | None = None,
    note: str = "",
) -> pd.DataFrame:
    """A frame from measures (unit, replicate): the samples of the fine-tuning `runs` first, then draws."""
    if not isinstance(values, xr.DataArray):
        values = xr.DataArray(
            np.stack([np.asarray(each, float) for each in values.values()]),
            {"unit": [*values]},
            ("unit", "replicate"),
        )
    values = values.transpose("unit", "replicate")
    units, count = [str(unit) for unit in values["unit"].values], values.sizes["replicate"]
    places = np.arange(count)
    frame = pd.DataFrame(
        {
            "unit": np.repeat(units, count),
            "run": np.tile(np.where(places < runs, places, -1), len(units)),
            "replicate": np.tile(np.maximum(places - runs + 1, 0), len(units)),
            "value": values.values.astype(float).ravel(),
        }
    )
    frame["n"] = frame["unit"].map(n) if isinstance(n, Mapping) else n
    if control is not None:
        frame["control"] = frame["unit"].map(control)
    return frame.assign(note=note)


def tabled(
    table: pd.DataFrame,
    unit: str,
    value: str,
    low: str = "low",
    high: str = "high",
    n: str | int = "n",
    control: str = "",
    note: str = "",
) -> pd.DataFrame:
    """A frame from a table with ready intervals; `unit` is a column, or a format such as "{model}, {batch}"."""
    if table.empty:
        return untestable(note or "no rows")
    named = (
        table[unit].astype(str) if unit in table else [unit.format(**row) for row in table.to_dict("records")]
    )
    columns = {"unit": named, "value": table[value], "low": table[low], "high": table[high]}
    frame = pd.DataFrame(columns).assign(n=table[n] if isinstance(n, str) else n, replicate=0, note=note)
    return frame.assign(control=table[control]) if control else frame


def judge(frame: pd.DataFrame, relation: str, bound: float | int, units: str = EVERY) -> Verdict:
    """Whether the measures of a frame lie on the claim's side of the bound.

    A claim about every unit holds if the 95 % interval of each lies on its side; it does not hold if some unit's
    interval at level 1 - .05 / units lies on the other side. A claim about some unit holds if one unit's interval at
    level 1 - .05 / units lies on its side; it does not hold if the 95 % interval of every unit lies on the other. In
    all other cases, and without an interval, it is undecided; without a measure it is untestable.

    The estimate of a unit is the median over the runs that have the measure. Intervals are percentiles of the draws, or
    ready ends, which are widened in proportion to the normal quantiles. A draw without a measure lies on no side: it
    widens the interval at both ends, and more than 2.5 % of them leave no interval. Estimate and ends told are the
    least favourable of all units, or those of the unit that decides for some unit. `p` is one-sided, (1 + draws not on
    the claim's side) / (1 + draws): the largest of the units (partial conjunction, Dror 2017), or the deciding one's.
    """
    found, compare = _units_of(frame, relation, bound), COMPARISONS[relation]
    if found.empty:
        return Verdict()

    def sides(*ends: str) -> tuple[pd.Series, pd.Series]:
        """The units that lie wholly on the claim's side, and those that lie wholly off it."""
        interval = found[[*ends]]
        on_side = compare(interval, bound)
        return on_side.all(axis=1), interval.notna().all(axis=1) & ~on_side.any(axis=1)

    (on, off), (on_wide, off_wide) = sides("low", "high"), sides("wide_low", "wide_high")
    sign, near, far = (1, "low", "high") if relation in (">", ">=") else (-1, "high", "low")
    favour = sign * found.drop(columns=["runs", "draws", "lacking", "p"])  # larger is better for the claim
    if units == EVERY:
        verdict = HOLDS if on.all() else FAILS if off_wide.any() else UNDECIDED
        deciding, p = favour["estimate"].idxmin(), found["p"].max()
        low, high = sign * favour[["low", "high"]].min()  # least favourable, end by end
        turns = sign * favour[[near, f"wide_{far}"]].min(skipna=False)
    else:
        verdict = HOLDS if on_wide.any() else FAILS if off.all() else UNDECIDED
        reach = favour[f"wide_{near}"]
        deciding = (reach if reach.notna().any() else favour["estimate"]).idxmax()
        low, high, p = found.loc[deciding, ["wide_low", "wide_high", "p"]]
        turns = sign * favour[[f"wide_{near}", far]].max()
    row = found.loc[deciding]
    return Verdict(
        estimate=float(row["estimate"]),
        low=float(low),
        high=float(high),
        p=float(p),
        method=_method(row, len(found), units),
        verdict=verdict,
        unit=str(deciding) if len(found) > 1 else "",
        lowest_run=float(row["lowest_run"]),
        highest_run=float(row["highest_run"]),
        pooled=float(found["estimate"].median()),
        holding=int(on.sum()),
        unit_count=len(found),
        turns_low=float(min(turns)),
        turns_high=float(max(turns)),
    )


def _units_of(frame: pd.DataFrame, relation: str, bound: float | int) -> pd.DataFrame:
    """Estimate, intervals (own level and widened over the units), p and range of runs of every unit with a measure.

    Ready intervals are widened to the level 1 - .05 / units by normal quantiles, each side by itself.
    """
    sample = frame[frame["replicate"] == 0].dropna(subset="value").groupby("unit", sort=False)["value"]
    found = sample.agg(estimate="median", lowest_run="min", highest_run="max", runs="size").astype(float)
    found.loc[found["runs"] < 2, ["lowest_run", "highest_run"]] = np.nan
    widths = {"": 1 - LEVEL, "wide_": (1 - LEVEL) / max(1, len(found))}
    ends = {f"{prefix}{end}": np.nan for prefix in widths for end in ("low", "high")}
    found = found.assign(**ends, p=np.nan, draws=0, lacking=0.0)
    if "low" in frame:
        rows = frame.set_index("unit").loc[found.index]
        wider = stats.norm.ppf(1 - widths["wide_"] / 2) / stats.norm.ppf((1 + LEVEL) / 2)
        for end in ("low", "high"):
            found[end] = rows[end].astype(float)
            found[f"wide_{end}"] = (found[end] - found["estimate"]) * wider + found["estimate"]
        return found
    draws = frame[(frame["replicate"] > 0) & frame["unit"].isin(found.index)]
    if draws.empty:
        return found
    by_unit, compare = draws.groupby("unit", sort=False)["value"], COMPARISONS[relation]
    for prefix, width in widths.items():
        found[f"{prefix}low"] = by_unit.agg(lambda each, q=width / 2: _quantile(each, q, -np.inf))
        found[f"{prefix}high"] = by_unit.agg(lambda each, q=1 - width / 2: _quantile(each, q, np.inf))
    found["p"] = by_unit.agg(lambda each: (1 + (~compare(each, bound)).sum()) / (1 + len(each)))
    found["draws"], found["lacking"] = by_unit.size(), by_unit.agg(lambda each: each.isna().mean())
    return found


def _quantile(draws: pd.Series, level: float, missing: float) -> float:
    """A quantile of the draws in which a draw without a measure lies at the far end; NaN if it falls there."""
    with np.errstate(invalid="ignore"):
        value = float(np.quantile(draws.fillna(missing), level))
    return value if np.isfinite(value) else np.nan


def _method(row: pd.Series, units: int, kind: str) -> str:
    """How the interval is made, in words."""
    if not np.isfinite(row["low"]):
        lacking = f": {row['lacking']:.0%} of the draws have no measure" if row["lacking"] else ""
        return f"no interval{lacking}"
    simultaneous = f", simultaneous over {units} units" if kind == SOME and units > 1 else ""
    if not row["draws"]:
        return f"95 % interval of the table{simultaneous}"
    outside = "" if row["low"] <= row["estimate"] <= row["high"] else "; the estimate lies outside"
    return f"95 % percentile interval, {row['draws']:.0f} draws{simultaneous}{outside}"
