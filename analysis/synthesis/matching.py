"""Matching heads, which attend to the same word piece in the other text: which they are, and how they are edited.

Heads are chosen on the encoder before fine-tuning; what they do to answers is measured after. Source: this study.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Float
from scipy import stats

from analysis.encoders.interventions import Intervention, head_name, sets, texts_digest
from analysis.encoders.layout import Layout, across, batches, layouts, same_pieces
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import Edit, Operator, Prefix, Share, for_queries
from analysis.encoders.redirection import NOWHERE, Redirection, padded
from analysis.encoders.tap import Attention, read_layers
from analysis.encoders.values import (
    ChangedValues,
    Flag,
    exchanged_positions,
    exchanged_types,
    flag_directions,
    other_words,
    position_embeddings,
    row_marks,
)
from analysis.errors import InputError
from analysis.figures.words import finding
from analysis.roles import Head
from analysis.scores.maps import find_source
from analysis.statistics.head_sets import random_sets
from analysis.texts.examples import Example

MATCH_SIEVES = ("match", "match_control", "match_own")
MATCHING, BOTH = "matching pieces", "ablated"
NATURAL = "dial, natural dose"
OWN, SINK, UNMATCHED = "dial to the own text", "dial to the sink", "dial to unmatched words"
TO_OWN, TO_WRONG, TO_SINK = "to the own text", "to wrong words", "to the sink"
OTHER_PAIR, TYPES, POSITIONS, FLAG = "other pair's values", "types exchanged", "positions exchanged", "flag"
IDENTICAL, EXCHANGED, SHUFFLED = "identical", "two words exchanged", "shuffled"
UNIFORM = "attends uniformly"
DIAL = Redirection()  # unmatched pieces look at the other text
BLOCKED = Redirection("all", NOWHERE, "other text")
Edits = Mapping[str, str | Operator]  # what is done to the matching heads, by name


def match_table(scores: xr.DataArray, threshold: float | int = 5.0) -> pd.DataFrame:
    """The mean scores of every head for MATCH_SIEVES, and whether its match score is above `threshold` (matching).

    low, high: the 95 % t interval of the match score over the n sequences whose texts share a word.
    """
    match = scores.sel(role="match", drop=True)
    n = match.notnull().sum("sequence")
    reach = stats.t.ppf(0.975, np.maximum(n - 1, 1)) * match.std("sequence", ddof=1) / np.sqrt(n)
    columns = {role: scores.sel(role=role, drop=True).mean("sequence") for role in MATCH_SIEVES}
    columns |= {"low": columns["match"] - reach, "high": columns["match"] + reach, "n": n}
    table = xr.Dataset(columns).to_dataframe().reset_index()
    return table.assign(matching=table["match"] > threshold)[["layer", "head", *columns, "matching"]]


def matching_heads(
    roles: Iterable[pd.DataFrame], threshold: float | int = 5.0, heads: Iterable[Sequence[int]] | None = None
) -> list[Head]:
    """The heads whose mean match score before fine-tuning is above `threshold` in every pair task, the highest first.

    `roles` are the role tables of the pre-trained encoder, one for each pair task. `heads` (layer, head) are given
    instead; raises InputError for one that the encoder lacks.
    """
    rows = pd.concat([table[table["role"] == "match"] for table in roles])
    by_head = rows.groupby(["layer", "head"])["mean"].agg(["min", "mean"])
    if heads is not None:
        if unknown := [[*head] for head in heads if tuple(head) not in {*by_head.index}]:
            last = [*map(int, by_head.index[-1])]
            raise InputError(f"heads has {unknown[0]}: give [layer, head], from [0, 0] to {last}")
        return [*map(tuple, heads)]
    chosen = by_head[by_head["min"] > threshold].sort_values("mean", ascending=False)
    return [(int(layer), int(head)) for layer, head in chosen.index]


def names_of(heads: Iterable[Head]) -> str:
    """Heads as text, "1-1, 2-9"."""
    return ", ".join(head_name(*head) for head in sorted(heads))


def finding_about(heads: Sequence[Head], text: str):
    """A finding (see `finding`) about matching heads in trained runs, or that there are none."""
    return finding(text if heads else "No head matches, or no run on pairs of texts trained successfully.")


def finding_by_task(
    heads: Sequence[Head], table: pd.DataFrame, text: str, of_task: Callable[[str, pd.Series], str]
):
    """A finding as in `finding_about`: a text, and a sentence about each column of a table, which has one a task."""
    sentences = (of_task(str(task), column) for task, column in table.items())
    return finding_about(heads if len(table) else [], " ".join([text, *sentences]))


class Masses(NamedTuple):
    """The mean share of attention that word pieces send to the other text: with and without a counterpart there."""

    matched: float
    unmatched: float

    @property
    def dose(self) -> float:
        """The natural dose: with it, unmatched pieces look across as much as matched ones do."""
        if not self.matched > self.unmatched:
            return 0.0
        return (self.matched - self.unmatched) / (1 - self.unmatched)


def attention_across(
    encoder: Encoder, examples: Sequence[Example], heads: Sequence[Head], max_tokens: int = 128
) -> Masses:
    """The attention of some heads to the other text, from matched and from unmatched pieces (proportions)."""
    sequences, sums = layouts(encoder.tokenizer, examples, max_tokens), np.zeros((2, 2))
    for indices in batches(sequences):
        batch = [sequences[index] for index in indices]
        other = padded([across(layout) for layout in batch])[:, 0].to(encoder.device)
        rows = [row_marks(batch, name).to(encoder.device) for name in ("matched", "unmatched")]

        def read(layer: int, attention: Attention, other=other, rows=rows) -> None:
            for _, head in (place for place in heads if place[0] == layer):
                mass = (attention[:, head] * other).sum(-1)
                sums[:] += [[float(mass[row].sum()), float(row.sum())] for row in rows]

        read_layers(encoder, batch, read)
    return Masses(*(sums[:, 0] / np.maximum(sums[:, 1], 1)))


@dataclass(frozen=True, eq=False)
class Twins(Operator):
    """An operator of interventions: a head attends as its twin, which has its mean attention at every position.

    A twin knows positions and special tokens, but no word. It takes its means from `sequences`.
    """

    encoder: Encoder
    sequences: Sequence[Layout]

    def __post_init__(self) -> None:
        object.__setattr__(self, "maps", find_source("twin").prepare(self.encoder, self.sequences))

    def __str__(self) -> str:
        return f"twins-{texts_digest(self.sequences)[:16]}"

    def edit(self, prefix: Prefix) -> Edit:
        """The twins of one batch (see `Operator`)."""
        twins: list[Attention] = []
        self.maps(prefix.batch, lambda _, attention, *__: twins.append(attention))

        def replaced(layer: int, share: Share, weights: Attention, *_: torch.Tensor) -> Attention:
            return torch.lerp(weights, for_queries(twins[layer], weights), share)

        return replaced


def edits(
    encoder: Encoder, heads: Sequence[Head], operators: Edits, dose: float | int = 1
) -> list[Intervention]:
    """One intervention on all `heads` for each named operator, by the share `dose`; none without heads."""
    named = (sets(encoder, {name: heads}, operator, dose) for name, operator in operators.items() if heads)
    return [edit for [edit] in named]


def value_edits(encoder: Encoder, sequences: Sequence[Layout]) -> dict[str, Operator]:
    """The edits of the values that heads read in the other text, without those that an encoder does not allow."""
    operators: dict[str, Operator] = {OTHER_PAIR: other_words(sequences)}
    if "token_type_ids" in encoder.inputs(sequences[:1]):
        operators[TYPES] = ChangedValues(TYPES, exchanged_types)
    if position_embeddings(encoder) is not None:
        operators[POSITIONS] = ChangedValues(POSITIONS, exchanged_positions)
    return operators


def flag(encoder: Encoder, sequences: Sequence[Layout]) -> dict[str, Operator]:
    """The edit that adds the mean of "reads the other text" minus "reads its own" where nothing matches."""
    return {FLAG: Flag(flag_directions(encoder, sequences))}


def row_counts(edits: Sequence[Intervention], sequences: Sequence[Layout]) -> pd.DataFrame:
    """How many rows each redirection is about in these pairs, and how many stay for lack of a target."""
    rows = []
    for edit in (edit for edit in edits if isinstance(edit.operator, Redirection)):
        count = sum(int(edit.operator.sources(layout).any(axis=1).sum()) for layout in sequences)
        moved, _ = edit.operator.pairs(sequences, torch.device("cpu"))
        rows.append((edit.name, count, count - int(moved.any(-1).sum())))
    return pd.DataFrame(rows, columns=["edit", "rows", "without_target"])


def other_sets(heads: Sequence[Head], width: int, count: int) -> list[tuple[Head, ...]]:
    """At most `count` random sets of as many heads from the same layers of `width` heads, with none of these heads."""
    candidates = random_sets(sorted(heads), width, 4 * count)
    return [members for members in candidates if not {*members} & {*heads}][:count]


def neighbours(heads: Sequence[Head], width: int) -> list[Head]:
    """As many other heads of the same layers: the next ones; fewer where a layer has no more."""
    others: list[Head] = []
    for layer, head in heads:
        free = ((layer, (head + step) % width) for step in range(1, width))
        others += [*islice((place for place in free if place not in {*heads, *others}), 1)]
    return others


def overlap(sequences: Sequence[Layout]) -> Float[np.ndarray, " sequence"]:
    """The share of the words of both texts that stand in the other one too, as the mean of both texts."""
    shares = np.zeros(len(sequences))
    for number, layout in enumerate(sequences):
        shared = (same_pieces(layout) & across(layout)).any(axis=1)
        words = [(layout.text == text) & ~layout.punctuation for text in (0, 1)]
        shares[number] = np.mean([shared[marks].mean() if marks.any() else 0 for marks in words])
    return shares


def beside_itself(examples: Sequence[Example], n: int, seed: int = 0) -> dict[str, list[Example]]:
    """The first text of `n` examples beside itself: IDENTICAL, with two words EXCHANGED, and SHUFFLED.

    The words that are exchanged have four letters or more and differ. A text without two of them is left out.
    """
    pairs: dict[str, list[Example]] = {IDENTICAL: [], EXCHANGED: [], SHUFFLED: []}
    for example in examples:
        words, rng = example.text_a.split(), np.random.default_rng([seed, len(pairs[IDENTICAL])])
        suitable = ((place, word) for place, word in enumerate(words) if len(word) >= 4 and word.isalpha())
        long = {place: word.casefold() for place, word in suitable}
        if len({*long.values()}) < 2 or len(pairs[IDENTICAL]) == n:
            continue
        first = next(iter(long))
        second = int(rng.choice([place for place in long if long[place] != long[first]]))
        exchanged = [*words]
        exchanged[first], exchanged[second] = words[second], words[first]
        orders = {IDENTICAL: words, EXCHANGED: exchanged, SHUFFLED: rng.permutation(words).tolist()}
        for name, order in orders.items():
            pairs[name].append(Example(example.id, " ".join(words), " ".join(order), example.label))
    return pairs
