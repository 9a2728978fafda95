"""Patterns of attention maps: synthetic maps, rules that are fitted to them, and how often the rules are right."""

import hashlib
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import softmax
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.tree import DecisionTreeClassifier, export_text
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.papers.kovaleva2019.names import BLOCK, BOTH, DIAGONAL, HETEROGENEOUS, PATTERNS, VERTICAL
from analysis.scores.extraction import read_attention
from analysis.texts.examples import Example

# The share of attention in all parts of the intended pattern together, and at most in each other part.
SHARE, FAINT = (0.25, 0.9), 0.05
MEASURES = ("special", "column", "neighbours", "nearest", "inside", "entropy")
LEAVES = 12  # of the tree of rules: few enough to read
MACRO = "macro average"
FOLDER = Path(__file__).parent
Map = Float[np.ndarray, "token token"]
Maps = Float[Tensor, "batch head token token"]


class LabelledMaps(NamedTuple):
    """Maps, the layout of each map's sequence, and the number of its pattern in PATTERNS."""

    maps: list[Map]
    layouts: list[Layout]
    patterns: Int[np.ndarray, " map"]


def draw_maps(layouts: Sequence[Layout], n: int, seed: int) -> LabelledMaps:
    """`n` synthetic maps, equally many of each pattern, for layouts drawn at random (block: those of text pairs).

    Source: Kovaleva 2019, 4.1, names the patterns; the paper uses real maps that were annotated by hand.
    """
    rng = np.random.default_rng(seed)
    pairs = [layout for layout in layouts if layout.sep.sum() > 1]
    patterns = [pattern for pattern in PATTERNS if pattern != BLOCK or pairs]
    names = [patterns[number % len(patterns)] for number in range(n)]
    pools = [pairs if pattern == BLOCK else layouts for pattern in names]
    sequences = [pool[rng.integers(len(pool))] for pool in pools]
    maps = [draw_map(layout, pattern, rng) for layout, pattern in zip(sequences, names, strict=True)]
    return LabelledMaps(maps, sequences, np.array([PATTERNS.index(pattern) for pattern in names]))


def draw_map(layout: Layout, pattern: str, rng: np.random.Generator) -> Map:
    """A map with a pattern: a mixture of its parts, faint traces of the others, and attention without a pattern."""
    size = len(layout)
    parts = {BOTH: (VERTICAL, DIAGONAL), HETEROGENEOUS: ()}.get(pattern, (pattern,))
    total = rng.uniform(*SHARE)
    shares = dict(zip(parts, total * rng.dirichlet(np.full(len(parts), 8.0)), strict=True)) if parts else {}
    mixture, mass = np.zeros((size, size)), np.zeros((size, 1))
    for name, part in PARTS.items():
        share = shares.get(name, rng.uniform(0, FAINT))
        if name == BLOCK and layout.sep.sum() < 2:
            continue
        weights = np.minimum(share * rng.lognormal(0, 0.3, (size, 1)), np.maximum(1 - mass, 0))
        mixture += weights * part(layout, rng)
        mass += weights
    rest = np.maximum(1 - mass, 0)
    return (mixture + rest * unstructured(size, rng)).astype(np.float32)


def unstructured(size: int, rng: np.random.Generator) -> Map:
    """Attention by content: tokens that match at random, some that attract more attention than others, and noise."""
    content = rng.standard_normal((size, 4)) @ rng.standard_normal((4, size)) / 2  # of variance 1
    attraction = rng.standard_normal(size)
    noise = rng.standard_normal((size, size))
    strengths = rng.uniform((0, 0, 0.3), (1.2, 0.6, 1.0))
    return softmax(strengths[0] * content + strengths[1] * attraction + strengths[2] * noise, axis=1)


def columns(layout: Layout, rng: np.random.Generator) -> Map:
    """Attention of all rows to the same few tokens: mostly special ones, sometimes a few others."""
    special = np.flatnonzero(layout.cls | layout.sep)
    tokens = special[rng.random(len(special)) < 0.6]
    if rng.random() < 0.4 or not len(tokens):
        tokens = np.union1d(tokens, rng.integers(len(layout), size=rng.integers(1, 5)))
    weights = rng.dirichlet(np.full(len(tokens), 2.0)) * rng.lognormal(0, 0.4, (len(layout), len(tokens)))
    attention = np.zeros((len(layout), len(layout)))
    attention[:, tokens] = weights / weights.sum(axis=1, keepdims=True)
    return attention


