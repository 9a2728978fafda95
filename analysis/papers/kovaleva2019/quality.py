"""How well a labeller finds the patterns: on new drawn maps, and on maps labelled by eye."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.optimize import nnls
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from torch import Tensor

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.kovaleva2019.drawn import LabelledMaps
from analysis.papers.kovaleva2019.names import PATTERNS
from analysis.scores.extraction import read_attention
from analysis.texts.examples import Example

FOLDER = Path(__file__).parent
MACRO = "macro average"


class Labeller(Protocol):
    """Finds the pattern of maps; `key` tells labellers with the same name apart."""

    name: str
    key: str

    def __call__(
        self, attention: Float[Tensor, "batch head token token"], layouts: Sequence[Layout]
    ) -> Int[np.ndarray, "batch head"]:
        """The number of the pattern, in PATTERNS, of every map of a padded batch."""


def eye_maps(encoder: Encoder) -> LabelledMaps:
    """The maps that were labelled by eye, computed again: pre-trained MiniLM on sentences of the bundled corpus.

    `eye_labels.csv` has a row per map, `eye_sentences.csv` the texts. A map is vertical if its brightest marks are
    columns through most rows, diagonal if they are a band along the diagonal, block if each text of a pair attends to
    itself, and heterogeneous if none of this stands out. One person labelled them once, before either labeller was
    written. Raises InputError for an encoder that does not have all layers and heads of the labels.
    """
    labels = pd.read_csv(FOLDER / "eye_labels.csv")
    if labels["layer"].max() >= encoder.layers or labels["head"].max() >= encoder.heads:
        raise InputError(
            f"{encoder.name} has too few heads for eye_labels.csv: its maps are those of minilm: load minilm"
        )
    texts = pd.read_csv(FOLDER / "eye_sentences.csv", keep_default_na=False).set_index("sequence")
    maps, layouts, patterns = [], [], []
    for name, rows in labels.groupby("sequence", sort=False):
        example = Example(name, texts.loc[name, "text_a"], texts.loc[name, "text_b"] or None)
        layout, attention = read_attention(encoder, example)
        maps += [attention[row.layer, row.head] for row in rows.itertuples()]
        layouts += [layout] * len(rows)
        patterns += [PATTERNS.index(pattern) for pattern in rows["pattern"]]
    return LabelledMaps(maps, layouts, np.array(patterns))


def label_maps(labeller: Labeller, given: LabelledMaps) -> Int[np.ndarray, " map"]:
    """The patterns that a labeller finds in single maps."""
    pairs = zip(given.maps, given.layouts, strict=True)
    return np.array([labeller(torch.from_numpy(one)[None, None], [layout])[0, 0] for one, layout in pairs])


def quality_tables(
    labellers: Iterable[Labeller], sets: Mapping[str, LabelledMaps]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The quality of each labeller on each set of labelled maps, and its confusions.

    The first table has labeller, set, pattern, precision, recall, f1, n (maps with the pattern); row MACRO is the mean
    over the patterns in the set. The second has labeller, set, pattern (given), found, n (maps).
    """
    quality, confusion = [], []
    for labeller in labellers:
        for name, given in sets.items():
            found = label_maps(labeller, given)
            keys = {"labeller": labeller.name, "set": name}
            quality += [keys | row for row in _quality(given.patterns, found)]
            counts = confusion_matrix(given.patterns, found, labels=range(len(PATTERNS)))
            confusion += [
                keys | {"pattern": PATTERNS[i], "found": PATTERNS[j], "n": n}
                for (i, j), n in np.ndenumerate(counts)
            ]
    return pd.DataFrame(quality), pd.DataFrame(confusion)


def _quality(given: Int[np.ndarray, " map"], found: Int[np.ndarray, " map"]) -> list[dict[str, str | float]]:
    there = np.unique(given)
    columns = precision_recall_fscore_support(given, found, labels=there, zero_division=0)
    names = ("precision", "recall", "f1", "n")
    rows = [
        {"pattern": PATTERNS[number]} | dict(zip(names, values, strict=True))
        for number, *values in zip(there, *columns, strict=True)
    ]
    means = {name: float(np.mean(column)) for name, column in zip(names, columns[:3], strict=False)}
    return [*rows, {"pattern": MACRO, **means, "n": len(given)}]


def macro_f1(quality: pd.DataFrame) -> pd.Series:
    """Macro-F1 of each labeller (rows) on each set (columns)."""
    rows = quality[quality["pattern"] == MACRO]
    return rows.pivot(index="labeller", columns="set", values="f1")


def better(labellers: Sequence[Labeller], quality: pd.DataFrame) -> Labeller:
    """The labeller with the larger mean macro-F1 over the sets, to two decimals; the first if they are equal."""
    means = macro_f1(quality).mean(axis=1).round(2)
    return max(labellers, key=lambda labeller: means[labeller.name])


def corrected_shares(
    found: Float[np.ndarray, " pattern"], confusion: Float[np.ndarray, "pattern pattern"]
) -> Float[np.ndarray, " pattern"]:
    """The true shares that would give the shares found, with the labeller's confusions (given pattern, found pattern).

    Non-negative least squares, scaled to sum to 1; a pattern without a labelled map gets no share.
    """
    given = np.asarray(confusion, float)
    rates = given / np.maximum(given.sum(axis=1, keepdims=True), 1)
    shares = nnls(rates.T, np.asarray(found, float))[0]
    return shares / shares.sum()
