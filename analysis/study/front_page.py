"""The results in README and docs/claims.md: numbers, verdicts, and the claims with definitions."""

import math
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
from analysis.statistics.effects import AUC
from analysis.statistics.roles import COUNTS, ROLES, role_counts
from analysis.study.profiles import parameters
from analysis.study.provenance import records_in, whole_cost
from analysis.study.results import Results
from analysis.study.runs import Folders
from analysis.synthesis.regression import ALL_ROLES, WITHOUT

# The folders of the papers and the synthesis, in the order of their notebooks; the Makefile has the same list.
PAPERS = ("pande2021", "clark2019", "michel2019", "kovaleva2019", "pascual2021", "niven2019", "synthesis")
# What "pre-trained" means in the tables of an encoder.
ENCODERS = {
    "minilm": "MiniLM, a sentence encoder tuned on a billion pairs of texts, which is not a masked language model",
    "mpnet": "MPNet, of BERT-base's size, a sentence encoder tuned on a billion pairs of texts",
    "tiny": "random weights: its heads have learnt nothing",
    "bert-base-uncased": "BERT-base, a masked language model",
}
TEMPLATE = "docs/front-page.md"
TWIN_COLUMNS = ["local_heads", "both_heads", "local_twins", "both_twins"]  # of the table twins
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
    tables = {}
    for paper in PAPERS:
        if parts := current({name: results.load_if_saved(name) for name in names[paper]}):
            tables[paper] = pd.concat(parts.values(), ignore_index=True)
    return tables


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


def places(results: Results) -> dict[str, str]:
    """The numbers that README and the summary name, as texts; "–" for a number that no table has."""
    from analysis.synthesis.matching import BOTH, NATURAL, TO_OWN, TO_WRONG  # loads torch

    tables, profile = saved_claims(results), results.profile.folder.name
    names = [f"roles-{task}-finetuned" for task in parameters("04_compare", profile)["tasks"]]
    roles = [results.load_table(name) for name in names if name in results.table_names()]
    counts = role_counts(pd.concat(roles)) if roles else pd.DataFrame(columns=COUNTS)
    texts = {
        "claims": number_text(sum(map(len, tables.values()))),
        "claims_with_control": number_text(sum(table["control"].notna().sum() for table in tables.values())),
        "encoders": number_text(len(roles)),
    }
    for role, row in counts.reindex(ROLES).iterrows():
        texts |= {f"{role}_{label}": number_text(row[label]) for label in COUNTS}
    syntactic = counts.reindex(ROLES).loc["syntactic"]
    base_rate = syntactic["unlabelled_exceed"] / syntactic["unlabelled"]
    texts |= {"syntactic_base_rate": number_text(base_rate, ".0%")} | _twins(results)
    # Redirecting the matching heads, by pair task: falls of the AUC, and shares of pairs called matching.
    answers = pd.concat([results.load_if_saved(name) for name in ("matching_redirection", "matching_dial")])
    answers = answers.reindex(columns=["task", "trained", "compared", "edit", "fall", "share"])
    answers = answers[answers["trained"].eq(True) & answers["compared"].ne(True)]
    means = answers.groupby(["task", "edit"])[["fall", "share"]].mean().reset_index()
    for task in parameters("11_matching", profile)["pair_tasks"]:
        for name, edit in (("ablated", BOTH), ("own", TO_OWN), ("wrong", TO_WRONG)):
            texts[f"{task}_fall_{name}"] = number_text(number_in(means, "fall", task=task, edit=edit), ".2f")
        for name, edit in (("share", "none"), ("share_dialled", NATURAL)):
            texts[f"{task}_{name}"] = number_text(number_in(means, "share", task=task, edit=edit), ".0%")
    # How many heads of an encoder with random weights the published rule calls block.
    controls = results.load_if_saved("controls")
    untrained = number_in(controls, "published", control="random weights", role="block")
    texts["block_untrained"] = number_text(untrained)
    # The variance of ablation effects that role scores, and shuffled ones, explain without the matching heads.
    slopes = results.load_if_saved("synthesis_regression")
    for column in ("share", "share_shuffled"):
        share = number_in(slopes, column, response=AUC, variant=WITHOUT, term=ALL_ROLES)
        texts[column] = number_text(share, ".0%")
    return texts | _costs()


def _twins(results: Results) -> dict[str, str]:
    """Local labels of heads and of their positional twins, and the share of each that is syntactic as well."""
    table = results.load_if_saved("twins").reindex(columns=["state", *TWIN_COLUMNS])
    sums = table.loc[table["state"] == "finetuned", TWIN_COLUMNS].sum(min_count=1)
    texts = {}
    for name in ("heads", "twins"):
        texts[f"local_{name}"] = number_text(sums[f"local_{name}"])
        texts[f"both_{name}_share"] = number_text(sums[f"both_{name}"] / sums[f"local_{name}"], ".0%")
    return texts


def _costs() -> dict[str, str]:
    """How long the committed runs take on two cores: minutes of offline, hours of the profiles on GLUE."""
    seconds = {}
    for profile in ("offline", "glue-minilm", "glue-mpnet"):
        records = records_in(Folders(profile).folder).values()
        seconds[profile] = (sum(whole_cost(record) or math.nan for record in records) or math.nan) / 2
    return {
        "offline_minutes": number_text(seconds["offline"] / 60, ".0f"),
        "glue_hours": number_text(seconds["glue-minilm"] / 3600, ".1f"),
        "mpnet_hours": number_text(seconds["glue-mpnet"] / 3600, ".1f"),
    }


def number_in(table: pd.DataFrame, column: str, **row: str) -> float | None:
    """The number of a column in the first row with these values; None without such a row or column."""
    table = table.reindex(columns=[*row, column])
    is_row = (table[[*row]] == [*row.values()]).all(axis=1)
    return next(iter(table.loc[is_row, column]), None)


def number_text(value: float | None, form: str = "") -> str:
    """A number in a format, else a count with separators or two decimals; a dash for a missing one."""
    if pd.isna(value):
        return "–"
    return format(value, form or (",.0f" if float(value).is_integer() else ".2f"))


def filled(text: str, values: Mapping[str, str], name: str) -> str:
    """A text with its places, `{name}`, filled; raises InputError for a place that has no value."""
    unknown = {*re.findall(r"\{(\w+)\}", text)} - {*values}
    if unknown:
        raise InputError(
            f"{name} has the place {{{min(unknown)}}}, which no table fills; use {', '.join(sorted(values))}"
        )
    return re.sub(r"\{(\w+)\}", lambda place: values[place[1]], text)


def front_page(numbers: Mapping[str, str], tables: Mapping[str, pd.DataFrame]) -> str:
    """README.md: the text of docs/front-page.md with numbers of `places` and the verdicts of all papers."""
    text = (ROOT / TEMPLATE).read_text(encoding="utf-8")
    return filled(text, {**numbers, "verdicts": claims_section(tables)}, TEMPLATE)


def save_front_page(results: Results, tables: Mapping[str, pd.DataFrame], numbers: Mapping[str, str]) -> None:
    """Writes README.md and docs/claims.md of the checkout.

    Only the run of Make with all papers writes them: another one has not all tables, and prints that they stay.
    """
    if results.run.scratch or not os.environ.get(WHOLE):
        print("README.md and docs/claims.md stay as they are: make reproduce writes them, with all papers")
        return
    profile = results.home.name
    page = claims_document(tables, profile, f"../results/{profile}/figures")
    write_text(ROOT / "README.md", front_page(numbers, tables))
    write_text(ROOT / "docs" / "claims.md", page)
