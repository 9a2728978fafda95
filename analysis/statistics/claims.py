"""Claims as data: words in `claims.yaml`, measured units in `units-<run>.csv`, verdicts in `claims-<paper>.csv`.

A measure returns a frame with a row per unit: unit, value, low, high (a 95 % interval), and where there is a control,
or a number for comparison only (a reference), control, control_low and control_high. Optional columns: runs
(fine-tuning runs behind the value; none for the pre-trained encoder), token (for claims about the sink), reason
(why a unit has no value, or what qualifies it) and released (the same by the maps of BERT-base that the authors
released). `frame`, `of_table` and `not_applicable` make it, a notebook saves it where it is measured
(`Results.save_claim`), and `claim_table` judges the units of all notebooks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import false_discovery_control, norm

from analysis.errors import InputError
from analysis.files import parse_yaml
from analysis.statistics.intervals import MINIMUM_RUNS, mean_interval

SUPPORTED, MIXED, NOT_SUPPORTED = "supported", "mixed", "not supported"
INCONCLUSIVE, NOT_APPLICABLE = "inconclusive", "not applicable"
VERDICTS = (SUPPORTED, MIXED, NOT_SUPPORTED, INCONCLUSIVE, NOT_APPLICABLE)


class Judgement(NamedTuple):
    """What the intervals of its units say of one claim; numbers in the claim's own unit."""

    estimate: float  # mean over units; for a claim about every unit, the least favourable one
    low: float  # 95 % interval of the estimate
    high: float
    # Units whose interval, corrected for their number, lies on the claim's side of the threshold.
    supporting: int
    contradicting: int  # units whose corrected interval lies on the other side
    verdict: str


def judge(
    values: Float[np.ndarray, " unit"],
    low: Float[np.ndarray, " unit"],
    high: Float[np.ndarray, " unit"],
    threshold: float | int,
    relation: Literal[">", "<"] = ">",
    every: bool = False,
    independent: bool = False,
) -> Judgement:
    """Compares the values of units and their 95 % intervals with a threshold.

    `every`: the claim is about each unit ("to the previous *and* to the next token"), not about their mean.
    `independent`: the units are samples of their own, as tasks are; else they may share sequences, and the half width
    of their mean is the mean of theirs. The caller leaves out units without a value.
    """
    if relation == "<":
        swapped = judge(-values, -high, -low, -threshold, ">", every, independent)
        return swapped._replace(estimate=-swapped.estimate, low=-swapped.high, high=-swapped.low)

    wider = norm.ppf(1 - 0.025 / len(values)) / norm.ppf(0.975)  # Bonferroni
    supports = values - wider * (values - low) > threshold
    contradicts = values + wider * (high - values) < threshold
    if every:
        worst = np.argmin(np.where(np.isnan(low), values, low))
        estimate, below, above = values[worst], values[worst] - low[worst], high[worst] - values[worst]
    else:
        estimate = values.mean()
        below, above = pooled(values - low, independent), pooled(high - values, independent)

    if supports.any() and contradicts.any():
        verdict = MIXED
    elif estimate - below > threshold and not contradicts.any() and (values > threshold).mean() > 0.5:
        verdict = SUPPORTED
    elif contradicts.any() if every else estimate + above < threshold:
        verdict = NOT_SUPPORTED
    else:
        verdict = INCONCLUSIVE
    counts = int(supports.sum()), int(contradicts.sum())
    return Judgement(float(estimate), float(estimate - below), float(estimate + above), *counts, verdict)


def pooled(half_widths: Float[np.ndarray, " unit"], independent: bool) -> float:
    """The half width of the interval of a mean over units."""
    if independent:
        return float(np.linalg.norm(half_widths) / len(half_widths))
    return float(np.mean(half_widths))


