"""Claims for readers: words of `claims.yaml` and numbers of `claims-<paper>.csv` as tables and pages of Markdown."""

import textwrap
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from analysis.statistics.claims import COLUMNS, ORIGINS, SUPPORTED, VERDICTS, Claim

MARK, OURS = "†", "‡"
LEGEND = (
    f"{MARK} The interval of this claim overlaps that of its control, or lies below it: the claim does not distinguish "
    "these heads from the control."
)
OURS_LEGEND = f"{OURS} The threshold is this study's; the paper names none."
MULTIPLICITY = (
    "With {n} verdicts at the 95 % level, one or two of those called *supported* may be so by chance. Most thresholds "
    "are ours."
)
HEADER = (
    "claim", "estimate [95 % interval]", "interval over", "units", "threshold", "control", "published", "verdict",
)  # fmt: skip
WIDTH = 196  # characters of a line


def number(value: float) -> str:
    """A number with two decimals, or with three if it is small; an ellipsis for none."""
    if not np.isfinite(value):
        return "…"
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
    """A statement or a measure with the name of the sink, [CLS] or [SEP], in the place {sink}."""
    return text.replace("{sink}", token or "the sink")


def cells(claims: pd.DataFrame, known: Iterable[Claim]) -> pd.DataFrame:
    """What a reader sees of each claim: the id and the columns of HEADER, as texts."""
    words, rows = {claim.id: claim for claim in known}, []
    texts = claims[["interval", "token", "published", "reason"]].astype(object).fillna("")
    for row in claims.assign(**texts).to_dict("records"):
        claim, released = words[row["claim"]], row["published_estimate"]
        several = f", least favourable of {row['units']:g}" if claim.every and row["units"] > 1 else ""
        mark, reason = f" {MARK}" if marked(row) else "", f" ({row['reason']})" if row["reason"] else ""
        reason += "; another verdict with the threshold a fifth away" if row["robust"] == "no" else ""
        rows.append([
            claim.id,
            with_sink(claim.statement, row["token"]),
            bracketed(row["estimate"], row["low"], row["high"]) + several,
            row["interval"],
            _units_text(row, claim.unit),
            f"{claim.relation} {claim.threshold:g}" + (f" {OURS}" if claim.threshold_from == ORIGINS[1] else ""),
            _comparison_text(row, claim),
            row["published"] + ("" if pd.isna(released) else f"; released maps {number(released)}"),
            row["verdict"] + mark + reason,
        ])  # fmt: skip
    return pd.DataFrame(rows, columns=["id", *HEADER])


def _units_text(row: Mapping[str, object], unit: str) -> str:
    """How many units and fine-tuning runs there are, and the smallest and the largest value."""
    counts = [(unit, row["units"], 1), ("run", row["runs"], 0)]
    text = ", ".join(f"{name} × {count:g}" for name, count, least in counts if count > least)
    ends = [(row[end], row[f"{end}_unit"]) for end in ("smallest", "largest")] if row["units"] > 1 else []
    return ": ".join(filter(None, [text, " to ".join(f"{number(value)} ({name})" for value, name in ends)]))


def _comparison_text(row: Mapping[str, object], claim: Claim) -> str:
    """The control with its interval, or the number for comparison only."""
    if claim.reference and not pd.isna(row["reference"]):
        return f"for comparison, {claim.reference}: {number(row['reference'])}"
    control = bracketed(row["control"], row["control_low"], row["control_high"])
    return f"{claim.control}: {control}" if control and claim.control else ""


def claims_markdown(
    claims: pd.DataFrame,
    known: Iterable[Claim],
    figures: str = "",
    task: str = "",
    others: Mapping[str, pd.DataFrame] = {},
) -> str:
    """The claims of a paper as a table of Markdown; with `figures`, the folder of the figures, ids link to them.

    Where a figure shows one task, the link is to that of `task`. Ids are anchors then. `others` are claims of other
    encoders by name: each has a column with estimate, interval and verdict.
    """
    known = list(known)
    results = {name: short_results(table) for name, table in others.items()}
    names = {claim.id: _linked(claim, figures, task) if figures else claim.id for claim in known}
    header = [*HEADER, *results]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for claim, statement, *numbers in cells(claims, known).itertuples(index=False):
        texts = [
            f"{names[claim]} {statement}",
            *numbers,
            *(column.get(claim, "") for column in results.values()),
        ]
        lines.append("| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts) + " |")
    table = "\n".join(lines)
    legends = [legend for mark, legend in ((MARK, LEGEND), (OURS, OURS_LEGEND)) if mark in table]
    return "\n\n".join([table, *legends])


def short_results(claims: pd.DataFrame) -> dict[str, str]:
    """Estimate, interval and verdict of each claim, as one text."""
    return {
        row["claim"]: ", ".join(
            filter(None, [bracketed(row["estimate"], row["low"], row["high"]), row["verdict"]])
        )
        for row in claims.to_dict("records")
    }


def _linked(claim: Claim, figures: str, task: str) -> str:
    """The id of a claim as an anchor, with a link to its figure if it has one."""
    link = f"[{claim.id}]({figures}/{claim.figure.format(task=task)}.png)" if claim.figure else claim.id
    return f'<a id="{claim.id}"></a>{link}'


def claims_page(
    tables: Mapping[str, pd.DataFrame],
    titles: Mapping[str, str],
    known: Mapping[str, Iterable[Claim]],
    encoder: str,
    figures: str,
    task: str = "",
    others: Mapping[str, pd.DataFrame] = {},
) -> str:
    """Every claim in the table of its paper, and below it what is measured, as a page of Markdown.

    `others` are the claims of other encoders by name, those of all papers together.
    """
    tables = current(tables)
    intro = f"Measured on {encoder}. {MULTIPLICITY.format(n=sum(map(len, tables.values())))} Published values are of"
    intro += " BERT-base unless they say otherwise."
    lines = ["# Claims", "", *textwrap.wrap(intro, WIDTH)]
    for paper, claims in tables.items():
        tokens = claims.set_index("claim")["token"].fillna("")
        lines += ["", f'<a id="{paper}"></a>', "", f"## {titles[paper]}", ""]
        lines += [claims_markdown(claims, known[paper], figures, task, others), "", "What is measured:", ""]
        for claim in known[paper]:
            text = f"- **{claim.id}** ({claim.source}). {with_sink(claim.measure, tokens.get(claim.id, ''))}"
            lines.append(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(lines) + "\n"


def paper_rows(tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str], page: str) -> str:
    """A table of Markdown with a row for each paper: how many of its claims have each verdict."""
    lines = [f"| paper | {' | '.join(VERDICTS)} |", "|---" * (1 + len(VERDICTS)) + "|"]
    for paper, claims in current(tables).items():
        counts = claims["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        lines.append(f"| [{titles[paper]}]({page}#{paper}) | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def current(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables of claims that have rows and the present columns; those of an earlier form must be made again."""
    return {name: table for name, table in tables.items() if len(table) and [*table.columns] == COLUMNS}