def band(layout: Layout, rng: np.random.Generator) -> Map:
    """Attention to the token itself, the previous or the next one, and less to those around it."""
    places = np.arange(len(layout))
    offset, width = rng.integers(-1, 2), rng.uniform(0.15, 2.0)
    distance = np.abs(places[None] - places[:, None] - offset)
    weights = np.exp(-distance / width) * rng.lognormal(0, 0.5, distance.shape)
    return weights / weights.sum(axis=1, keepdims=True)


def blocks(layout: Layout, rng: np.random.Generator) -> Map:
    """Attention to the tokens of the same text, without a pattern within it."""
    inside = layout.sentence[:, None] == layout.sentence[None]
    weights = np.where(inside, unstructured(len(layout), rng), 0)
    return weights / weights.sum(axis=1, keepdims=True)


PARTS: dict[str, Callable[[Layout, np.random.Generator], Map]]
PARTS = {VERTICAL: columns, DIAGONAL: band, BLOCK: blocks}


def measures(attention: Maps, layouts: Sequence[Layout]) -> Float[Tensor, "batch head measure"]:
    """The measures in MEASURES, for every map of a padded batch.

    special: mean attention to [CLS] and [SEP]. column: the largest median over rows of the attention to one token, in
    units of uniform attention (logarithm). neighbours: mean attention to the token itself and both neighbours.
    nearest: mean attention to the best of these three. inside: mean attention to the text of the current token, in a
    pair of texts. These three subtract the mean attention of all rows to the same tokens. entropy: mean entropy of the
    rows, divided by that of uniform attention.
    """
    real = real_tokens(attention, layouts)
    rows = attention * real[:, None, :, None]
    count = real.sum(1, keepdim=True)
    received = rows.sum(2) / count[:, :, None]
    special = stacked([layout.cls | layout.sep for layout in layouts], attention)
    column = rows.masked_fill(~real[:, None, :, None], torch.nan).nanmedian(dim=2).values.amax(-1)
    excess = torch.where(real[:, None, :, None], rows - received[:, :, None], 0)
    adjacent = [excess.diagonal(offset, dim1=-2, dim2=-1).sum(-1) / count for offset in (-1, 0, 1)]
    # The number of the text in a pair, 1 or 2; 0 for a single text.
    side = stacked([(layout.sentence + 1) * (layout.sep.sum() > 1) for layout in layouts], attention)
    inside = (side[:, :, None] == side[:, None]) & (side > 0)[:, :, None]
    entropy = -torch.xlogy(rows, rows).sum((2, 3)) / count / count.log()
    values = [
        torch.einsum("bht,bt->bh", received, special.to(received.dtype)),
        (column * count).clamp(min=0.1).log(),
        sum(adjacent),
        torch.stack(adjacent).amax(0),
        torch.einsum("bhij,bij->bh", excess, inside.to(excess.dtype)) / count,
        entropy,
    ]
    return torch.stack(values, dim=-1)


def real_tokens(attention: Maps, batch: Sequence[Sized]) -> Bool[Tensor, "batch token"]:
    """Which tokens of a padded batch belong to its sequences."""
    lengths = torch.tensor([len(sequence) for sequence in batch], device=attention.device)
    return torch.arange(attention.shape[-1], device=attention.device) < lengths[:, None]


def stacked(rows: Sequence[np.ndarray], like: Tensor) -> Tensor:
    """Arrays (..., token) as one batch (sequence, ..., token), padded with zeros."""
    tokens_first = [torch.from_numpy(np.ascontiguousarray(row)).movedim(-1, 0) for row in rows]
    return pad_sequence(tokens_first, batch_first=True).movedim(1, -1).to(like.device)


