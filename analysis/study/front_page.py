"""What README and docs/claims.md say of the results: findings, verdicts in brief, and the claims with definitions."""

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from analysis.files import ROOT, write_text
from analysis.statistics.verdicts import short_table
from analysis.study.discovery import papers

NOTES = (
    "✓ holds, ✗ does not hold, ? undecided, – cannot be tested. † Control heads fulfil the claim too, so that it says "
    "nothing about heads. ‡ It does not hold when heads must beat their role's control."
)
WIDTH = 180  # characters of a line
WHERE = "Definitions, intervals and values of controls: [docs/claims.md](docs/claims.md)."


def title(paper: str) -> str:
    """How a paper is called: the first sentence of its package."""
    return (papers()[paper].__doc__ or paper).strip().split("\n")[0].rstrip(".")


def verdicts_section(tables: Mapping[str, pd.DataFrame], encoder: str) -> str:
    """The verdicts of every paper in four short columns; `tables` holds the claim table of each paper by its name.

    Papers without claims are left out.
    """
    parts = []
    for paper, claims in tables.items():
        if len(claims):
            shown = short_table(claims).rename(columns={"here": f"{encoder}, range over runs"})
            parts.append(f"**{title(paper)}**\n\n{shown.to_markdown(index=False)}")
    return "\n\n".join([*parts, textwrap.fill(f"{NOTES} {WHERE}", WIDTH)])


def findings_section(sentences: Iterable[str]) -> str:
    """Findings as a list, one sentence or two each."""
    return "\n".join(
        textwrap.fill(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ") for sentence in sentences
    )


def definitions_page(tables: Mapping[str, pd.DataFrame], encoder: str) -> str:
    """Every claim with its source, definition, values, interval, verdict and controls, as a page of Markdown."""
    lines = ["# Claims", "", f"Values found are those of {encoder}, the median over fine-tuning runs."]
    for paper, claims in tables.items():
        if len(claims):
            lines += ["", f"## {title(paper)}"]
        for claim in claims.fillna("").to_dict("records"):
            lines += ["", *_definition(claim)]
    return "\n".join(lines) + "\n"


def save_claims_page(page: str) -> Path:
    """Writes docs/claims.md; returns its path."""
    path = ROOT / "docs" / "claims.md"
    write_text(path, page)
    return path


def _definition(claim: Mapping[str, object]) -> list[str]:
    """One claim, a fact a line."""
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
