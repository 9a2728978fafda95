"""The head explorer as the page of a study, and as a view of one text in a notebook cell."""

import hashlib
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.explorer.measures import measures_of
from analysis.explorer.packing import Sentence, merged, pack
from analysis.explorer.page import fitted, rendered
from analysis.explorer.payload import (
    claim_tables,
    deflated,
    grouped,
    head_tables,
    scores_of,
    shape_of,
)
from analysis.files import write_text
from analysis.scores.sieves import SIEVES
from analysis.statistics.roles import ROLES
from analysis.texts.examples import Example, Relation

FORMAT, VERSION = "head-explorer", 1
OWN = "own text"


@dataclass(frozen=True)
class HeadView:
    """A head explorer page: a notebook shows it inline, and `save` writes it as a file."""

    page: str = field(repr=False)
    described: str
    height: int = 760  # pixels of the view in a notebook

    def save(self, path: str | Path) -> Path:
        """Writes the whole page or nothing; it opens from disk without a network. Returns the path."""
        write_text(Path(path), self.page)
        return Path(path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that it affects neither the notebook nor other views.

        JupyterLab removes frame and style from a notebook that is not trusted; only the text remains.
        """
        name = f"head-view-{hashlib.sha256(self.page.encode()).hexdigest()[:12]}"
        return (
            f'<p class="{name}">{html.escape(self.described)}: run this cell, or trust the notebook, to see the heads.'
            f"</p><style>.{name} {{ display: none; }}</style>"
            f'<iframe sandbox="allow-scripts allow-downloads" title="{html.escape(self.described)}" '
            f'style="width: 100%; height: {self.height}px; border: 0" srcdoc="{html.escape(self.page)}"></iframe>'
        )


def explorer(
    tables: pd.DataFrame | None,
    attention: Iterable[Sentence] = (),
    *,
    others: Mapping[str, pd.DataFrame] | None = None,
    papers: Mapping[str, str] | None = None,
    tau: float = 3.0,
    alpha: float = 0.05,
    title: str = "",
    provenance: str = "",
    limit: int = 6_000_000,
    height: int = 760,
) -> HeadView:
    """The page of role tables (as `Results.role_tables` gives them) and packed sentences (see `pack`).

    `others` are the study's tables by name. The page also shows those of claims, under the titles that `papers` gives
    by name, and those with columns layer and head. `tau` is the threshold of the labels. The page has at most `limit`
    bytes: if it is larger, the longest sentences are left out and named. Raises InputError for tables that are not role
    tables, for tables and sentences of different encoders, and if nothing fits.
    """
    content = _content(tables, merged(attention), others or {}, papers or {})
    texts = {"title": title or "Head explorer", "provenance": provenance}
    numbers = {"format": FORMAT, "version": VERSION, "tau": tau, "alpha": alpha}
    kept = fitted(content | texts | numbers, limit)
    shape = f"{kept['layers']} layers x {kept['heads']} heads"
    described = f"Head explorer, {shape}, sentences: {len(kept['sentences'])}"
    return HeadView(rendered(kept), described, height)


def _content(
    tables: pd.DataFrame | None,
    sentences: Sequence[Sentence],
    others: Mapping[str, pd.DataFrame],
    papers: Mapping[str, str],
) -> dict[str, Any]:
    """The data of the page, as plain lists, numbers and texts."""
    table = None if tables is None else grouped(tables)
    layers, heads = _shape(table, sentences)
    scores = {} if table is None else scores_of(table, (layers, heads))
    tasks, states = _names(scores, sentences)
    roles = [*([] if table is None else table["role"]), *(role for s in sentences for role in s["scores"])]
    of_heads = head_tables(others, tasks, states)
    return {
        "layers": layers,
        "heads": heads,
        "tasks": tasks,
        "states": states,
        "roles": [{"name": role, "about": about(role)} for role in _in_order(roles)],
        "scores": scores,
        "sentences": [{key: s[key] for key in s.keys() - {"layers", "heads"}} for s in sentences],
        "tables": deflated(of_heads),
        "measures": measures_of(of_heads),
        "claims": claim_tables(others, papers),
    }


def head_view(
    encoder: Encoder,
    text_a: str,
    text_b: str | None = None,
    *,
    relations: Sequence[Relation] | None = None,
    roles: Sequence[str] = ("local", "delimiter", "block"),
    table: pd.DataFrame | None = None,
    max_tokens: int = 128,
    height: int = 760,
) -> HeadView:
    """What every head of an encoder attends to in one or two texts; a notebook shows it as the last value of a cell.

    `roles` are registered sieves, also your own, or relations, which need the `relations` of these texts. `table` is a
    role table of the same encoder; without it, the page has only the scores on this text. Raises InputError as `pack`
    and `explorer` do.
    """
    example = Example(OWN, text_a, text_b)
    known = None if table is None else grouped(table)
    state = encoder.name if known is None or known["state"].nunique() > 1 else known["state"].iloc[0]
    found = pack(encoder, [example], {OWN: tuple(relations or ())}, roles, state, max_tokens=max_tokens)
    return explorer(table, found, provenance=encoder.name, height=height)


def about(role: str) -> str:
    """One sentence on the tokens that a role's sieve marks; for a registered sieve, the first line of its docstring."""
    if role in ROLES and ROLES[role].about:
        return ROLES[role].about
    sieve = ROLES[role].sieve if role in ROLES else role
    if sieve in SIEVES:
        documented = SIEVES[sieve].function.__doc__ or "A registered sieve without a docstring."
        return documented.strip().split("\n")[0]
    return f"The syntactic head of each dependent in the relation {role}."


def _names(
    scores: Mapping[str, Mapping[str, Any]], sentences: Sequence[Sentence]
) -> tuple[list[str], list[str]]:
    """The tasks and states of scores and sentences, each in order of appearance."""
    tasks = [*scores, *(sentence["task"] for sentence in sentences)]
    scored = [state for states in scores.values() for state in states]
    states = [*scored, *(state for sentence in sentences for state in sentence["attention"])]
    return [*dict.fromkeys(tasks)], [*dict.fromkeys(states)]


def _in_order(roles: Iterable[Any]) -> list[str]:
    """The distinct roles: first the published ones, in their order."""
    order = [*ROLES]
    return sorted(dict.fromkeys(roles), key=lambda role: order.index(role) if role in order else len(order))


def _shape(table: pd.DataFrame | None, sentences: Sequence[Sentence]) -> tuple[int, int]:
    """Layers and heads, which must be the same in the table and the sentences."""
    shapes = {(sentence["layers"], sentence["heads"]) for sentence in sentences}
    shapes |= set() if table is None else {shape_of(table)}
    if not shapes:
        raise InputError("there is neither a role table nor a sentence: give the page one of them")
    if len(shapes) > 1:
        written = " and ".join(f"{layers} x {heads}" for layers, heads in sorted(shapes))
        raise InputError(f"the tables and sentences are of {written} heads: give those of one encoder")
    return shapes.pop()