NO_VALUE = Judgement(np.nan, np.nan, np.nan, np.nan, np.nan, NOT_APPLICABLE)
CLAIM_COLUMNS = (
    "claim estimate low high interval smallest largest smallest_unit largest_unit units runs supporting contradicting "
    "threshold relation robust control control_low control_high reference token published published_estimate verdict "
    "reason"
).split()
NEAR = 0.2  # a fifth of the threshold: how far it moves for `robust`, and what is "about" the threshold
TIMES = "rounds"  # what intervals of measured times cover
ORIGINS = ("paper", "this study")
INDEPENDENT = ("task", "relation")  # kinds of units that are samples of their own
UNIT = ["unit", "value", "low", "high"]
EXTREMES = {
    "units": "size",
    "smallest": "min",
    "largest": "max",
    "smallest_unit": "idxmin",
    "largest_unit": "idxmax",
}
CONTROL = ["control", "control_low", "control_high"]


@dataclass(frozen=True)
class Claim:
    """One claim as it stands in `claims.yaml`: the measure is in `relation` to `threshold`."""

    id: str
    statement: str  # one sentence, as the paper makes it
    source: str
    measure: str  # one sentence: what is computed, of what, in which unit
    threshold: float | int
    relation: str  # > or <
    threshold_from: str = "this study"
    unit: str = ""  # what the units are, in the singular: task, relation, layer; "" for a single one
    every: bool = False  # the claim is about each unit, not about their mean
    interval: str = (
        ""  # what its interval covers: sequences, passages, runs, tasks; "runs and" needs three runs
    )
    measures: str = "encoder"  # or data: a number that is the same for every encoder
    control: str = ""  # the name of the control
    reference: str = ""  # the name of a number for comparison only, in place of a control
    published: str = ""  # as printed
    figure: str = ""  # its name, which may hold {task}


def changes_with_run(claim: Claim) -> bool:
    """Whether another fine-tuning run would give the claim another value."""
    return claim.interval.startswith("runs")


def read_claims(path: Path) -> list[Claim]:
    """The claims of a YAML file, in its order; raises InputError for an unknown, missing or wrong field."""
    claims = []
    for number, entry in enumerate(parse_yaml(path.read_bytes(), path), 1):
        name = f"{path}: claim {entry.get('id', number)}"
        if (relation := entry.get("relation")) not in (">", "<"):
            raise InputError(f"{name}: relation is {relation!r}; use > or <")
        if (origin := entry.get("threshold_from", ORIGINS[1])) not in ORIGINS:
            raise InputError(f"{name}: threshold_from is {origin!r}; use {' or '.join(ORIGINS)}")
        if type(threshold := entry.get("threshold")) not in (int, float):
            raise InputError(f"{name}: threshold is {threshold!r}; give a number")
        try:
            claims.append(Claim(**entry))
        except TypeError as error:  # an unknown or a missing key, which the message names
            keys = ", ".join(field.name for field in fields(Claim))
            raise InputError(f"{name}: {str(error).split('() ')[-1]}; the keys are {keys}") from error
    return claims


def not_applicable(reason: str, unit: str = "") -> pd.DataFrame:
    """The frame of a claim, or of one unit of it, that cannot be measured, and why."""
    return pd.DataFrame([(unit, np.nan, np.nan, np.nan, reason)], columns=[*UNIT, "reason"])


def frame(units: Mapping[str, tuple[float, float, float]], **columns: object) -> pd.DataFrame:
    """A frame from value, low and high of every unit; `columns` are further ones, by unit or one for all.

    The column `between` holds the variance between runs, where intervals know it.
    """
    rows = pd.DataFrame([(unit, *interval) for unit, interval in units.items()], columns=UNIT)
    between = [getattr(interval, "between", np.nan) for interval in units.values()]
    if np.isfinite(between).any():
        rows["between"] = between
    for name, column in columns.items():
        rows[name] = rows["unit"].map(column) if isinstance(column, Mapping) else column
    return rows if len(rows) else not_applicable("not measured")


def with_control(rows: pd.DataFrame, control: Mapping[str, tuple[float, float, float]]) -> pd.DataFrame:
    """A frame with value, low and high of the control of every unit; units without one have none."""
    if not control:
        return rows
    return rows.join(pd.DataFrame.from_dict(control, orient="index", columns=CONTROL), on="unit")


def together(units: list[pd.DataFrame], reason: str = "not measured") -> pd.DataFrame:
    """One frame of several units; without any, not applicable for this reason."""
    return pd.concat(units, ignore_index=True) if units else not_applicable(reason)


