"""The table of claims: values, controls, intervals and verdicts in words, and the short table for README."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from analysis.statistics.claims import (
    COMPARISONS,
    EVERY,
    FAILS,
    HOLDS,
    STUDY,
    UNDECIDED,
    UNTESTABLE,
    Claim,
    Verdict,
    judge,
    untestable,
)

SIGNS = {">=": "≥ ", ">": "> ", "<=": "≤ ", "<": "< "}
MARKS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "?", UNTESTABLE: "–"}
FEW = 6  # units that are told one by one


def claim_table(
    claims: Iterable[Claim],
    measures: Mapping[str, pd.DataFrame],
    drawn: str = "",
    released: Mapping[str, pd.DataFrame] | None = None,
    controlled: Mapping[str, pd.DataFrame] | None = None,
    controls: Mapping[str, pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """One row per claim: what is claimed, what is found, the control, the interval and the verdict (see `Verdict`).

    `measures` are the frames of the sample by claim, `released` those of the released maps, `controlled` those under
    the controlled label, and `controls` those of control heads; `drawn` says what a draw draws. A claim without a
    frame is untestable. `control_verdict` says whether the control fulfils the claim too, by its estimate.
    """
    rows = []
    for claim in claims:
        frame = measures.get(claim.id, untestable("not measured"))
        theirs, beating = ((frames or {}).get(claim.id) for frames in (released, controlled))
        verdict = _judged(claim, frame)
        control = (controls or {}).get(claim.id, _of_control(frame))
        method = verdict.method + (f", of {drawn}" if drawn and " draws" in verdict.method else "")
        published = claim.published
        if released is not None and claim.origin != STUDY:
            published += " (article); "
            if _judged(claim, theirs).verdict == UNTESTABLE:
                published += "the released maps cannot tell"
            else:
                published += f"{in_words(theirs, claim.format)} recomputed from the released maps"
        told = ""
        if claim.by_label and beating is not None:
            told = f"{in_words(beating, claim.format)}: {_judged(claim, beating).verdict}"
        rows.append(
            {
                "claim": f"{claim.id}: {claim.statement}",
                "origin": claim.origin,
                "source": claim.source,
                "definition": claim.definition,
                "published": published,
                "ours": in_words(frame, claim.format),
                "n": _cases(frame, verdict.unit),
                "relation": claim.relation,
                "bound": claim.bound,
                **verdict._replace(method=method)._asdict(),
                "controlled": told,
                "control_value": _control_words(claim, control),
                "brief": claim.brief,
                "released": _short(claim, _judged(claim, theirs)),
                "found": _short(claim, verdict),
                "control_verdict": control_verdict(control, claim),
            }
        )
    return pd.DataFrame(rows)


def _judged(claim: Claim, frame: pd.DataFrame | None) -> Verdict:
    """The verdict of a frame on a claim; untestable without a frame."""
    return Verdict() if frame is None else judge(frame, claim.relation, claim.bound, claim.units)


def seed_table(claims: Iterable[Claim], measures: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The verdict of every claim by the sample rows of each fine-tuning run alone: claim, seed, estimate, verdict."""
    runs = {int(run) for frame in measures.values() if "run" in frame for run in frame["run"] if run >= 0}
    rows = []
    for claim in claims:
        frame = measures.get(claim.id)
        for run in sorted(runs) or [0]:
            by_run = frame is not None and "run" in frame
            found = _judged(claim, frame[frame["run"] == run] if by_run else frame)
            rows.append(
                {"claim": claim.id, "seed": run, "estimate": found.estimate, "verdict": found.verdict}
            )
    return pd.DataFrame(rows)


def control_verdict(frame: pd.DataFrame | None, claim: Claim) -> str:
    """Whether control heads fulfil a claim too, by the estimates of their units; "" without a control."""
    sample = frame[frame["replicate"] == 0].dropna(subset="value") if frame is not None else pd.DataFrame()
    if sample.empty:
        return ""
    estimates = sample.groupby("unit")["value"].median()
    on_side = COMPARISONS[claim.relation](estimates, claim.bound)
    return HOLDS if (on_side.all() if claim.units == EVERY else on_side.any()) else FAILS


def in_words(frame: pd.DataFrame, form: str = "{:.0%}") -> str:
    """The values of a frame in words: each of a few units, or the median and both ends of many, and the note."""
    sample = frame[frame["replicate"] == 0]
    notes = [note for note in sample.get("note", pd.Series(dtype=str)).dropna().unique() if note]
    values = sample.dropna(subset="value").groupby("unit", sort=False)["value"].median()
    if len(values) > FEW:
        ends = ", ".join(f"{unit} {form.format(values[unit])}" for unit in (values.idxmin(), values.idxmax()))
        told = [f"median {form.format(values.median())} of {len(values)} ({ends})"]
    else:
        told = [", ".join(f"{unit} {form.format(value)}".strip() for unit, value in values.items())]
    runs = sample["run"].nunique() if "run" in sample else 1
    if runs > 1 and len(values):
        told.append(f"median of {runs} runs")
    return "; ".join(filter(None, [*told, *notes]))


