"""Claims for readers: words of `claims.yaml` and numbers of `claims-<paper>.csv` as texts."""

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from analysis.statistics.claims import INCONCLUSIVE, NOT_APPLICABLE, ORIGINS, SUPPORTED, Claim

MARK, OURS, NEAR = "†", "‡", "§"
LEGENDS = {
    MARK: f"{MARK} The control's interval overlaps this one, or lies above it.",
    OURS: f"{OURS} The threshold is this study's; the paper names none.",
    NEAR: f"{NEAR} The verdict would be another one if the threshold moved by a fifth.",
}
HEADER = ("claim", "estimate [95 % interval]", "threshold", "control", "published", "verdict")


def number(value: float) -> str:
    """A number with two decimals, or with three if it is small; an ellipsis for none."""
    if not np.isfinite(value):
        return "…"
    value += 0  # 0 for -0
    text = f"{value:.2f}" if abs(value) >= 0.095 or value == 0 else f"{value:.3f}"
    return text.replace("-0.000", "0.000")


def bracketed(value: float, low: float, high: float) -> str:
    """An estimate with its interval in brackets; empty without an estimate."""
    if pd.isna(value):
        return ""
    return number(value) if pd.isna(low) else f"{number(value)} [{number(low)}, {number(high)}]"


def marked(row: Mapping[str, object]) -> bool:
    """Whether the interval of a supported claim overlaps that of its control, or lies below it.

    A control without an interval is a point. A claim that something is *below* a threshold has no such mark.
    """
    highest = row["control"] if pd.isna(row["control_high"]) else row["control_high"]
    return bool(row["relation"] == ">" and row["verdict"] == SUPPORTED and row["low"] <= highest)


def with_sink(text: str, token: str) -> str:
    """A statement or a measure with the name of the sink in the place {sink} (see `claims.sink_name`)."""
    if token.startswith("[SEP]"):  # as in BERT-base
        text = text.replace("{sink} ([SEP] in BERT-base)", "{sink}")
    return text.replace("{sink}", token or "the sink")


def cells(claims: pd.DataFrame, known: Iterable[Claim]) -> pd.DataFrame:
    """What a reader sees of each claim at first: the id and the columns of HEADER, as texts.

    Inconclusive and not applicable have their reason; those of other verdicts stand in `definitions`.
    """
    words, rows = {claim.id: claim for claim in known}, []
    for row in records(claims):
        claim, released = words[row["claim"]], row["published_estimate"]
        several = f", least favourable of {row['units']:g}" if claim.every and row["units"] > 1 else ""
        explained = row["reason"] if row["verdict"] in (INCONCLUSIVE, NOT_APPLICABLE) else ""
        marks = {MARK: marked(row), NEAR: row["robust"] == "no", f"({explained})": explained}
        comparison = bracketed(row["control"], row["control_low"], row["control_high"])
        rows.append([
            claim.id,
            with_sink(claim.statement, row["token"]),
            bracketed(row["estimate"], row["low"], row["high"]) + several,
            f"{claim.relation} {claim.threshold:g}" + (f" {OURS}" if claim.threshold_from == ORIGINS[1] else ""),
            comparison if pd.isna(row["reference"]) else f"{number(row['reference'])} (for comparison)",
            re.sub(r"(?<=\d)%", " %", row["published"])
            + ("" if pd.isna(released) else f"; released maps {number(released)}"),
            " ".join([row["verdict"], *(mark for mark, holds in marks.items() if holds)]),
        ])  # fmt: skip
    return pd.DataFrame(rows, columns=["id", *HEADER])


def records(claims: pd.DataFrame) -> list[dict]:
    """The rows of a table of claims, with empty texts for missing ones."""
    texts = claims[["interval", "token", "published", "reason"]].astype(object).fillna("")
    return claims.assign(**texts).to_dict("records")


def short_results(claims: pd.DataFrame, same: Mapping[str, str] = {}) -> dict[str, str]:
    """Estimate, interval, marks and verdict of each claim, as one text, without a verdict that is the one in `same`."""
    texts = {}
    for row in claims.to_dict("records"):
        verdict = "" if same.get(row["claim"]) == row["verdict"] else row["verdict"]
        numbers = bracketed(row["estimate"], row["low"], row["high"])
        marks = {MARK: marked(row), NEAR: row["robust"] == "no"}
        numbers = " ".join([numbers, *(mark for mark, holds in marks.items() if holds)])
        texts[row["claim"]] = ", ".join(filter(None, [numbers, verdict]))
    return texts
