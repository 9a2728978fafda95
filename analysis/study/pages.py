"""README.md and docs/claims.md, made of the tables in results/: `make pages`."""

import math
from functools import partial

import pandas as pd
from jinja2 import Environment, StrictUndefined

from analysis.errors import InputError, exit_status
from analysis.files import ROOT, write_text
from analysis.statistics.encoders import DIFFER, NOT_JUDGED, agreement_counts, encoder_table
from analysis.statistics.roles import COUNTS, role_counts
from analysis.study.claim_pages import claims_document, judged_counts, verdicts_by_paper
from analysis.study.claims import has_claims, known_claims, other_encoders, saved_claims, units_by_encoder
from analysis.study.profiles import parameters
from analysis.study.provenance import records_in, whole_cost
from analysis.study.results import Results, results_to_read

PROFILE = "glue-minilm"  # whose numbers the pages show
TEMPLATE = "docs/front-page.md"
TWIN_COLUMNS = ["local_heads", "both_heads", "local_twins", "both_twins"]  # of the table twins


def number_text(value: object) -> object:
    """A number as a count with separators, or with two decimals; a dash for a missing one. Texts stay."""
    if isinstance(value, str):
        return value
    return "–" if pd.isna(value) else format(value, ",.0f" if float(value).is_integer() else ".2f")


def percent(value: float) -> str:
    """A proportion in percent: 47 %."""
    return "–" if pd.isna(value) else f"{100 * value:.0f} %"


def values_of(table: str, column: str, profile: str, **rows: object) -> pd.Series:
    """A column of a saved table of a profile, in rows such as task="mrpc"; none if the table is not saved.

    Raises InputError for a column that is not there.
    """
    results = results_to_read(profile)
    if table not in results.table_names():
        return pd.Series(dtype=float)
    selected = results.load_table(table)
    if missing := {column, *rows} - {*selected}:
        raise InputError(f"{TEMPLATE}: table {table} has no column {min(missing)}: {', '.join(selected)}")
    for name, value in rows.items():
        selected = selected[selected[name].astype(str) == str(value)]
    return selected[column]


def number(table: str, column: str, profile: str, **rows: object) -> float:
    """The mean of `values_of`; NaN without rows."""
    return values_of(table, column, profile, **rows).mean()


def total(table: str, column: str, profile: str, **rows: object) -> float:
    """The sum of `values_of`; NaN without rows."""
    return values_of(table, column, profile, **rows).sum(min_count=1)


def hours(profile: str) -> float:
    """How long the committed run of a profile takes on two cores; NaN if it is not known."""
    records = records_in(results_to_read(profile).profile.folder).values()
    return sum(whole_cost(record) or math.nan for record in records) / 2 / 3600 or math.nan


def decimals(value: float, digits: int) -> str:
    """A number with some decimals; a dash for a missing one."""
    return "–" if pd.isna(value) else f"{value:.{digits}f}"


def label_counts(results: Results) -> dict[str, float]:
    """How many local and syntactic labels heads and their twins have after fine-tuning, in all tasks of a profile."""
    names = [
        f"roles-{task}-finetuned" for task in parameters("04_compare", results.profile.home.name)["tasks"]
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


def agreement(*profiles: str) -> dict[str, int]:
    """How the claims of two profiles agree: their numbers, without those not judged, and how many estimates differ."""
    known = [claim for claims in known_claims().values() for claim in claims]
    table = encoder_table(units_by_encoder(*profiles), known)
    counts = {name: count for name, count in agreement_counts(table).items() if name != NOT_JUDGED}
    return counts | {"differ": int((table["relation"] == DIFFER).sum())}


def front_page(profile: str = PROFILE) -> str:
    """README.md: the text of docs/front-page.md, a Jinja template, with numbers of tables and all verdicts."""
    environment = Environment(
        undefined=StrictUndefined, finalize=number_text, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"percent": percent, "decimals": decimals}
    environment.globals |= {"hours": hours, "has": has_claims}
    environment.globals |= {
        "number": partial(number, profile=profile),
        "total": partial(total, profile=profile),
    }
    environment.globals |= {
        "labels": lambda name=profile: label_counts(results_to_read(name)),
        "agreement": lambda name: agreement(name, profile),
    }
    tables, others = saved_claims(results_to_read(profile)), other_encoders(profile)
    values = {
        "claims": sum(map(len, tables.values())),
        "judged": judged_counts(tables.values())["n"],
        "everywhere": judged_counts([*tables.values(), *others.values()]),
        "claims_with_control": sum(table["control"].notna().sum() for table in tables.values()),
        "verdicts": verdicts_by_paper(tables, "docs/claims.md"),
    }
    return environment.from_string((ROOT / TEMPLATE).read_text(encoding="utf-8")).render(values)


def pages() -> dict[str, str]:
    """The text of every page by its path."""
    tables = saved_claims(results_to_read(PROFILE))
    claims = claims_document(tables, PROFILE, f"../results/{PROFILE}/figures", other_encoders(PROFILE))
    return {"README.md": front_page(), "docs/claims.md": claims}


def write_pages() -> None:
    """Writes README.md and docs/claims.md."""
    for name, text in pages().items():
        write_text(ROOT / name, text)


if __name__ == "__main__":
    raise SystemExit(exit_status(write_pages))