def of_table(
    table: pd.DataFrame,
    unit: str = "",
    value: str = "value",
    low: str = "low",
    high: str = "high",
    **columns: str,
) -> pd.DataFrame:
    """A frame from columns of a table with ready intervals; `unit` is a column, or "" for a table of one row.

    `columns` names the columns of the control and of runs, as `control="offset_accuracy"`.
    """
    if table.empty:
        return not_applicable("not measured")
    names = {"value": value, "low": low, "high": high} | columns
    rows = pd.DataFrame({name: table[column].to_numpy(float) for name, column in names.items()})
    rows.insert(0, "unit", table[unit].astype(str).to_numpy() if unit else "")
    return rows


def sink_name(sinks: Sequence[str]) -> str:
    """The name of the token on which heads rest; `sinks` holds it, and after it one in a near tie (`sink.sinks`)."""
    first, *tied = (f"[{token.upper()}]" for token in sinks)
    return f"{first} (near tie with {tied[0]})" if tied else first


def over_blocks(units: Mapping[str, np.ndarray], control: Mapping[str, np.ndarray] = {}) -> pd.DataFrame:
    """A frame from the means of blocks of sequences by unit; t intervals over blocks."""
    rows = frame({unit: mean_interval(values) for unit, values in units.items()})
    return with_control(rows, {unit: mean_interval(values) for unit, values in control.items()})


def claim_table(
    claims: Iterable[Claim], frames: Mapping[str, pd.DataFrame], made_up: bool = False
) -> pd.DataFrame:
    """The columns CLAIM_COLUMNS, a row per claim, from the units of each; claims without any were not run.

    The mean of `released` is `published_estimate`, a number without a verdict. Claims measured on texts that are
    `made_up`, as those of toy tasks are, have a verdict and no published values.
    """
    rows, nothing = [], not_applicable("not run")
    for claim in claims:
        units = frames.get(claim.id, nothing)
        row = claim_row(claim, units)
        if not made_up:
            released = units.reindex(columns=["released"])["released"].mean()
            row |= {"published": claim.published, "published_estimate": released}
        rows.append(row)
    return pd.DataFrame(rows, columns=CLAIM_COLUMNS)


def claim_row(claim: Claim, units: pd.DataFrame) -> dict[str, object]:
    """One row of `claim_table`; a claim without any measured unit is not applicable, and the reason says why.

    One or two runs do not show how far others lie from them, and times of one machine say nothing of others: the
    interval then decides nothing. `robust` says whether the verdict stays if the threshold moves by a fifth; at 0 it is
    empty.
    """
    words = {"claim": claim.id} | {
        name: getattr(claim, name) for name in ("interval", "threshold", "relation")
    }
    words["token"] = next(iter(units["token"].dropna()), "") if "token" in units else ""
    measured, reasons = units[np.isfinite(units["value"].astype(float))], _reasons(units)
    if measured.empty:
        return words | NO_VALUE._asdict() | {"runs": 0, "robust": "", "reason": "; ".join(reasons)}
    intervals = [measured[name].to_numpy(float) for name in UNIT[1:]]

    def judged(threshold: float | int) -> Judgement:
        return judge(*intervals, threshold, claim.relation, claim.every, claim.unit in INDEPENDENT)

    result, overruled, robust = judged(claim.threshold), None, ""
    runs = int(np.nan_to_num(float(measured["runs"].min()))) if "runs" in measured else 0
    if runs < MINIMUM_RUNS:
        words["interval"] = claim.interval.removeprefix("runs and ")
    if claim.interval == TIMES:
        overruled = NOT_APPLICABLE, "times of one machine"
    elif changes_with_run(claim) and 0 < runs < MINIMUM_RUNS:
        overruled = INCONCLUSIVE, f"{runs} run{'s' * (runs != 1)}"
    elif claim.threshold:
        others = {judged(claim.threshold * share).verdict for share in (1 - NEAR, 1 + NEAR)}
        robust = "yes" if others == {result.verdict} else "no"
    verdict, *remarks = overruled or (result.verdict,)
    remarks += _remarks(claim, measured, result, decided=not overruled)
    values = measured.set_index("unit")["value"].astype(float)
    extremes = {name: values.agg(how) for name, how in EXTREMES.items()} if len(values) > 1 else {}
    comparison = _comparison(claim, measured, result.estimate)
    decided = {"verdict": verdict, "runs": runs, "robust": robust, "reason": "; ".join([*reasons, *remarks])}
    return words | result._asdict() | extremes | comparison | decided


