"""The pages made of results: README, claims.md and figures.md in docs/, and the index of a profile's notebooks."""

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

import analysis
from analysis.errors import InputError
from analysis.files import ROOT, parse_yaml, write_text
from analysis.statistics.claim_pages import claims_page, current, judged_counts, paper_rows
from analysis.statistics.claims import VERDICTS, Claim, read_claims
from analysis.statistics.encoders import (
    BOTH,
    DIFFER,
    NONE,
    REFUTED,
    UNDECIDED,
    agreement_counts,
    encoder_table,
    units_of_claims,
)
from analysis.statistics.roles import COUNTS, role_counts
from analysis.study.parameters import notebook_names, source
from analysis.study.profiles import MACHINE_ROOM, MADE_UP, command, made_up, not_run, parameters
from analysis.study.provenance import records_in, whole_cost
from analysis.study.results import Results, results_to_read
from analysis.study.runs import Folders, short

# The folders of the papers and the synthesis, in the order of their notebooks; the Makefile has the same list.
PAPERS = ("pande2021", "clark2019", "michel2019", "kovaleva2019", "pascual2021", "niven2019", "synthesis")
# What "pre-trained" means in the tables of an encoder.
ENCODERS = {
    "minilm": "MiniLM (all-MiniLM-L6-v2), a sentence encoder trained on a billion text pairs. It is not a masked "
    "language model",
    "mpnet": "MPNet (all-mpnet-base-v2), of BERT-base's size, a sentence encoder trained on a billion text pairs",
    "tiny": "tiny, with random weights: its heads have learnt nothing",
    "bert-base-uncased": "BERT-base, a masked language model",
}
ABSTRACT_ALONE = "pascual2021"  # the paper of whose text only the abstract is known: its claims are questions
TEMPLATE = "docs/front-page.md"
# A paragraph of the template that is there if this profile has claims.
OPTIONAL = re.compile(r"<!-- if ([\w-]+) -->\n(.*?\n\n)", re.DOTALL)
BESIDE = "glue-mpnet"  # the profile of the second encoder
# A place of the template for a number of a table: {table.column[row=value; row=value]:format}, and of another profile's
# table: {profile/table.column[row=value]:format}
TABLE_PLACE = re.compile(r"\{(?:([\w-]+)/)?(\w+)\.(\w+)\[([^\]]*)\](?::([^}]*))?\}")
# What docs/figures.md says before its tables.
FIGURES_HEAD = """# Figures and tables of the papers

Where each stands in this study, for each of its two encoders. *Same quantity*: the measure is that of the paper, on the
encoders and texts of this study. *Other quantity*: a related measure stands there. *Missing*: there is nothing to
compare. The last column says what differs.""".split("\n")
FIRST = ("02_score", "03_test", "11_matching_all", "99_summary")  # what a newcomer reads first
TWIN_COLUMNS = ["local_heads", "both_heads", "local_twins", "both_twins"]  # of the table twins
# The names of how many claims this encoder shares with that of BESIDE.
ON_BOTH = {BOTH: "both_supported", UNDECIDED: "both_undecided", REFUTED: "both_refuted", NONE: "both_none"}
# How numbers are written, by the last word of their names; others are counts with separators, or have two decimals.
FORMS = {"rate": ".0%", "share": ".0%", "minutes": ".0f", "hours": ".1f"}
# Profiles whose results say how long a run takes on two cores.
TIMES = {"offline_minutes": "offline", "glue_hours": "glue-minilm", "mpnet_hours": BESIDE}
WHOLE = "STUDY_WHOLE"  # the environment variable that Make sets if all papers run


def paper_titles() -> dict[str, str]:
    """The title of every paper, the first sentence of its package, by the name of its folder."""
    homes = {name: "analysis" if name == "synthesis" else "analysis.papers" for name in PAPERS}
    texts = {name: import_module(f"{home}.{name}").__doc__ for name, home in homes.items()}
    return {name: text.split("\n")[0].rstrip(".") for name, text in texts.items()}


def known_claims() -> dict[str, list[Claim]]:
    """The claims of every paper as they stand in its claims.yaml."""
    paths = {path.parent.name: path for path in Path(analysis.__file__).parent.rglob("claims.yaml")}
    return {name: read_claims(paths[name]) for name in PAPERS}


def saved_claims(results: Results) -> dict[str, pd.DataFrame]:
    """The claims of the papers that have run in this profile, from one table each and two of the synthesis."""
    names = {paper: [f"claims-{paper}"] for paper in PAPERS}
    names["synthesis"].append("claims-matching")
    parts = {paper: current({name: results.load_if_saved(name) for name in names[paper]}) for paper in PAPERS}
    return {paper: pd.concat(part.values(), ignore_index=True) for paper, part in parts.items() if part}


