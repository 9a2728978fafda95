"""Matching heads, which attend to the same word piece in the other text: are they needed, and what do they signal?

Heads are chosen on the encoder before fine-tuning; what they do to answers is measured after. Source: this study.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, product
from math import comb, prod
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import xarray as xr
from IPython.display import Markdown
from jaxtyping import Bool, Float
from scipy import stats
from sklearn.metrics import roc_auc_score
from torch.nn.utils.rnn import pad_sequence

from analysis.encoders.classifiers import texts_digest
from analysis.encoders.interventions import Head, Intervention, Operator, head_name, sets
from analysis.encoders.layout import Layout, across, batches, layouts, same_pieces
from analysis.encoders.models import Encoder
from analysis.encoders.prefixes import Changes, Gates, Prefix
from analysis.encoders.redirection import NOWHERE, ROWS, ExchangedTypes, Redirection, padded
from analysis.encoders.tap import Attention, read_layers
from analysis.figures.words import finding
from analysis.scores.maps import find_source
from analysis.statistics.changes import BASELINE
from analysis.statistics.effects import auc_parts, match_logit
from analysis.statistics.intervals import crossed_interval
from analysis.texts.examples import Example

ROLES = ("match", "match_control", "match_own")
MATCHING, BOTH = "matching pieces", "ablated"
DOSES = (0.1, 0.25, 0.5, 0.75, 1.0)
DIAL, NATURAL = "dial", "dial, natural dose"
OWN, SINK, UNMATCHED = "dial to the own text", "dial to the sink", "dial to unmatched words"
TO_OWN, TO_WRONG = "to the own text", "to wrong words"
SETS = 200  # other sets of heads, at most, that turn the dial
BLOCKED = Redirection("all", NOWHERE, "other text")


def match_table(scores: xr.DataArray, threshold: float | int = 5.0) -> pd.DataFrame:
    """The mean scores of every head for ROLES, and whether it matches: its match score is above `threshold`.

    low, high: the 95 % t interval of the match score over the n sequences whose texts share a word.
    """
    match = scores.sel(role="match", drop=True)
    n = match.notnull().sum("sequence")
    reach = stats.t.ppf(0.975, np.maximum(n - 1, 1)) * match.std("sequence", ddof=1) / np.sqrt(n)
    columns = {role: scores.sel(role=role, drop=True).mean("sequence") for role in ROLES}
    columns |= {"low": columns["match"] - reach, "high": columns["match"] + reach, "n": n}
    table = xr.Dataset(columns).to_dataframe().reset_index()
    return table.assign(matching=table["match"] > threshold)[["layer", "head", *columns, "matching"]]


def matching_heads(table: pd.DataFrame) -> list[Head]:
    """The heads that match in every task of a table of `match_table` with one state."""
    everywhere = table.groupby(["layer", "head"])["matching"].all()
    return [(int(layer), int(head)) for layer, head in everywhere.index[everywhere]]


def names_of(heads: Sequence[Head]) -> str:
    """Heads as text, "1-1, 2-9"."""
    return ", ".join(head_name(*head) for head in heads)


def finding_about(heads: Sequence[Head], text: str) -> Markdown:
    """A finding about matching heads in trained runs, or that there are none."""
    return finding(text if heads else "No head matches, or no run on pairs of texts trained successfully.")


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
        marks = [
            [torch.from_numpy(ROWS[name](layout)) for layout in batch] for name in ("matched", "unmatched")
        ]
        rows = [pad_sequence(mark, batch_first=True).to(encoder.device) for mark in marks]

        def read(layer: int, attention: Attention, other=other, rows=rows) -> None:
            for _, head in (place for place in heads if place[0] == layer):
                mass = (attention[:, head] * other).sum(-1)
                sums[:] += [[float(mass[row].sum()), float(row.sum())] for row in rows]

        read_layers(encoder, batch, read)
    return Masses(*(sums[:, 0] / np.maximum(sums[:, 1], 1)))


@dataclass(frozen=True, eq=False)
class Twins:
    """An operator of interventions: a head attends as its twin, which has its mean attention at every position.

    A twin knows positions and special tokens, but no word. It takes its means from `sequences`.
    """

    encoder: Encoder
    sequences: Sequence[Layout]

    def __post_init__(self) -> None:
        ready = find_source("twin").prepared(self.encoder, self.sequences, 2048, False)
        object.__setattr__(self, "maps", ready)

    def __str__(self) -> str:
        return f"twins-{texts_digest(self.sequences)[:16]}"

    def prepared(self, prefix: Prefix) -> Changes:
        """The twins of one batch, as a function of gates: 1 - gate is their share."""
        twins: list[Attention] = []
        self.maps(prefix.encoder, prefix.batch, lambda _, attention, *__: twins.append(attention))

        def changes(gates: Gates) -> dict:
            def replace(layer: int, weights: Attention, _: torch.Tensor) -> Attention:
                twin = twins[layer].repeat(len(gates) // len(twins[layer]), 1, 1, 1)[:, :, : weights.shape[2]]
                return torch.lerp(twin, weights, gates[:, layer, :, None, None])

            return {"replace": replace}

        return changes


def edits(
    encoder: Encoder,
    heads: Sequence[Head],
    sink: str,
    natural: float,
    examples: Sequence[Example],
    max_tokens: int,
) -> list[Intervention]:
    """Everything that is done to the matching heads of a classifier: ablation, redirection and the dial.

    `sink` is the special token on which heads rest, "cls" or "sep"; `natural` is the natural dose.
    """
    sequences = layouts(encoder.tokenizer, examples, max_tokens)
    operators: dict[str, tuple[str | Operator, float]] = {
        BOTH: ("zero", 1),
        "removed": (Redirection("matched", NOWHERE, MATCHING), 1),
        "to the sink": (Redirection("matched", sink, MATCHING), 1),
        TO_OWN: (Redirection("matched", "own text", MATCHING), 1),
        TO_WRONG: (Redirection("matched", "other text", MATCHING), 1),
        "to one wrong word": (Redirection("matched", "one other word", MATCHING), 1),
        "to the own text, first text": (Redirection("matched", "own text", MATCHING, 0), 1),
        "to the own text, second text": (Redirection("matched", "own text", MATCHING, 1), 1),
        "counter-dial 0.5": (Redirection("matched", "own text", MATCHING), 0.5),
        "positions alone": (Twins(encoder, sequences), 1),
        **{f"{DIAL} {dose:g}": (Redirection(), dose) for dose in DOSES},
        NATURAL: (Redirection(), natural),
        f"{NATURAL}, first text": (Redirection(text=0), natural),
        f"{NATURAL}, second text": (Redirection(text=1), natural),
        OWN: (Redirection(to="own text"), natural),
        SINK: (Redirection(to=sink), natural),
        UNMATCHED: (Redirection(to="unmatched other text"), natural),
    }
    if "token_type_ids" in encoder.inputs(sequences[:1]):
        operators["values with the other token type"] = (ExchangedTypes(), 1)
    by_name = (sets(encoder, {name: heads}, *operator) for name, operator in operators.items())
    return [*chain.from_iterable(by_name)]


def row_counts(edits: Sequence[Intervention], sequences: Sequence[Layout]) -> pd.DataFrame:
    """How many rows each redirection is about in these pairs, and how many stay for lack of a target."""
    rows = []
    for edit in (edit for edit in edits if isinstance(edit.operator, Redirection)):
        count = sum(int(edit.operator.sources(layout).any(axis=1).sum()) for layout in sequences)
        moved, _ = edit.operator.pairs(sequences, torch.device("cpu"))
        rows.append((edit.name, count, count - int(moved.any(-1).sum())))
    return pd.DataFrame(rows, columns=["edit", "rows", "without_target"])


def reference_sets(heads: Sequence[Head], width: int) -> list[tuple[Head, ...]]:
    """Sets of as many heads from the same layers, `width` in each, that contain none of these heads.

    All of them, or SETS random ones where there are more; none if a layer has too few other heads.
    """
    sizes = Counter(layer for layer, _ in sorted(heads))
    others = {layer: [head for head in range(width) if (layer, head) not in heads] for layer in sizes}
    if any(size > len(others[layer]) for layer, size in sizes.items()):
        return []
    if prod(comb(len(others[layer]), size) for layer, size in sizes.items()) <= SETS:
        by_layer = {*product(*(combinations(others[layer], size) for layer, size in sizes.items()))}
    else:
        rng, by_layer = np.random.default_rng(0), set()
        for _ in range(SETS):
            rows = [np.sort(rng.permutation(others[layer])[:size]).tolist() for layer, size in sizes.items()]
            by_layer.add(tuple(map(tuple, rows)))
    return [
        tuple((layer, head) for layer, row in zip(sizes, rows, strict=True) for head in row)
        for rows in sorted(by_layer)
    ]


def neighbours(heads: Sequence[Head], width: int) -> list[Head]:
    """As many other heads of the same layers: the next ones; fewer where a layer has no more."""
    others: list[Head] = []
    for layer, head in heads:
        free = ((layer, (head + step) % width) for step in range(1, width))
        others += [*islice((place for place in free if place not in {*heads, *others}), 1)]
    return others


def reference_edits(encoder: Encoder, heads: Sequence[Head], natural: float) -> list[Intervention]:
    """The dial at the natural dose for the matching heads, for `reference_sets`, and for every single head.

    The names of single heads begin with "head". The control edit turns the matching heads to their own text.
    """
    references = reference_sets(heads, encoder.heads)
    named = {NATURAL: heads} | {names_of(members): members for members in references}
    named |= {f"head {head_name(*head)}": [head] for head in np.ndindex(encoder.layers, encoder.heads)}
    own_text_edit = sets(encoder, {OWN: heads}, Redirection(to="own text"), natural)
    return [*sets(encoder, named, Redirection(), natural), *own_text_edit] if heads else []


def dial_table(answers: pd.DataFrame, masses: Masses) -> pd.DataFrame:
    """Rows of `answer_table` that turn the dial, with its dose, the masses, and p of the matching heads.

    p is (1 + reference sets with at least this shift) / (1 + reference sets); missing without such sets.
    """
    edit = answers["edit"]
    references = answers[edit.str.match(r"\d")]
    table = answers[edit.eq(BASELINE) | edit.str.match(rf"{DIAL}|head|\d")].copy()
    dose = table["edit"].str.extract(rf"^{DIAL} ([\d.]+)$")[0].astype(float)
    table["dose"] = dose.fillna(masses.dose).mask(table["edit"] == BASELINE, 0)
    if len(references):
        shift = table.loc[table["edit"] == NATURAL, "shift"].max()
        p = (1 + (references["shift"] >= shift).sum()) / (1 + len(references))
        table.loc[table["edit"] == NATURAL, "p"] = p
    return table.assign(matched=masses.matched, unmatched=masses.unmatched)


def match_scores(logits: xr.DataArray, match: int, positive: Bool[np.ndarray, " sequence"]) -> xr.DataArray:
    """The match logits (intervention, sequence); their coordinate `positive` says which pairs match."""
    ordered = logits.transpose("intervention", "sequence", "class")
    scores = ordered[..., 0].copy(data=match_logit(ordered.values, match)).drop_vars("class")
    return scores.assign_coords(positive=("sequence", positive))


def answer_table(scores: xr.DataArray) -> pd.DataFrame:
    """What every intervention does to the answers, from `match_scores`: the columns of `matching_redirection`."""
    names = scores["intervention"].values.tolist()
    whole, logits = names.index(BASELINE), scores.values
    parts, rows = auc_parts(logits, scores["positive"].values), []
    for name, part, logit in zip(names, parts, logits, strict=True):
        fall = crossed_interval((parts[whole] - part)[None])
        shift = crossed_interval((logit - logits[whole])[None])
        rows.append((name, part.mean(), *fall, logit.mean(), *shift, (logit > 0).mean(), len(logit)))
    columns = "edit auc fall fall_low fall_high logit shift shift_low shift_high share n".split()
    return pd.DataFrame(rows, columns=columns)


def overlap(sequences: Sequence[Layout]) -> Float[np.ndarray, " sequence"]:
    """The share of the words of both texts that stand in the other one too, as the mean of both texts."""
    shares = np.zeros(len(sequences))
    for number, layout in enumerate(sequences):
        shared = (same_pieces(layout) & across(layout)).any(axis=1)
        words = [(layout.text == text) & ~layout.punctuation for text in (0, 1)]
        shares[number] = np.mean([shared[marks].mean() if marks.any() else 0 for marks in words])
    return shares


def group_table(scores: xr.DataArray, shared: Float[np.ndarray, " sequence"]) -> pd.DataFrame:
    """Share of pairs called matching in groups by label and by the overlap of their texts, with and without edits."""
    positive = scores["positive"].values
    names = [name for name in (BASELINE, BOTH, NATURAL) if name in scores["intervention"].values]
    called_matching = (scores.sel(intervention=names) > 0).values.T.astype(float)
    columns = ["share", "share_ablated", "share_dial"]
    table = pd.DataFrame(called_matching, columns=columns[: len(names)]).reindex(columns=columns)
    label = pd.Series(np.where(positive, "matching", "other"))
    words = pd.Series(np.where(shared > np.median(shared), "many", "few"))
    groups = table.assign(overlap=shared, group=label + " pairs, " + words + " words shared").groupby("group")
    overlap_auc = roc_auc_score(positive, shared) if 0 < positive.mean() < 1 else np.nan
    return groups.mean().assign(n=groups.size(), overlap_auc=overlap_auc).reset_index()
