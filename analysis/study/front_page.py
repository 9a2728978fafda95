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
from analysis.statistics.claim_pages import WIDTH, definitions, verdict_lines
from analysis.study.results import Results


def paper_names() -> list[str]:
    """The folders of the papers, and the synthesis, in the order in which the Makefile names them."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return re.findall(r"^STUDIES := (.+)$", makefile, re.MULTILINE)[0].split()


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
    """The verdicts of every paper, a line for each claim; `tables` holds the claim table of each paper."""
    return verdict_lines(tables, paper_titles(), encoder)


def definitions_page(tables: Mapping[str, pd.DataFrame], encoder: str) -> str:
    """Every claim with its source, definition, values, interval, verdict and controls, as a page of Markdown."""
    return definitions(tables, paper_titles(), encoder)


def all_highlights(results: Results) -> list[str]:
    """What every paper has to say on the front page, in the order of the papers."""
    told = [getattr(module, "highlights", lambda results: []) for module in papers().values()]
    return [line for highlights in told for line in highlights(results)]


def findings_section(sentences: Iterable[str]) -> str:
    """Findings as a list, one sentence or two each."""
    return "\n".join(
        textwrap.fill(sentence, WIDTH, initial_indent="- ", subsequent_indent="  ") for sentence in sentences
    )


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