def threshold_table(claims: Iterable[Claim], units: pd.DataFrame) -> pd.DataFrame:
    """The verdict on every judged claim at .8, 1 and 1.25 times its threshold, and p against it, raw and adjusted.

    A threshold of 0 is moved to the least effect that the sample can show, the half width of the interval, on the
    claim's side. `p` is two-sided, from the estimate and its interval; `p_by` is that of Benjamini and Yekutieli 2001.
    `units` has the columns claim, unit, value, low, high and runs.
    """
    rows = []
    for claim in claims:
        frame = units[(units["claim"] == claim.id) & np.isfinite(units["value"].astype(float))]
        row = claim_row(claim, frame) if len(frame) else {"verdict": NOT_APPLICABLE}
        if row["verdict"] == NOT_APPLICABLE:
            continue
        half = (row["high"] - row["low"]) / 2
        moved = {share: claim.threshold * share for share in (0.8, 1, 1.25)} if claim.threshold else {1: 0}
        least = half if claim.relation == ">" else -half
        moved |= {} if claim.threshold else {"least": least}
        verdicts = {
            f"at_{share}": claim_row(replace(claim, threshold=float(threshold)), frame)["verdict"]
            for share, threshold in moved.items()
        }
        distance = abs(row["estimate"] - claim.threshold)
        p = 2 * norm.sf(distance / half * norm.ppf(0.975)) if half > 0 else float(not distance)
        rows.append({"claim": claim.id, "threshold": claim.threshold, "least": half, **verdicts, "p": p})
    columns = ["claim", "threshold", "least", "at_0.8", "at_1", "at_1.25", "at_least", "p"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p_by=false_discovery_control(table["p"], method="by") if len(table) else table["p"])


def _comparison(claim: Claim, measured: pd.DataFrame, estimate: float) -> dict[str, float]:
    """Mean and interval of the control over the units that have one; of a reference the mean alone.

    For a claim about every unit it is the control of the unit whose value is the estimate.
    """
    decisive = measured[measured["value"] == estimate].head(1) if claim.every else measured
    controlled = decisive.reindex(columns=CONTROL).astype(float).dropna(subset="control")
    if controlled.empty:
        return {}
    values, low, high = controlled.to_numpy().T
    mean, independent = values.mean(), claim.unit in INDEPENDENT
    if claim.reference:
        return {"reference": mean}
    ends = mean - pooled(values - low, independent), mean + pooled(high - values, independent)
    return dict(zip(CONTROL, (mean, *ends), strict=True))


def _remarks(claim: Claim, measured: pd.DataFrame, result: Judgement, decided: bool) -> list[str]:
    """What a reader should know of an interval: that it is missing, or lies at the threshold."""
    ends, constant = np.array([result.low, result.high]), measured["low"] == measured["high"]
    if constant.all():
        return ["no spread"]
    remarks = [f"{', '.join(measured.loc[constant, 'unit'])}: no spread"] if constant.any() else []
    if np.isnan(ends).any():
        return [*remarks, "no interval"]
    near = (np.abs(ends - claim.threshold) <= NEAR * abs(claim.threshold)).all()
    if near and decided and result.verdict == INCONCLUSIVE:
        remarks.append(f"about {claim.threshold:g}")
    return remarks


def _reasons(units: pd.DataFrame) -> list[str]:
    """The reasons of a frame, each once, with the units that share it unless several units are all."""
    if "reason" not in units:
        return []
    explained = units[units["reason"].fillna("") != ""]
    if len(explained) == len(units) > 1 and explained["reason"].nunique() == 1:
        return [str(explained["reason"].iloc[0])]
    names = explained.groupby("reason", sort=False)["unit"].agg(lambda units: ", ".join(filter(None, units)))
    return [f"{units}: {reason}" if units else str(reason) for reason, units in names.items()]
