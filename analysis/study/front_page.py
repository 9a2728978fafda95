"""The results in README and docs/claims.md: findings, classifiers, verdicts, and the claims with definitions."""

import os
import re
import textwrap
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd

from analysis.errors import InputError
from analysis.files import ROOT, write_text
from analysis.statistics.claim_pages import WIDTH, claims_page, paper_rows
from analysis.statistics.claims import Claim, read_claims
from analysis.study.results import Results

WHOLE = "STUDY_WHOLE"  # the environment variable that Make sets if all papers run


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


def known_claims() -> dict[str, list[Claim]]:
    """The claims of every paper as they stand in its claims.yaml."""
    return {
        name: read_claims(Path(paper.__file__).with_name("claims.yaml")) for name, paper in papers().items()
    }


def claims_section(tables: Mapping[str, pd.DataFrame]) -> str:
    """The verdicts of every paper in a row; `tables` holds the claim table of each paper."""
    return paper_rows(tables, paper_titles(), known_claims())


def claims_document(tables: Mapping[str, pd.DataFrame], encoder: str, figures: str) -> str:
    """Every claim with interval, control, published value, verdict, figure and definition, as a page of Markdown."""
    return claims_page(tables, paper_titles(), known_claims(), encoder, figures)


def classifiers_section(finetune: pd.DataFrame) -> str:
    """How good the fine-tuned classifiers are: a row for each task, from the scores that `00_finetune` saved."""
    first = finetune.groupby("task", sort=False)["metric"].transform("first")
    rows = finetune[finetune["metric"] == first]
    lines = ["| task | score of the runs | constant answer | training examples |", "|---|---|---|---|"]
    for task, runs in rows.groupby("task", sort=False):
        low, high = (f"{end:.2f}" for end in (runs["finetuned"].min(), runs["finetuned"].max()))
        score = low if low == high else f"{low} to {high}"
        constant, train = runs["constant"].iloc[0], runs["train"].iloc[0]
        lines.append(f"| {task} | {runs['metric'].iloc[0]} {score} | {constant:.2f} | {train:,} |")
    return "\n".join(lines)


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


def save_front_page(
    results: Results, tables: Mapping[str, pd.DataFrame], encoder: str, finetune: pd.DataFrame
) -> None:
    """Writes README.md and docs/claims.md, which replace those of the checkout when the run ends.

    Only the run of Make with all papers writes them: another one has not all tables, and prints that they stay.
    """
    if results.run.scratch or not os.environ.get(WHOLE):
        print("README.md and docs/claims.md stay as they are: make reproduce writes them, with all papers")
        return
    readme = results.checkout / "README.md"
    write_text(readme, (ROOT / "README.md").read_text(encoding="utf-8"))
    update_readme("findings", findings_section(all_highlights(results)), readme)
    update_readme("classifiers", classifiers_section(finetune), readme)
    update_readme("claims", claims_section(tables), readme)
    figures = f"../results/{results.home.name}/figures"
    write_text(results.checkout / "docs" / "claims.md", claims_document(tables, encoder, figures))
