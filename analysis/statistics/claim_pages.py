"""Claim tables as Markdown: a line for every verdict, and a page with every definition."""

import textwrap
from collections.abc import Mapping

import pandas as pd

from analysis.statistics.claim_tables import short_table

NOTES = (
    "✓ holds, ✗ does not hold, ? undecided, – cannot be tested. † Control heads fulfil the claim too, so that it says "
    "nothing about heads. ‡ It does not hold when heads must beat their role's control."
)
OWN_QUESTIONS = " ° A question of this study, which the article does not claim."
WIDTH = 180  # characters of a line
WHERE = "Definitions, intervals and values of controls: [docs/claims.md](docs/claims.md)."


def verdict_lines(tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str], encoder: str) -> str:
    """The verdicts of every paper, a line for each claim; `tables` and `titles` are those of each paper.

    The lines of one paper are one paragraph, so that the page stays short. Papers without claims are left out.
    """
    parts = [
        "<br>".join([f"**{titles[paper]}**", *short_table(claims).apply(_line, axis=1)])
        for paper, claims in tables.items()
        if len(claims)
    ]
    notes = NOTES + (OWN_QUESTIONS if " °" in "".join(parts) else "")
    said = (
        f"A line gives the value for {encoder}, with the range over runs, and in italics that for BERT-base."
    )
    return "\n\n".join([*parts, textwrap.fill(f"{notes} {said} {WHERE}", WIDTH)])


def _line(claim: pd.Series) -> str:
    found = f": {claim['here']}" if claim["here"] else ""
    published = f", *{claim['BERT-base']}*" if claim["BERT-base"] else ""
    return f"{claim['mark']} {claim['claim']}{found}{published}"


def definitions(tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str], encoder: str) -> str:
    """Every claim with its source, definition, values, interval, verdict and controls, as a page of Markdown."""
    lines = [
        "# Claims",
        "",
        f"Values found are those of {encoder}; the median where a claim has several runs.",
    ]
    for paper, claims in tables.items():
        if len(claims):
            lines += ["", f"## {titles[paper]}"]
        for claim in claims.fillna("").to_dict("records"):
            lines += ["", *_definition(claim)]
    return "\n".join(lines) + "\n"


def _definition(claim: Mapping[str, object]) -> list[str]:
    """One claim, one fact a line."""
    interval = "no interval"
    if claim["low"] != "":
        limits = f"{claim['low']:.3g} to {claim['high']:.3g}"
        interval = f"95 % interval {limits}, bound {claim['relation']} {claim['bound']:g}"
    facts = {
        "Source": claim["source"],
        "Definition": claim["definition"],
        "Published": claim["published"],
        "Found": f"{claim['ours']} ({interval}; n = {claim['n']})",
        "With heads that beat their control": claim["controlled"],
        "Controls": claim["control_value"],
    }
    said = [f"- {name}: {fact}" for name, fact in facts.items() if fact != ""]
    return [f"### {claim['claim']}", "", f"**{claim['verdict']}**", "", *said]
