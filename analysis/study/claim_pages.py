"""Claims as tables and pages of Markdown, from `claims.yaml` and `claims-<paper>.csv`."""

import re
import textwrap
from collections.abc import Iterable, Mapping

import pandas as pd

from analysis.statistics.claim_texts import HEADER, LEGENDS, cells, number, records, short_results, with_sink
from analysis.statistics.claims import INCONCLUSIVE, NOT_APPLICABLE, VERDICTS, Claim
from analysis.statistics.intervals import MINIMUM_RUNS
from analysis.study.claims import encoder_of, known_claims, paper_titles
from analysis.study.profiles import parameters

MULTIPLICITY = (
    "With {n} verdicts at the 95 % level, about {chance} of those called *supported* may be so by chance. Most "
    "thresholds are ours."
)
TERMS = (
    "Intervals are over sequences (texts, or pairs of them), and over runs if there are three or more, unless a "
    "definition says otherwise; *cross-fitted* heads are chosen on one half of the data and read on the other."
)
FOLDED = "<details><summary>Definitions, units and controls</summary>"
WIDTH = 196  # characters of a line
OURS = "this study"  # the source of a claim that no paper makes
ABSTRACT_ALONE = "pascual2021"  # the paper of whose text only the abstract is known: its claims are questions


def claims_markdown(claims: pd.DataFrame, known: Iterable[Claim]) -> str:
    """The claims of a paper as a table of Markdown, above what its marks mean and the folded definitions."""
    known = list(known)
    table = markdown_table(claims, known)
    return "\n\n".join([table, f"{_legends(table)} {TERMS}".strip(), _folded(claims, known)])


def _legends(tables: str) -> str:
    """What the marks in some tables mean."""
    return " ".join(legend for mark, legend in LEGENDS.items() if mark in tables)


def _folded(claims: pd.DataFrame, known: Iterable[Claim], ranges: bool = True) -> str:
    """The definitions of the claims of a paper, to unfold."""
    return "\n\n".join([FOLDED, definitions(claims, known, ranges), "</details>"])