def has_claims(profile: str) -> bool:
    """Whether a profile has claims, in the folder of results or in the checkout."""
    return bool(saved_claims(results_to_read(profile)))


def by_encoder(profiles: Sequence[str]) -> dict[str, str]:
    """Profiles by the names of their encoders; encoders of one name have that of the profile too."""
    names = [encoder_name(profile) for profile in profiles]
    repeated = {name for name in names if names.count(name) > 1}
    labels = [
        f"{name} ({profile})" if name in repeated else name
        for name, profile in zip(names, profiles, strict=True)
    ]
    if len({*labels}) < len(labels):  # a profile beside itself
        labels = [f"{label}, {number}" for number, label in enumerate(labels, 1)]
    return dict(zip(labels, profiles, strict=True))


def claims_by_encoder(*profiles: str) -> dict[str, pd.DataFrame]:
    """The claims of all papers by the name of the encoder; raises InputError for a profile without any."""
    claims = {}
    for name, profile in by_encoder(profiles).items():
        if not (tables := saved_claims(results_to_read(profile))):
            raise InputError(f"profile {profile} has no claims yet: run make reproduce PROFILE={profile}")
        claims[name] = pd.concat(tables.values(), ignore_index=True)
    return claims


def units_by_encoder(*profiles: str) -> dict[str, pd.DataFrame]:
    """The units of all claims by the name of the encoder; raises InputError for a profile without claims."""
    claims = claims_by_encoder(*profiles)
    return {
        name: saved_units(results_to_read(profile), claims[name])
        for name, profile in by_encoder(profiles).items()
    }


def saved_units(results: Results, claims: pd.DataFrame) -> pd.DataFrame:
    """The units of claims that notebooks saved; a claim whose units were not saved has one, its mean."""
    tables = [results.load_table(name) for name in results.table_names() if name.startswith("units-")]
    if not tables:
        return units_of_claims(claims)
    saved = pd.concat(tables, ignore_index=True).fillna({"unit": "", "reason": ""}).astype({"unit": str})
    rest = units_of_claims(claims[~claims["claim"].isin(saved["claim"])])
    return pd.concat([saved, rest], ignore_index=True) if len(rest) else saved


def papers_without_claims(profile: str) -> list[str]:
    """The papers of which a profile has no table of claims, so that its run is not complete."""
    tables = saved_claims(results_to_read(profile))
    return [name for name in PAPERS if name not in tables]


def claims_section(tables: Mapping[str, pd.DataFrame]) -> str:
    """The verdicts of every paper in a row; `tables` are those of `saved_claims`."""
    citations = {name: title.rsplit("(", 1)[-1].strip(" )") for name, title in paper_titles().items()}
    citations = {name: re.sub(r",\D*", " ", citation) for name, citation in citations.items()}
    citations[ABSTRACT_ALONE] = f"questions after {citations[ABSTRACT_ALONE]}"
    return paper_rows(tables, citations, "docs/claims.md")


def claims_document(tables: Mapping[str, pd.DataFrame], profile: str, figures: str) -> str:
    """Every claim with interval, control, published value, verdict, figure (of the first task) and measure."""
    task = parameters("04_compare", profile)["tasks"][0]
    other = claims_by_encoder(BESIDE) if profile != BESIDE and has_claims(BESIDE) else {}
    return claims_page(tables, paper_titles(), known_claims(), encoder_of(profile), figures, task, other)


def figures_document(*profiles: str) -> str:
    """Where every figure and table of the papers stands in each profile, as Markdown: docs/tables.yaml, `published`."""
    path = ROOT / "docs" / "tables.yaml"
    published = parse_yaml(path.read_bytes(), path)["published"]
    encoders = " | ".join(map(encoder_name, profiles))
    lines = [*FIGURES_HEAD]
    for paper, title in paper_titles().items():
        if rows := [row for row in published if row["paper"] == paper]:
            lines += ["", f"## {title}", "", f"| in the paper | {encoders} | here | why |"]
            lines.append("|---" * (3 + len(profiles)) + "|")
        for row in rows:
            links = " | ".join(_links(row, profile) for profile in profiles)
            lines.append(f"| {row['item']} | {links} | {row['here']} | {row['why']} |")
    return "\n".join(lines) + "\n"


