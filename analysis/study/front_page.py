"""The results in README and docs/claims.md: findings, short verdicts, and the claims with their definitions."""

import re
import textwrap
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd

from analysis.errors import InputError
from analysis.files import ROOT, write_text
from analysis.statistics.claim_tables import short_table
from analysis.study.results import Results

NOTES = (
    "✓ holds, ✗ does not hold, ? undecided, – cannot be tested. † Control heads fulfil the claim too, so that it says "
    "nothing about heads. ‡ It does not hold when heads must beat their role's control. ° A question of this study, "
    "which the article does not claim."
)
WIDTH = 180  # characters of a line
WHERE = "Definitions, intervals and values of controls: [docs/claims.md](docs/claims.md)."


def paper_names() -> list[str]:
    """The folders of the papers, and the synthesis, in the order in which the Makefile names them."""
    return re.search(r"^STUDIES := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[
        1
    ].split()


def papers() -> dict[str, ModuleType]:
    """The package of every paper by its name; each offers `CLAIMS` and `summary(results)`, its claim table."""
    homes = {name: "" if (ROOT / "analysis" / name).is_dir() else "papers." for name in paper_names()}
    return {name: import_module(f"analysis.{home}{name}") for name, home in homes.items()}


def paper_titles() -> dict[str, str]:
    """The title of every paper, the first sentence of its package, by the name of its folder."""
    return {
        name: (paper.__doc__ or name).strip().split("\n")[0].rstrip(".") for name, paper in papers().items()
    }


def verdicts_section(tables: Mapping[str, pd.DataFrame], encoder: str) -> str:
    """The verdicts of every paper, a line for each claim; `tables` holds the claim table of each paper by its name.

    The lines of one paper are one paragraph, so that the page stays short. Papers without claims are left out.
    """
    titles = paper_titles()
    parts = [
        "<br>".join([f"**{titles[paper]}**", *short_table(claims).apply(_line, axis=1)])
        for paper, claims in tables.items()
        if len(claims)
    ]
    said = (
        f"A line gives the value for {encoder}, with the range over runs, and in italics that for BERT-base."
    )
    return "\n\n".join([*parts, textwrap.fill(f"{NOTES} {said} {WHERE}", WIDTH)])


def _line(claim: pd.Series) -> str:
    found = f": {claim['here']}" if claim["here"] else ""
    published = f", *{claim['BERT-base']}*" if claim["BERT-base"] else ""
    return f"{claim['mark']} {claim['claim']}{found}{published}"


def all_highlights(results: Results) -> list[str]:
    """What every paper has to say on the front page, in the order of the papers."""
    told = [getattr(module, "highlights", lambda results: []) for module in papers().values()]
    return [line for highlights in told for line in highlights(results)]


def findings_section(sentences: Iterable[str]) -> str:
    """Findings as a list, one sentence or two each."""
    return "\n".join(
        textwrap.fill(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ") for sentence in sentences
    )


def definitions_page(tables: Mapping[str, pd.DataFrame], encoder: str) -> str:
    """Every claim with its source, definition, values, interval, verdict and controls, as a page of Markdown."""
    lines = [
        "# Claims",
        "",
        f"Values found are those of {encoder}; the median where a claim has several runs.",
    ]
    for paper, claims in tables.items():
        if len(claims):
            lines += ["", f"## {paper_titles()[paper]}"]
        for claim in claims.fillna("").to_dict("records"):
            lines += ["", *_definition(claim)]
    return "\n".join(lines) + "\n"


def update_readme(section: str, text: str, path: Path = ROOT / "README.md") -> None:
    """Replaces the text between the comments `section` and `/section` of README or another document.

    Raises InputError if these comments are missing.
    """
    start, end = f"<!-- {section} -->\n", f"<!-- /{section} -->"
    readme = path.read_text(encoding="utf-8")
    if start not in readme or end not in readme:
        raise InputError(f"{path} has no section between {start.strip()} and {end}: put the comments back")
    head, rest = readme.split(start, 1)
    write_text(path, head + start + text.strip() + "\n" + rest[rest.index(end) :])


def save_claims_page(page: str) -> Path:
    """Writes docs/claims.md; returns its path."""
    path = ROOT / "docs" / "claims.md"
    write_text(path, page)
    return path


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