def definitions(claims: pd.DataFrame, known: Iterable[Claim], ranges: bool = True) -> str:
    """A list of Markdown: what each claim measures, of which units and runs, and what its row does not say.

    With `ranges`, the smallest and the largest value over units as well.
    """
    rows, lines, known = {row["claim"]: row for row in records(claims)}, [], [*known]
    titled = all(claim.source.startswith(OURS) for claim in known)  # the section says so
    for claim in known:
        row = rows.get(claim.id, {"token": "", "verdict": NOT_APPLICABLE})
        fields = {}
        if not pd.isna(row.get("estimate")):
            compared = {"Control": claim.control, "For comparison": claim.reference}
            shown = {"Control": row["control"], "For comparison": row["reference"]}
            fields = {"": _units_text(row, claim.unit, ranges)}
            usual = "runs and sequences" if row["runs"] >= MINIMUM_RUNS else "sequences"
            of_sequences = row["interval"].replace("pairs", "sequences")  # a pair of texts is a sequence
            fields["Interval over"] = "" if of_sequences == usual else row["interval"]
            fields |= {name: compared[name] for name in compared if not pd.isna(shown[name])}
            fields["Note"] = row["reason"] if row["verdict"] not in (INCONCLUSIVE, NOT_APPLICABLE) else ""
        source = "" if titled and claim.source == OURS else f" ({claim.source})"
        text = f"- **{claim.id}**{source}. {with_sink(claim.measure, row['token'])} "
        text += " ".join(
            f"*{name}*: {words}.".removeprefix("**: ") for name, words in fields.items() if words
        )
        lines.append(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(lines)


def _units_text(row: Mapping[str, object], unit: str, ranges: bool) -> str:
    """How many units and fine-tuning runs there are; with `ranges` also the smallest and the largest value."""
    counts = [(unit, row["units"], 1), ("run", row["runs"], 0)]
    text = ", ".join(f"{count:g} × {name}" for name, count, least in counts if count > least)
    names = ("smallest", "largest") if ranges and row["units"] > 1 else ()
    ends = [(row[end], row[f"{end}_unit"]) for end in names]
    return ": ".join(filter(None, [text, " to ".join(f"{number(value)} ({name})" for value, name in ends)]))


def markdown_table(
    claims: pd.DataFrame,
    known: Iterable[Claim],
    figures: str = "",
    task: str = "",
    others: Mapping[str, pd.DataFrame] = {},
) -> str:
    """The rows of `cells` as Markdown, with a column of `short_results` for each of `others`, encoders by name.

    With `figures`, the folder of the figures, ids are anchors and link to them, to that of `task` where it shows one.
    """
    same = dict(zip(claims["claim"], claims["verdict"], strict=True))
    results = {name: short_results(table, same) for name, table in others.items()}
    names = {claim.id: _linked(claim, figures, task) if figures else claim.id for claim in known}
    header = [*HEADER, *results]
    lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
    for claim, statement, *numbers in cells(claims, known).itertuples(index=False):
        texts = [
            f"{names[claim]} {statement}",
            *numbers,
            *(column.get(claim, "") for column in results.values()),
        ]
        lines.append("| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts) + " |")
    return "\n".join(lines)


def _linked(claim: Claim, figures: str, task: str) -> str:
    """The id of a claim as an anchor, with a link to its figure if it has one."""
    link = f"[{claim.id}]({figures}/{claim.figure.format(task=task)}.png)" if claim.figure else claim.id
    return f'<a id="{claim.id}"></a>{link}'


def claims_document(
    tables: Mapping[str, pd.DataFrame], profile: str, figures: str, others: Mapping[str, pd.DataFrame] = {}
) -> str:
    """Every claim in the table of its paper, above its definition, as a page of Markdown.

    `figures` is the folder of the figures, `others` are the claims of other encoders by name, those of all papers
    together.
    """
    task, known, titles = parameters("04_compare", profile)["tasks"][0], known_claims(), paper_titles()
    rows = {
        paper: markdown_table(claims, known[paper], figures, task, others) for paper, claims in tables.items()
    }
    multiplicity = MULTIPLICITY.format(**judged_counts([*tables.values(), *others.values()]))
    intro = f"Measured on {encoder_of(profile)}. {multiplicity} Published values are of"
    intro += f" BERT-base unless they say otherwise. {TERMS} {_legends(str(rows))}"
    intro += " Columns of other encoders name a verdict where it differs." if others else ""
    few = [name for name, table in others.items() if 0 < table["runs"].max() < MINIMUM_RUNS]
    if few:
        intro += f" What changes with the run is *inconclusive* on {' and '.join(few)}: too few runs."
    lines = ["# Claims", "", *textwrap.wrap(intro, WIDTH)]
    for paper, claims in tables.items():
        lines += ["", f'<a id="{paper}"></a>', "", f"## {titles[paper]}", ""]
        lines += [rows[paper], "", _folded(claims, known[paper], ranges=False)]  # figures show them
    return "\n".join(lines) + "\n"


def judged_counts(tables: Iterable[pd.DataFrame]) -> dict[str, int]:
    """The verdicts in tables of claims (n), and how many *supported* ones chance gives if no claim is true (chance)."""
    n = sum(int((table["verdict"] != NOT_APPLICABLE).sum()) for table in tables)
    return {"n": n, "chance": round(0.025 * n)}


def verdicts_by_paper(tables: Mapping[str, pd.DataFrame], page: str = "") -> str:
    """A table of Markdown with a row for each paper: how many of its claims have each verdict."""
    titles = {name: title.rsplit("(", 1)[-1].strip(" )") for name, title in paper_titles().items()}
    titles = {name: re.sub(r",\D*", " ", title) for name, title in titles.items()}
    titles[ABSTRACT_ALONE] = f"questions after {titles[ABSTRACT_ALONE]}"
    lines = [f"| paper | {' | '.join(VERDICTS)} |", "|---" * (1 + len(VERDICTS)) + "|"]
    for paper, claims in tables.items():
        counts = claims["verdict"].value_counts().reindex(VERDICTS, fill_value=0)
        lines.append(f"| [{titles[paper]}]({page}#{paper}) | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)
