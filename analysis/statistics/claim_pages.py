"""Claims for readers: words of `claims.yaml` and numbers of `claims-<paper>.csv` as tables and pages of Markdown."""

import textwrap
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from analysis.statistics.claims import COLUMNS, ORIGINS, VERDICTS, Claim

MARK = "†"
LEGEND = (
    f"{MARK} The interval of the control lies on the claim's side of the threshold too: the claim does not distinguish "
    "these heads from the control."
)
MULTIPLICITY = (
    "Verdicts are made claim by claim at 95 %; of {n} claims one or two would be decided by chance if none "
    "were true."
)
HEADER = ("claim", "estimate [95 % interval]", "range", "threshold", "control", "published", "verdict")
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
    """Whether the interval of the control, or a control without one, lies on the claim's side of the threshold too."""
    ends = [row["control"] if pd.isna(row[end]) else row[end] for end in ("control_low", "control_high")]
    above = row["relation"] == ">"
    return bool(not pd.isna(row["control"]) and all((end > row["threshold"]) == above for end in ends))


def cells(claims: pd.DataFrame, known: Iterable[Claim]) -> pd.DataFrame:
    """What a reader sees of each claim: the id and the columns of HEADER, as texts."""
    words, rows = {claim.id: claim for claim in known}, []
    texts = claims[["token", "published", "reason"]].astype(object).fillna("")
    for row in claims.assign(**texts).to_dict("records"):
        claim, released = words[row["claim"]], row["published_estimate"]
        control = bracketed(row["control"], row["control_low"], row["control_high"])
        ends = [(row[end], row[f"{end}_unit"]) for end in ("smallest", "largest")] if row["units"] > 1 else []
        mark, reason = f" {MARK}" if marked(row) else "", f" ({row['reason']})" if row["reason"] else ""
        rows.append([
            claim.id,
            claim.statement + (f" (in this study {row['token']})" if row["token"] else ""),
            bracketed(row["estimate"], row["low"], row["high"]),
            " to ".join(f"{number(value)} ({unit})" for value, unit in ends),
            f"{claim.relation} {claim.threshold:g}",
            f"{claim.control}: {control}" if control and claim.control else "",
            row["published"] + ("" if pd.isna(released) else f"; released maps {number(released)}"),
            row["verdict"] + mark + reason,
        ])  # fmt: skip
    return pd.DataFrame(rows, columns=["id", *HEADER])


def claims_markdown(claims: pd.DataFrame, known: Iterable[Claim], figures: str = "", task: str = "") -> str:
    """The claims of a paper as a table of Markdown; with `figures`, the folder of the figures, ids link to them.

    Where a figure shows one task, the link is to that of `task`.
    """
    known = list(known)
    links = {
        claim.id: f"[{claim.id}]({figures}/{claim.figure.format(task=task)}.png)"
        for claim in known
        if figures and claim.figure
    }
    lines = [f"| {' | '.join(HEADER)} |", "|---" * len(HEADER) + "|"]
    for name, statement, *numbers in cells(claims, known).itertuples(index=False):
        texts = [f"{links.get(name, name)} {statement}", *numbers]
        lines.append("| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts) + " |")
    if any(map(marked, claims.to_dict("records"))):
        lines += ["", LEGEND]
    return "\n".join(lines)


def claims_page(
    tables: Mapping[str, pd.DataFrame],
    titles: Mapping[str, str],
    known: Mapping[str, Iterable[Claim]],
    encoder: str,
    figures: str,
    task: str = "",
) -> str:
    """Every claim in the table of its paper, and below it what is measured, as a page of Markdown."""
    tables = current(tables)
    intro = f"Measured on {encoder}. {MULTIPLICITY.format(n=sum(map(len, tables.values())))}"
    intro += " Published values are of BERT-base unless they say otherwise, and thresholds are this study's unless a"
    intro += " definition says otherwise."
    lines = ["# Claims", "", *textwrap.wrap(intro, WIDTH)]
    for paper, claims in tables.items():
        lines += ["", f'<a id="{paper}"></a>', "", f"## {titles[paper]}", ""]
        lines += [claims_markdown(claims, known[paper], figures, task), "", "What is measured:", ""]
        for claim in known[paper]:
            named = "" if claim.threshold_from == ORIGINS[1] else " The paper names the threshold."
            text = f"- **{claim.id}** ({claim.source}). {claim.measure}{named}"
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
