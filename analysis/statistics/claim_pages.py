"""Claim tables as Markdown: a row for every paper, and a page with a table for every paper and all definitions."""

import re
import textwrap
from collections.abc import Iterable, Mapping

import pandas as pd

from analysis.statistics.claim_tables import MARKS, short_table
from analysis.statistics.claims import Claim

NOTES = (
    "✓ holds, ✗ does not hold, ? undecided, – cannot be tested. † Control heads fulfil the claim too, so that it says "
    "nothing about heads. ‡ It does not hold when heads must beat their role's control. ° A question of this study, "
    "which the article does not claim."
)
PUBLISHED = "Published values are of BERT-base unless they say otherwise."
WIDTH = 196  # characters of a line
WHERE = "docs/claims.md"
COLUMNS = ["claim", "here", "95 % interval", "asked", "control", "published", "verdict"]
Known = Mapping[str, Iterable[Claim]]


def paper_rows(tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str], known: Known) -> str:
    """A table with a row for each paper: how many claims have each verdict, and the claims that stand for it.

    `tables`, `titles` and `known` hold the claim table, title and claims of each paper; papers without claims are left
    out. Numbers are in the units of the claims.
    """
    lines = ["| paper | ✓ | ✗ | ? | – | two of its claims |", "|---|---|---|---|---|---|"]
    for paper, claims in tables.items():
        if len(claims):
            counts = claims["verdict"].value_counts()
            numbers = " | ".join(str(counts.get(verdict, 0)) for verdict in MARKS)
            chosen = {claim.id: claim.headline for claim in known[paper] if claim.headline}
            told = short_table(claims, known[paper]).set_index("id")
            # A row of this study's own questions says so itself.
            if told["mark"].str.endswith(" °").all():
                told["mark"] = told["mark"].str.removesuffix(" °")
            said = "; ".join(_told(told.loc[name], chosen[name]) for name in chosen if name in told.index)
            authors_and_year = re.sub(r",\D*", " ", titles[paper].rsplit("(", 1)[-1]).strip(" )")
            lines.append(f"| [{authors_and_year}]({WHERE}#{paper}) | {numbers} | {_cell(said)} |")
    return "\n".join(lines)


def _told(claim: pd.Series, headline: str) -> str:
    words = headline.format(claim["here"]) if claim["here"] else claim["claim"]
    return f"{words} {claim['mark']}"


def claims_page(
    tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str], known: Known, encoder: str, figures: str
) -> str:
    """Every claim in a table of its paper, then its source, definition and other values, as a page of Markdown.

    `figures` is the folder of the pictures that the claims link to.
    """
    said = (
        f"Values found are those of {encoder}; the median where a claim has several runs. {PUBLISHED} {NOTES}"
    )
    lines = ["# Claims", "", *textwrap.wrap(said, WIDTH)]
    for paper, claims in tables.items():
        if not len(claims):
            continue
        lines += ["", f'<a id="{paper}"></a>', "", f"## {titles[paper]}", ""]
        lines += [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
        shown = {claim.id: claim.figure for claim in known[paper]}
        for row in short_table(claims, known[paper]).itertuples():
            link = f"[{row.id}]({figures}/{shown[row.id]}.png)" if shown.get(row.id) else row.id
            verdict = f"{row.mark} {row.verdict}"
            cells = [
                f"{link} {row.claim}",
                row.here,
                row.interval,
                row.asked,
                row.control,
                row.published,
                verdict,
            ]
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
        lines += ["", "Definitions, and what else was found:", ""]
        lines += ["\n".join(_definition(claim)) for claim in claims.fillna("").to_dict("records")]
    return "\n".join(lines) + "\n"


def _definition(claim: Mapping[str, object]) -> list[str]:
    """One claim as an entry of a list, and below it each fact in an entry of its own."""
    name, statement = str(claim["claim"]).split(": ", 1)
    facts = {
        "Source": claim["source"],
        "Definition": claim["definition"],
        "Published": claim["published"],
        "Found": f"{claim['ours']} (n = {claim['n']})",
        "With heads that beat their control": claim["controlled"],
        "Controls": claim["control_value"],
    }
    said = [f"  - *{name}:* {fact}" for name, fact in facts.items() if fact != ""]
    return [
        textwrap.fill(line, WIDTH, subsequent_indent="    ")
        for line in [f"- **{name}: {statement}.**", *said]
    ]


def _cell(text: str) -> str:
    """A text that a cell of a Markdown table can hold."""
    return text.replace("|", "\\|").replace("\n", " ")
