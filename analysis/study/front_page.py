"""The results in README and docs/claims.md: findings, classifiers, verdicts, and the claims with definitions."""

import os
import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pandas as pd

from analysis.errors import InputError
from analysis.files import ROOT, write_text
from analysis.statistics.claim_pages import claims_page, current, paper_rows
from analysis.statistics.claims import Claim, read_claims
from analysis.statistics.roles import COUNTS, ROLES, role_counts
from analysis.study.profiles import parameters
from analysis.study.results import Results

# The folders of the papers and the synthesis, in the order of their notebooks; the Makefile has the same list.
PAPERS = ("pande2021", "clark2019", "michel2019", "kovaleva2019", "pascual2021", "niven2019", "synthesis")
# What "pre-trained" means in the tables of an encoder.
ENCODERS = {
    "minilm": "MiniLM, a sentence encoder tuned on a billion pairs of texts, which is not a masked language model",
    "tiny": "random weights: its heads have learnt nothing",
    "bert-base-uncased": "BERT-base, a masked language model",
}
WHOLE = "STUDY_WHOLE"  # the environment variable that Make sets if all papers run


def papers() -> dict[str, ModuleType]:
    """The package of every paper by its name."""
    homes = {name: "analysis" if name == "synthesis" else "analysis.papers" for name in PAPERS}
    return {name: import_module(f"{home}.{name}") for name, home in homes.items()}


def paper_titles() -> dict[str, str]:
    """The title of every paper, the first sentence of its package, by the name of its folder."""
    return {name: paper.__doc__.split("\n")[0].rstrip(".") for name, paper in papers().items()}


def known_claims() -> dict[str, list[Claim]]:
    """The claims of every paper as they stand in its claims.yaml."""
    paths = {name: Path(paper.__file__).with_name("claims.yaml") for name, paper in papers().items()}
    return {name: read_claims(path) for name, path in paths.items()}


def saved_claims(results: Results) -> dict[str, pd.DataFrame]:
    """The tables `claims-<paper>` of the papers that have run in this profile, in the order of the papers.

    The claims of the synthesis stand in two tables, those on matching heads in `claims-matching`.
    """
    names = {paper: [f"claims-{paper}"] for paper in PAPERS}
    names["synthesis"].append("claims-matching")
    tables = {paper: current({name: results.claims(name) for name in names[paper]}) for paper in PAPERS}
    return {paper: pd.concat(parts.values(), ignore_index=True) for paper, parts in tables.items() if parts}


def claims_section(tables: Mapping[str, pd.DataFrame]) -> str:
    """The verdicts of every paper in a row; `tables` are those of `saved_claims`."""
    citations = {name: title.rsplit("(", 1)[-1].strip(" )") for name, title in paper_titles().items()}
    short = {name: re.sub(r",\D*", " ", citation) for name, citation in citations.items()}
    return paper_rows(tables, short, "docs/claims.md")


def claims_document(tables: Mapping[str, pd.DataFrame], profile: str, figures: str) -> str:
    """Every claim with interval, control, published value, verdict, figure and measure, as a page of Markdown.

    Where a figure shows one task, the link is to that of the profile's first.
    """
    task = parameters("04_compare", profile)["tasks"][0]
    return claims_page(tables, paper_titles(), known_claims(), encoder_of(profile), figures, task)


def encoder_of(profile: str) -> str:
    """The encoder of a profile, and how it was trained before the study."""
    name = parameters("01_extract", profile)["encoder"]
    return f"{name}: {ENCODERS.get(name, 'as loaded')}"


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


def places(results: Results) -> dict[str, str]:
    """The numbers that README and the summary name, as texts; "–" for a number that no table has."""
    tables, claims = saved_claims(results), known_claims()
    controls = [claim for name in tables for claim in claims[name] if claim.control]
    tasks = parameters("04_compare", results.profile.folder.name)["tasks"]
    names = [f"roles-{task}-finetuned" for task in tasks]
    roles = [results.load_table(name) for name in names if name in results.table_names()]
    counts = role_counts(pd.concat(roles)) if roles else pd.DataFrame(columns=COUNTS)
    numbers = {
        "claims": sum(map(len, tables.values())),
        "claims_with_control": len(controls),
        "encoders": len(roles),
    }
    for role, row in counts.reindex(ROLES).iterrows():
        numbers |= {f"{role}_{label}": row[label] for label in COUNTS}
    return {name: number_text(value) for name, value in numbers.items()}


def number_text(value: float) -> str:
    """A count with separators, another number with two decimals, or a dash for a missing one."""
    if pd.isna(value):
        return "–"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.2f}"


PLACE = re.compile(r"(<!-- (\w+) -->)(\n?)(.*?)(<!-- /\2 -->)", re.DOTALL)


def filled(text: str, values: Mapping[str, str], name: str = "the text") -> str:
    """A text whose named places, `<!-- name -->...<!-- /name -->`, hold these values.

    Raises InputError for a place that has no value. A place that starts with a new line holds a block.
    """

    for _, place, *_ in PLACE.findall(text):
        if place not in values:
            choices = ", ".join(sorted(values))
            raise InputError(f"{name} has the place {place!r}, which no table fills; use {choices}")
    return PLACE.sub(
        lambda match: f"{match[1]}{match[3]}{values[match[2]].strip()}{match[3]}{match[5]}", text
    )


def save_front_page(
    results: Results,
    tables: Mapping[str, pd.DataFrame],
    finetune: pd.DataFrame,
    numbers: Mapping[str, str],
) -> None:
    """Writes README.md and docs/claims.md of the checkout.

    Only the run of Make with all papers writes them: another one has not all tables, and prints that they stay.
    """
    if results.run.scratch or not os.environ.get(WHOLE):
        print("README.md and docs/claims.md stay as they are: make reproduce writes them, with all papers")
        return
    profile = results.home.name
    blocks = {"classifiers": classifiers_section(finetune), "verdicts": claims_section(tables)}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    write_text(ROOT / "README.md", filled(readme, {**numbers, **blocks}, "README.md"))
    page = claims_document(tables, profile, f"../results/{profile}/figures")
    write_text(ROOT / "docs" / "claims.md", page)
