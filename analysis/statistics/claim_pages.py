"""Claims for readers: words of `claims.yaml` and numbers of `claims-<paper>.csv` as tables and pages of Markdown."""

import re
import textwrap
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from analysis.statistics.claims import (
    COLUMNS,
    INCONCLUSIVE,
    NOT_APPLICABLE,
    ORIGINS,
    SUPPORTED,
    VERDICTS,
    Claim,
)
from analysis.statistics.intervals import MINIMUM_RUNS

MARK, OURS, NEAR = "†", "‡", "§"
LEGEND = f"{MARK} The control's interval overlaps this one, or lies above it."
OURS_LEGEND = f"{OURS} The threshold is this study's; the paper names none."
NEAR_LEGEND = f"{NEAR} The verdict would be another one if the threshold moved by a fifth."
LEGENDS = {MARK: LEGEND, OURS: OURS_LEGEND, NEAR: NEAR_LEGEND}
MULTIPLICITY = (
    "With {n} verdicts at the 95 % level, about {chance} of those called *supported* may be so by chance. Most "
    "thresholds are ours."
)
HEADER = ("claim", "estimate [95 % interval]", "threshold", "control", "published", "verdict")
TERMS = (
    "Intervals are over sequences (texts, or pairs of them), and over runs if there are three or more, unless a "
    "definition says otherwise; *cross-fitted* heads are chosen on one half of the data and read on the other."
)
FOLDED = "<details><summary>Definitions, units and controls</summary>"
WIDTH = 196  # characters of a line


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
    for row in _records(claims):
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


def definitions(claims: pd.DataFrame, known: Iterable[Claim]) -> str:
    """A list of Markdown: what each claim measures, of which units and runs, and what its row does not say."""
    rows, lines = {row["claim"]: row for row in _records(claims)}, []
    for claim in known:
        row = rows.get(claim.id, {"token": "", "verdict": NOT_APPLICABLE})
        fields = {}
        if not pd.isna(row.get("estimate")):
            compared = {"Control": claim.control, "For comparison": claim.reference}
            shown = {"Control": row["control"], "For comparison": row["reference"]}
            fields = {"": _units_text(row, claim.unit)}
            usual = "runs and sequences" if row["runs"] >= MINIMUM_RUNS else "sequences"
            of_sequences = row["interval"].replace("pairs", "sequences")  # a pair of texts is a sequence
            fields["Interval over"] = "" if of_sequences == usual else row["interval"]
            fields |= {name: compared[name] for name in compared if not pd.isna(shown[name])}
            fields["Note"] = row["reason"] if row["verdict"] not in (INCONCLUSIVE, NOT_APPLICABLE) else ""
        text = f"- **{claim.id}** ({claim.source}). {with_sink(claim.measure, row['token'])} "
        text += " ".join(
            f"*{name}*: {words}.".removeprefix("**: ") for name, words in fields.items() if words
        )
        lines.append(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(lines)


def _records(claims: pd.DataFrame) -> list[dict]:
    """The rows of a table of claims, with empty texts for missing ones."""
    texts = claims[["interval", "token", "published", "reason"]].astype(object).fillna("")
    return claims.assign(**texts).to_dict("records")


def _units_text(row: Mapping[str, object], unit: str) -> str:
    """How many units and fine-tuning runs there are, and the smallest and the largest value."""
    counts = [(unit, row["units"], 1), ("run", row["runs"], 0)]
    text = ", ".join(f"{count:g} × {name}" for name, count, least in counts if count > least)
    ends = [(row[end], row[f"{end}_unit"]) for end in ("smallest", "largest")] if row["units"] > 1 else []
    return ": ".join(filter(None, [text, " to ".join(f"{number(value)} ({name})" for value, name in ends)]))


def claims_markdown(
    claims: pd.DataFrame,
    known: Iterable[Claim],
    figures: str = "",
    task: str = "",
    others: Mapping[str, pd.DataFrame] = {},
) -> str:
    """The claims of a paper as a table of Markdown, above what its marks mean and the folded definitions.

    With `figures`, the folder of the figures, ids link to them and are anchors. Where a figure shows one task, the link
    is to that of `task`. `others` are claims of other encoders by name: each has a column with estimate and interval,
    and with the verdict where it is another one.
    """
    known = list(known)
    table = _table(claims, known, figures, task, others)
    return "\n\n".join([table, f"{_legends(table)} {TERMS}".strip(), _folded(claims, known)])


def _legends(tables: str) -> str:
    """What the marks in some tables mean."""
    return " ".join(legend for mark, legend in LEGENDS.items() if mark in tables)


def _folded(claims: pd.DataFrame, known: Iterable[Claim]) -> str:
    """The definitions of the claims of a paper, to unfold."""
    return "\n\n".join([FOLDED, definitions(claims, known), "</details>"])


def _table(
    claims: pd.DataFrame,
    known: list[Claim],
    figures: str,
    task: str,
    others: Mapping[str, pd.DataFrame] = {},
) -> str:
    """The rows of `cells` as Markdown, with a column of `short_results` for each of the other encoders."""
    same = dict(zip(claims["claim"], claims["verdict"], strict=True))
    results = {name: short_results(table, same) for name, table in others.items()}
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
    return "\n".join(lines)


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
    """Every claim in the table of its paper, above its definition, as a page of Markdown.

    `others` are the claims of other encoders by name, those of all papers together.
    """
    tables = current(tables)
    rows = {
        paper: _table(claims, list(known[paper]), figures, task, others) for paper, claims in tables.items()
    }
    multiplicity = MULTIPLICITY.format(**judged_counts([*tables.values(), *others.values()]))
    intro = f"Measured on {encoder}. {multiplicity} Published values are of"
    intro += f" BERT-base unless they say otherwise. {TERMS} {_legends(str(rows))}"
    intro += " Columns of other encoders name a verdict where it differs." if others else ""
    lines = ["# Claims", "", *textwrap.wrap(intro, WIDTH)]
    for paper, claims in tables.items():
        lines += ["", f'<a id="{paper}"></a>', "", f"## {titles[paper]}", ""]
        lines += [rows[paper], "", _folded(claims, known[paper])]
    return "\n".join(lines) + "\n"


def judged_counts(tables: Iterable[pd.DataFrame]) -> dict[str, int]:
    """The verdicts in tables of claims (n), and how many *supported* ones chance gives if no claim is true (chance)."""
    n = sum(int((table["verdict"] != NOT_APPLICABLE).sum()) for table in tables)
    return {"n": n, "chance": round(0.025 * n)}


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
