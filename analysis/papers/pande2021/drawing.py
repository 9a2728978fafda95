"""Figures of single scores, attention mass and labels by run; the short sequence of F1 and F2, and its sieves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from matplotlib.figure import Figure

from analysis.encoders.models import Encoder
from analysis.figures import theme
from analysis.figures.colours import BLACK, BLUE, MISSING, ORANGE, VERMILION, colour
from analysis.scores.extraction import read_sieves
from analysis.statistics.roles import DIRECTIONS, RELATIONS, ROLES, WINDOWS
from analysis.texts.examples import Example, Relation, Relations
from analysis.texts.glue import PAIR

EDGES = np.geomspace(0.1, 100, 41)  # of the bins of scores
TYPICAL, NEAREST = "a typical head with the role", "the head nearest to τ"
EXAMPLES = {TYPICAL: {"color": ORANGE, "lw": 1.5}, NEAREST: {"color": BLUE, "ls": (0, (3, 1.5))}}


def score_histograms(
    panels: Mapping[str, tuple[xr.DataArray, pd.DataFrame, str]], tau: float, columns: int = 5
) -> Figure:
    """The scores of single sequences, of all heads, a typical head and the head nearest to tau, a panel per title.

    `panels` has composed scores, their role table and the role to show. The typical head has the median mean among
    those with the role.
    """
    figure, grid = theme.rows_of_axes(len(panels), columns, 1.25, 0.7, sharex=True)
    for axes, (title, (scores, table, role)) in zip(grid, panels.items(), strict=True):
        rows = table[table["role"] == role].dropna(subset="mean")
        by_head = scores.sel(role=role)
        axes.stairs(_frequencies(by_head.values), EDGES, color=MISSING, fill=True, label="all heads")
        for layer, head, label in _example_heads(rows, tau):
            values = by_head.sel(layer=layer, head=head).values
            axes.stairs(_frequencies(values), EDGES, label=label, **EXAMPLES[label])
        axes.axvline(tau, color="black", linestyle="--", linewidth=0.8, label=f"τ = {tau:g}")
        axes.set(title=title if len(rows) else f"{title}: not applicable", xscale="log", yticks=[])
    legends = (zip(*axes.get_legend_handles_labels(), strict=True) for axes in grid)
    handles = {name: handle for legend in legends for handle, name in legend}
    figure.legend(handles.values(), handles, ncols=4, loc="outside upper center")
    figure.supxlabel("sieve bias score of one sequence (1 = uniform attention; below 0.1 at the left edge)")
    figure.supylabel("frequency (highest bin = 1)")
    return figure


def _frequencies(values: Float[np.ndarray, "..."]) -> Float[np.ndarray, " bin"]:
    """The counts of scores in the bins of EDGES, divided by the highest."""
    counts = np.histogram(values[np.isfinite(values)].clip(EDGES[0], EDGES[-1]), EDGES)[0]
    return counts / max(1, counts.max())


def _example_heads(rows: pd.DataFrame, tau: float) -> Iterator[tuple[int, int, str]]:
    """Layer, head and name of the typical head of a role and of the head nearest to tau."""
    with_role = rows[rows["assigned"]].sort_values("mean")
    typical = with_role.iloc[len(with_role) // 2 :].head(1)
    nearest = rows.loc[(rows["mean"] - tau).abs().nsmallest(1).index]
    for heads, label in ((typical, TYPICAL), (nearest, NEAREST)):
        for row in heads.itertuples():
            yield row.layer, row.head, label


def mass_lines(masses: pd.DataFrame, tasks: Sequence[str], bert_base: pd.DataFrame) -> Figure:
    """The mean attention to [SEP], [CLS] and other tokens by layer, before (dashed) and after fine-tuning, by task.

    In the panel of QQP thick pale lines are those of `bert_base` (feature, state, layer, mean), by relative depth.
    """
    means = masses.groupby(["task", "state", "layer"])[["sep", "cls", "other"]].mean()
    marks = {"sep": ("d", colour("sep"), "[SEP]"), "cls": ("^", colour("cls"), "[CLS]")}
    marks["other"] = ("o", "0.2", "other tokens")
    states = {"pretrained": ("--", "white", "before"), "finetuned": ("-", None, "after fine-tuning")}
    figure, grid = theme.panels(len(tasks), 4, 1.7, theme.LAYER, "proportion of attention")
    for axes, task in zip(grid, tasks, strict=True):
        for target, (mark, shade, name) in marks.items():
            for state, (dash, inside, when) in states.items():
                line = means.loc[(task, state), target]
                look = {"marker": mark, "color": shade, "markersize": 3.5, "markerfacecolor": inside or shade}
                axes.plot(line.index, line, dash, linewidth=1, label=f"{name}, {when}", **look)
        axes.set(title=task, ylim=(0, 1))
        for (token, state), line in bert_base.groupby(["feature", "state"]) if task == "qqp" else ():
            look = {"color": colour(token.strip("[]").lower()), "lw": 2, "alpha": 0.4, "zorder": 0}
            depth = line["layer"] / line["layer"].max() * masses["layer"].max()
            name = f"{token}, BERT-base, {states[state][2]}"
            axes.plot(depth, line["mean"], states[state][0], label=name, **look)
    legends = (axes.get_legend_handles_labels() for axes in grid)
    figure.legend(*max(legends, key=lambda legend: len(legend[1])), ncols=3, loc="outside lower center")
    return figure


def run_counts(counts: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """Numbers of heads with each role: a mark for each fine-tuning run, a line for the encoder before (no seed)."""
    order = theme.in_order(counts["role"])
    tuned = counts["seed"].notna()
    looks = {
        "published": (tuned, "published", -0.15, "o", BLUE),
        "corrected": (tuned, "corrected", 0.2, "D", VERMILION),
        "published, before fine-tuning": (~tuned, "published", 0, "|", BLACK),
    }
    figure, grid = theme.panels(len(tasks), 4, 0.22 * len(order) + 0.5, "heads", "role")
    for axes, task in zip(grid, tasks, strict=True):
        for name, (rows, column, shift, mark, shade) in looks.items():
            plotted = counts[rows & (counts["task"] == task)].dropna(subset=column)
            heights = plotted["role"].map(order.index) + shift
            axes.plot(plotted[column], heights, mark, color=shade, mfc="none", markersize=4, label=name)
        axes.set(title=task, ylim=(len(order) - 0.5, -0.5))
        axes.set_yticks(range(len(order)), order)
    handles = grid[0].get_legend_handles_labels()
    figure.legend(*handles, ncols=3, loc="outside lower center", title="a mark per fine-tuning run")
    return figure


# Label, text, dependent and governor of each relation in the bundled pair.
ARCS = (
    ("amod", 0, "Old", "dogs"),
    ("nsubj", 0, "dogs", "bite"),
    ("advmod", 0, "never", "bite"),
    ("dobj", 0, "people", "bite"),
    ("nsubj", 1, "Dogs", "love"),
    ("amod", 1, "old", "people"),
    ("dobj", 1, "people", "love"),
)


def illustration(pair: bool = True) -> Example:
    """The bundled pair of sentences, or the first of them, with all four relations of the study: twelve tokens."""
    texts = PAIR if pair else PAIR[:1]
    relations = tuple(
        Relation(label, text, _span(dependent, texts[text]), _span(governor, texts[text]))
        for label, text, dependent, governor in ARCS
        if text < len(texts)
    )
    return Example("illustration", *texts, relations=relations)


def _span(word: str, text: str) -> tuple[int, int]:
    """The position of a word in a text, in characters."""
    start = text.index(word)
    return start, start + len(word)


def role_sieves(
    encoder: Encoder,
    example: Example,
    parses: Relations,
    window: int = 2,
    relations: Sequence[str] = RELATIONS,
    direction: str = "dependent_to_head",
    arithmetic: str = "corrected",
    max_tokens: int = 128,
) -> dict[str, Float[np.ndarray, "token token"]]:
    """The matrix of every role in a sequence, with the choices of `compose`: window, relations, direction.

    `syntactic` pools the word pairs of `relations`; each pair counts once. The entropy factor of `block` belongs to a
    head, not to the sieve.
    """
    local = WINDOWS[arithmetic].format(window)
    labels, forms = {*RELATIONS, *relations}, DIRECTIONS[direction]
    pairs = {label: [form.format(label) for form in forms] for label in labels}
    names = [local, "delimiter", "block", "cls", "sep", "match", *chain.from_iterable(pairs.values())]
    sieves = read_sieves(encoder, example, parses, names, max_tokens)
    if local in sieves:
        sieves["local"] = sieves[local]
    for label, directions in pairs.items():
        if directions[0] in sieves:
            sieves[label] = np.mean([sieves[name] for name in directions], axis=0)
    counts = Counter(pair.label for pair in parses[example.id])
    if pooled := [label for label in relations if label in sieves]:
        weights = [counts[label] for label in pooled]
        sieves["syntactic"] = np.average([sieves[label] for label in pooled], axis=0, weights=weights)
    return {role: sieves[role] for role in ROLES if role in sieves}