@dataclass(frozen=True)
class Labeller:
    """Labels maps by thresholds of their measures (a decision tree)."""

    tree: DecisionTreeClassifier

    def find(self, attention: Maps, layouts: Sequence[Layout]) -> Int[np.ndarray, "batch head"]:
        """The number of the pattern, in PATTERNS, of every map of a padded batch."""
        values = measures(attention, layouts).cpu().numpy()
        return self.tree.predict(values.reshape(-1, len(MEASURES))).reshape(values.shape[:2])

    def rules(self, decimals: int = 2) -> str:
        """The thresholds as text."""
        patterns = [PATTERNS[number] for number in self.tree.classes_]  # no block where no task has pairs
        names = {"feature_names": list(MEASURES), "class_names": patterns}
        return export_text(self.tree, decimals=decimals, **names)

    @property
    def key(self) -> str:
        """A digest of the rules."""
        return hashlib.sha256(self.rules(decimals=6).encode()).hexdigest()


def fit_rules(labelled: LabelledMaps) -> Labeller:
    """The thresholds of measures that separate the patterns best (a decision tree with LEAVES leaves)."""
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, class_weight="balanced", random_state=0)
    return Labeller(tree.fit(single_measures(labelled), labelled.patterns))


def single_measures(labelled: LabelledMaps) -> Float[np.ndarray, "map measure"]:
    """The measures of single maps."""
    pairs = zip(labelled.maps, labelled.layouts, strict=True)
    batches = ((torch.from_numpy(attention)[None, None], [layout]) for attention, layout in pairs)
    return np.stack([measures(*batch)[0, 0].numpy() for batch in batches])


def eye_maps(encoder: Encoder) -> LabelledMaps:
    """The maps that were labelled by eye, computed again: pre-trained MiniLM on sentences of the bundled corpus.

    `eye_labels.csv` has a row per map, `eye_sentences.csv` the texts. A map is vertical if its brightest marks are
    columns through most rows, diagonal if they are a band along the diagonal, block if each text of a pair attends to
    itself, and heterogeneous if none of this stands out. One person labelled them once, before the rules were written.
    """
    labels = pd.read_csv(FOLDER / "eye_labels.csv")
    texts = pd.read_csv(FOLDER / "eye_sentences.csv", keep_default_na=False).set_index("sequence")
    maps, layouts, patterns = [], [], []
    for name, rows in labels.groupby("sequence", sort=False):
        example = Example(name, texts.loc[name, "text_a"], texts.loc[name, "text_b"] or None)
        layout, attention = read_attention(encoder, example)
        maps += [attention[row.layer, row.head] for row in rows.itertuples()]
        layouts += [layout] * len(rows)
        patterns += [PATTERNS.index(pattern) for pattern in rows["pattern"]]
    return LabelledMaps(maps, layouts, np.array(patterns))


def quality_tables(labeller: Labeller, sets: Mapping[str, LabelledMaps]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables `kovaleva_pattern_quality` and `kovaleva_pattern_confusion` of a labeller on sets of labelled maps.

    Row MACRO of the first is the mean over the patterns in the set; found in the second is the labeller's pattern.
    """
    quality, confusions = [], []
    for name, labelled in sets.items():
        patterns = labeller.tree.predict(single_measures(labelled))
        present = np.unique(labelled.patterns)
        scores = precision_recall_fscore_support(labelled.patterns, patterns, labels=present, zero_division=0)
        rows = pd.DataFrame(dict(zip(("precision", "recall", "f1", "n"), scores, strict=True)))
        rows.insert(0, "pattern", [PATTERNS[number] for number in present])
        rows.loc[len(rows)] = [MACRO, *rows[["precision", "recall", "f1"]].mean(), len(patterns)]
        rows.insert(0, "set", name)
        quality.append(rows)
        counts = confusion_matrix(labelled.patterns, patterns, labels=range(len(PATTERNS)))
        wide = pd.DataFrame(counts, pd.Index(PATTERNS, name="pattern"), pd.Index(PATTERNS, name="found"))
        rows = wide.stack().rename("n").reset_index()
        rows.insert(0, "set", name)
        confusions.append(rows)
    return pd.concat(quality, ignore_index=True), pd.concat(confusions, ignore_index=True)