def _links(row: Mapping[str, Any], profile: str) -> str:
    """Links to the figures of a row of `published` and to their notebooks in a profile; a dash if it has none."""
    figures, notebooks = {}, [row["notebook"]] if "notebook" in row else []
    for name in row.get("figures", []):
        saved = f'"{name}"'.replace('*"', "{")
        notebooks += [name for name in notebook_names() if saved in source(name).read_text(encoding="utf-8")]
        task = parameters(notebooks[-1], profile).get("task", "")
        figures[name.replace("*", task)] = f"figures/{name.replace('*', task)}.png"
    if profile not in row.get("profiles", [profile]) or {*notebooks} & {*not_run(profile)}:
        return "–"
    for notebook in dict.fromkeys(notebooks):
        run = "-".join(filter(None, [notebook, parameters(notebook, profile).get("task")]))
        figures[notebook] = f"notebooks/{run}.ipynb"
    return ", ".join(f"[{name}](../results/{profile}/{file})" for name, file in figures.items()) or "–"


def encoder_of(profile: str) -> str:
    """The encoder of a profile, and how it was trained before the study."""
    name = parameters("01_extract", profile)["encoder"]
    return ENCODERS.get(name, f"{name}, as loaded")


def encoder_name(profile: str) -> str:
    """The name of the encoder of a profile, as prose writes it."""
    name = parameters("01_extract", profile)["encoder"]
    return re.split(r"[,:]| \(", ENCODERS.get(name, name))[0]


def label_counts(results: Results) -> dict[str, float]:
    """How many local and syntactic labels heads and their twins have after fine-tuning, in all tasks of a profile."""
    names = [
        f"roles-{task}-finetuned" for task in parameters("04_compare", results.profile.folder.name)["tasks"]
    ]
    roles = [results.load_table(name) for name in names if name in results.table_names()]
    syntactic = role_counts(pd.concat(roles)).loc["syntactic"] if roles else pd.Series(math.nan, COUNTS)
    numbers = {
        "encoders": len(roles),
        "syntactic_base_rate": syntactic["unlabelled_exceed"] / syntactic["unlabelled"],
        **syntactic.add_prefix("syntactic_"),
    }
    twins = results.load_if_saved("twins").reindex(columns=["state", *TWIN_COLUMNS])
    sums = twins.loc[twins["state"] == "finetuned", TWIN_COLUMNS].sum(min_count=1)
    for name in ("heads", "twins"):
        local, both = sums[f"local_{name}"], sums[f"both_{name}"]
        numbers |= {f"local_{name}": local, f"both_{name}_share": both / (local or math.nan)}
    return numbers


def places(results: Results) -> dict[str, str]:
    """The numbers that README and the summary name and that stand in no table, as texts; a dash for a missing one."""
    tables, profile = saved_claims(results), results.profile.folder.name
    others = claims_by_encoder(BESIDE).values() if profile != BESIDE and has_claims(BESIDE) else []
    counts = judged_counts([*tables.values(), *others])
    numbers = {
        "claims": sum(map(len, tables.values())),
        "judged": judged_counts(tables.values())["n"],
        "judged_everywhere": counts["n"],
        "by_chance": counts["chance"],
        "claims_with_control": sum(table["control"].notna().sum() for table in tables.values()),
    }
    numbers |= label_counts(results)
    numbers |= {f"beside_{name}": value for name, value in label_counts(results_to_read(BESIDE)).items()}
    for name, committed in TIMES.items():
        records = records_in(Folders(committed).folder).values()
        cpu_seconds = sum(whole_cost(record) or math.nan for record in records) or math.nan
        numbers[name] = cpu_seconds / 2 / (60 if name.endswith("minutes") else 3600)
    agreement = pd.Series(dtype=float)
    if has_claims(profile) and has_claims(BESIDE):
        known = [claim for claims in known_claims().values() for claim in claims]
        compared = encoder_table(units_by_encoder(BESIDE, profile), known)
        agreement = agreement_counts(compared)
        numbers["both_differ"] = int((compared["relation"] == DIFFER).sum())
    agreement = agreement.reindex([*ON_BOTH])
    numbers |= agreement.rename(ON_BOTH).to_dict() | {"both_judged": agreement.sum(min_count=1)}
    numbers.setdefault("both_differ", math.nan)
    return {name: number_text(number, FORMS.get(name.split("_")[-1], "")) for name, number in numbers.items()}


def table_number(results: Results, table: str, column: str, rows: str, form: str | None) -> str:
    """The mean of a column over rows such as `task=mrpc; trained=True`, or a dash; raises InputError without it."""
    values = dict(pair.split("=", 1) for pair in rows.split("; "))
    selected = results.load_if_saved(table)
    if table not in results.table_names():
        return number_text(None)
    if missing := {column, *values} - {*selected}:
        raise InputError(f"{TEMPLATE}: table {table} has no column {min(missing)}: {', '.join(selected)}")
    for name, value in values.items():
        selected = selected[selected[name].astype(str) == value]
    return number_text(selected[column].mean(), form or "")