def _of_control(frame: pd.DataFrame) -> pd.DataFrame | None:
    """The frame of the control that stands beside the measures; None if there is none."""
    if "control" not in frame or frame["control"].isna().all():
        return None
    return frame.assign(value=frame["control"], note="").drop(columns=["low", "high"], errors="ignore")


def _control_words(claim: Claim, frame: pd.DataFrame | None) -> str:
    words = in_words(frame, claim.format) if frame is not None else ""
    return f"{claim.control}: {words}" if claim.control and words else words or claim.control


def _cases(frame: pd.DataFrame, unit: str) -> int:
    """n of the unit that decides, or of the whole frame."""
    sample = frame[frame["replicate"] == 0]
    rows = sample[sample["unit"] == unit] if unit else sample
    return int(rows["n"].fillna(0).max())


def _short(claim: Claim, verdict: Verdict) -> str:
    """The estimate that decides with the range of the runs, in short; empty if there is none."""
    if verdict.verdict == UNTESTABLE:
        return ""
    text, low, high = map(claim.format.format, (verdict.estimate, verdict.lowest_run, verdict.highest_run))
    alike = np.isnan(verdict.lowest_run) or verdict.lowest_run == verdict.highest_run
    return text if alike else f"{text} ({low} to {high})"


def short_table(claims: pd.DataFrame, known: Iterable[Claim] = ()) -> pd.DataFrame:
    """A claim table in few words: id, claim, here, interval, asked, control, published, mark and verdict.

    Numbers are in the units of the claims in `known`, which have the same ids. † marks claims that their control
    fulfils too, and so say nothing about heads; ‡ marks claims that do not hold when heads must beat their role's
    control; ° marks questions of this study, which the article does not claim.
    """
    controlled = claims["controlled"].fillna("")
    marks = {
        " †": claims["verdict"].eq(HOLDS) & claims["control_verdict"].eq(HOLDS),
        " ‡": claims["verdict"].eq(HOLDS) & controlled.ne("") & ~controlled.str.endswith(f": {HOLDS}"),
        " °": claims["origin"].eq(STUDY) if "origin" in claims else pd.Series(False, claims.index),
    }
    mark = claims["verdict"].map(MARKS)
    for sign, rows in marks.items():
        mark = mark + rows.map({True: sign, False: ""})
    released = claims["released"].fillna("")
    published = released.where(released != "", claims["published"].fillna(""))
    ids = claims["claim"].str.split(": ").str[0]
    formats = ids.map({claim.id: claim.format for claim in known}).fillna("{:.3g}")
    columns = {
        "id": ids,
        "claim": claims["brief"],
        "here": claims["found"].fillna("").astype(str).str.split(" (", regex=False).str[0],
        "interval": [_interval(*each) for each in zip(formats, claims["low"], claims["high"], strict=True)],
        "asked": [SIGNS[sign] + _bound(form, bound) for form, sign, bound in
                  zip(formats, claims["relation"], claims["bound"], strict=True)],
        "control": claims["control_value"].fillna("").map(_clipped),
        "published": published.map(_clipped),
        "mark": mark,
        "verdict": claims["verdict"],
    }  # fmt: skip
    return pd.DataFrame(columns)


def _bound(form: str, bound: float) -> str:
    """A bound in the units of the claim; a percentage that is no whole number keeps its decimal (72.5%, not 72%)."""
    exact = form.replace(":.0%", ":.1%") if round(100 * bound, 6) % 1 else form
    return exact.format(bound) if bound else "0"


def _interval(form: str, low: float, high: float) -> str:
    """The ends of an interval in the units of the claim, which stand once; an open end is an ellipsis."""
    number, unit = form.split("}", 1)
    forms = (number + "}" + ("" if unit.startswith(" ") else unit), form)
    ends = [
        each.format(end) if np.isfinite(end) else "…" for each, end in zip(forms, (low, high), strict=True)
    ]
    return "" if pd.isna(low) else f"{ends[0]} to {ends[1]}"


def _clipped(text: str, longest: int = 48) -> str:
    """A published value without the remarks behind it, cut to `longest` characters."""
    bare = text.split(" (article")[0].split(";")[0]
    return bare if len(bare) <= longest else f"{bare[: longest - 2].rsplit(' ', 1)[0]} …"
