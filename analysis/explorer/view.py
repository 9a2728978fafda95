"""The head explorer as the page of a study, and as a view of one text in a notebook cell."""

import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.explorer.packing import Sentence, Shape, merge_states, pack, scores_of, values_of, with_groups
from analysis.files import write_text
from analysis.scores.sieves import SIEVES
from analysis.statistics.roles import LABELS, ROLES
from analysis.texts.examples import Example, Relation

FOLDER = Path(__file__).parent
HEIGHT = 760  # pixels of the view in a notebook
SCRIPTS = (
    "data",
    "view",
    "colours",
    "modes",
    "heads",
    "card",
    "attention",
    "dial",
    "drawing",
    "save",
    "start",
)
PLACE = re.compile(r"\{\{(\w+)\}\}")
ID = "own text"  # of the example in a notebook cell


@dataclass(frozen=True)
class HeadView:
    """A head explorer page: a notebook shows it inline, and `save` writes it as a file."""

    page: str = field(repr=False)
    summary: str

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
            f'<p class="{name}">{html.escape(self.summary)}: run this cell, or trust the notebook, to see the heads.'
            f"</p><style>.{name} {{ display: none; }}</style>"
            f'<iframe sandbox="allow-scripts allow-downloads" title="{html.escape(self.summary)}" '
            f'style="width: 100%; height: {HEIGHT}px; border: 0" srcdoc="{html.escape(self.page)}"></iframe>'
        )


def explorer(
    tables: pd.DataFrame | None,
    attention: Iterable[Sentence] = (),
    *,
    values: Mapping[str, pd.DataFrame] | None = None,
    dials: Mapping[str, Mapping[str, Any]] | None = None,
    tau: float = 3.0,
    alpha: float = 0.05,
    title: str = "",
    provenance: str = "",
) -> HeadView:
    """The page of role tables (as `Results.role_tables` gives them) and packed sentences (see `pack`).

    `values` adds other numbers of heads to the card and to the grid: tables by name, with the columns layer, head,
    value and, if it depends on the task, task. `dials`, by the id of a pair, add a slider to it (see `packing.dials`).
    Raises InputError for tables and sentences of different encoders.
    """
    sentences = merge_states(attention)
    table = None if tables is None else with_groups(tables)
    layers, heads = shape = _shape(table, sentences)
    scores = {} if table is None else scores_of(table, shape)
    tasks = [*scores, *(sentence["task"] for sentence in sentences)]
    states = [*scores.values(), *(sentence["attention"] for sentence in sentences)]
    roles = chain([] if table is None else table["role"], *(sentence["scores"] for sentence in sentences))
    in_order = sorted(dict.fromkeys(roles), key=lambda role: [*ROLES, role].index(role))
    content = {
        "title": title or "Head explorer",
        "provenance": provenance,
        "tau": tau,
        "alpha": alpha,
        "layers": layers,
        "heads": heads,
        "tasks": [*dict.fromkeys(tasks)],
        "states": [*dict.fromkeys(chain(*states))],
        "labels": [name for column, name in LABELS.items() if table is not None and column in table],
        "roles": [{"name": role, "about": about(role)} for role in in_order],
        "scores": scores,
        "values": values_of(values or {}, shape),
        "dials": dials or {},
        "sentences": [{key: s[key] for key in s.keys() - {"layers", "heads"}} for s in sentences],
    }
    summary = f"Head explorer, {layers} layers x {heads} heads, sentences: {len(sentences)}"
    return HeadView(render_page(content), summary)


def render_page(content: Mapping[str, Any]) -> str:
    """The page that shows this content: template, style and scripts in one file. No text can end the script."""
    data = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    names = ["page.html", "page.css", *(f"{name}.js" for name in SCRIPTS)]
    template, style, *scripts = (FOLDER.joinpath(name).read_text(encoding="utf-8").strip() for name in names)
    parts = {"title": html.escape(content["title"]), "data": data.replace("<", r"\u003c"), "style": style}
    parts["script"] = "\n".join(scripts)
    return PLACE.sub(lambda place: parts[place[1]], template)


def head_view(
    encoder: Encoder,
    text_a: str,
    text_b: str | None = None,
    *,
    relations: Sequence[Relation] | None = None,
    roles: Sequence[str] = ("local", "delimiter", "block"),
    table: pd.DataFrame | None = None,
    max_tokens: int = 128,
) -> HeadView:
    """The attention of every head of an encoder on one or two texts, shown if it is the last value of a notebook cell.

    `roles` are registered sieves, also your own, or relations, which need the `relations` of these texts. `table` is a
    role table of the same encoder; without it, the page has only the scores on this text. Raises InputError as `pack`
    and `explorer` do.
    """
    states = [] if table is None else with_groups(table)["state"].unique()
    state = states[0] if len(states) == 1 else encoder.name
    by_text = {ID: tuple(relations or ())}
    packed = pack(encoder, [Example(ID, text_a, text_b)], by_text, roles, state, max_tokens=max_tokens)
    return explorer(table, packed, provenance=encoder.name)


def about(role: str) -> str:
    """One sentence on the tokens that a role's sieve marks; for a registered sieve, the first line of its docstring."""
    if role in ROLES and ROLES[role].about:
        return ROLES[role].about
    sieve = ROLES[role].sieve if role in ROLES else role
    if sieve in SIEVES:
        documented = SIEVES[sieve].function.__doc__ or "A registered sieve without a docstring."
        return documented.strip().split("\n")[0]
    return f"The governor of each dependent in the relation {role}."


def _shape(table: pd.DataFrame | None, sentences: Sequence[Sentence]) -> Shape:
    """Layers and heads, which must be the same in the table and the sentences."""
    shapes = {(sentence["layers"], sentence["heads"]) for sentence in sentences}
    shapes |= set() if table is None else {(int(table["layer"].max()) + 1, int(table["head"].max()) + 1)}
    if not shapes:
        raise InputError("there is neither a role table nor a sentence: give the page one of them")
    if len(shapes) > 1:
        sizes = " and ".join(f"{layers} x {heads}" for layers, heads in sorted(shapes))
        raise InputError(f"the tables and sentences are of {sizes} heads: give those of one encoder")
    return shapes.pop()