def number_text(value: float | None, form: str = "") -> str:
    """A number in a format, else a count with separators or two decimals; a dash for a missing one. 47 %, not 47%."""
    if pd.isna(value):
        return "–"
    return format(value, form or (",.0f" if float(value).is_integer() else ".2f")).replace("%", " %")


def filled(text: str, values: Mapping[str, str], name: str) -> str:
    """A text with its places, `{name}`, filled; raises InputError for a place that has no value."""
    for place in re.findall(r"\{(\w+)\}", text):
        if place not in values:
            choices = ", ".join(sorted(values))
            raise InputError(f"{name} has the place {{{place}}}, which no table fills; use {choices}")
        text = text.replace(f"{{{place}}}", values[place])
    return text


def front_page(results: Results, numbers: Mapping[str, str], tables: Mapping[str, pd.DataFrame]) -> str:
    """README.md: the text of docs/front-page.md with numbers of tables and of `places`, and all verdicts."""
    text = (ROOT / TEMPLATE).read_text(encoding="utf-8")
    text = OPTIONAL.sub(lambda paragraph: paragraph[2] if has_claims(paragraph[1]) else "", text)
    text = TABLE_PLACE.sub(
        lambda place: table_number(results_to_read(place[1]) if place[1] else results, *place.groups()[1:]),
        text,
    )
    return filled(text, {**numbers, "verdicts": claims_section(tables)}, TEMPLATE)


def save_front_page(results: Results, tables: Mapping[str, pd.DataFrame], numbers: Mapping[str, str]) -> None:
    """Writes the pages of the checkout if Make runs all papers; another run has not all tables, and says they stay."""
    if results.run.scratch or not os.environ.get(WHOLE):
        print("README.md and docs/claims.md stay as they are: make reproduce writes them, with all papers")
        return
    profile = results.home.name
    page = claims_document(tables, profile, f"../results/{profile}/figures")
    write_text(ROOT / "README.md", front_page(results, numbers, tables))
    write_text(ROOT / "docs" / "claims.md", page)
    write_text(ROOT / "docs" / "figures.md", figures_document(profile, BESIDE))


def verdicts(profile: str) -> Iterator[str]:
    """A line for every paper: how many of its claims have each verdict."""
    tables = saved_claims(Results(profile))
    for name in PAPERS:
        counts = tables[name]["verdict"].value_counts() if name in tables else {}
        words = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts]
        yield f"{name}: {', '.join(words) or 'no verdicts'}"


def write_index(profile: str, runs: Sequence[str]) -> Path:
    """Writes the index: verdicts, and the notebooks of `runs` that have run, with their figures; returns its path.

    Raises InputError if none has run.
    """
    folders = Folders(profile)
    records = records_in(folders.folder)
    copies: dict[str, list[str]] = {}
    for run in runs:
        notebook = run.split("-")[0]
        if notebook not in MACHINE_ROOM and (folders.notebooks / f"{run}.ipynb").exists():
            copies.setdefault(notebook, []).append(run)
    if not copies:
        raise InputError(
            f"{short(folders.notebooks)} has no executed copies: run make reproduce PROFILE={profile}"
        )
    lines = [f"# Results of profile `{profile}`", "", *([MADE_UP, ""] if made_up(profile) else [])]
    lines += [f"Encoder: {encoder_of(profile)}.", "", "## Read these first", ""]
    lines += [f"1. [{_title(name)}](notebooks/{copies[name][0]}.ipynb)" for name in FIRST if name in copies]
    lines += ["", "## Verdicts", "", *(f"- {line}" for line in verdicts(profile))]
    lines += ["", "## Notebooks and figures", ""]
    for name, names in copies.items():
        links = [f"[{run.partition('-')[2] or run}](notebooks/{run}.ipynb)" for run in names]
        lines.append(f"- **{_title(name)}** {' · '.join(links)}")
        figures = [figure for run in names for figure in records.get(run, {}).get("figures", {})]
        if figures:
            lines.append(f"  - {' · '.join(f'[{figure}](figures/{figure}.png)' for figure in figures)}")
    if (folders.folder / "explorer.html").exists():
        lines += ["", "[Head explorer](explorer.html): browse every head, its roles and its attention."]
    path = folders.folder / "README.md"
    write_text(path, "\n".join(lines) + "\n")
    return path


def _title(notebook: str) -> str:
    """The first heading of a notebook."""
    return re.search(r"^# # (.+)$", source(notebook).read_text(encoding="utf-8"), re.MULTILINE)[1].strip()


if __name__ == "__main__":
    command(write_index, "runs")
