"""A rule-based labeller of attention maps: a few measures of a map, and thresholds learnt from drawn maps."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.tree import DecisionTreeClassifier, export_text
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from analysis.encoders.layout import Layout
from analysis.papers.kovaleva2019.drawn import LabelledMaps
from analysis.papers.kovaleva2019.names import PATTERNS

MEASURES = ("special", "column", "neighbours", "nearest", "inside", "entropy")
LEAVES = 12  # of the tree of rules: few enough to read
OFFSETS = (-1, 0, 1)
Maps = Float[Tensor, "batch head token token"]


def measures(attention: Maps, layouts: Sequence[Layout]) -> Float[Tensor, "batch head measure"]:
    """The measures that the rules use, the entries of MEASURES, for every map of a padded batch.

    special: mean attention to [CLS] and [SEP]. column: the most that half of the rows give one token, in units of
    uniform attention (logarithm). neighbours: mean attention to the token itself and the two beside it. nearest: mean
    attention to the best of these three. Both subtract what the same tokens get from all rows on average. inside: mean
    attention to the own text of a pair, minus what it gets from all rows. entropy: mean entropy of the rows divided by
    that of uniform attention.
    """
    lengths = torch.tensor([len(layout) for layout in layouts], device=attention.device)
    real = torch.arange(attention.shape[-1], device=attention.device) < lengths[:, None]
    own = attention * real[:, None, :, None]
    count = lengths[:, None]
    received = own.sum(2) / count[:, :, None]
    special = _padded([layout.cls | layout.sep for layout in layouts], attention)
    steady = own.masked_fill(~real[:, None, :, None], torch.nan).nanmedian(dim=2).values.amax(-1)
    excess = torch.where(real[:, None, :, None], own - received[:, :, None], 0)
    beside = [_diagonal(excess, offset) / count for offset in OFFSETS]
    # 1 and 2 for the texts of a pair, 0 for a single text.
    side = _padded([(layout.sentence + 1) * (layout.sep.sum() > 1) for layout in layouts], attention)
    inside = (side[:, :, None] == side[:, None]) & (side > 0)[:, :, None]
    entropy = -torch.xlogy(own, own).sum((2, 3)) / count / count.log()
    found = [
        torch.einsum("bht,bt->bh", received, special.to(received.dtype)),
        (steady * count).clamp(min=0.1).log(),
        sum(beside),
        torch.stack(beside).amax(0),
        torch.einsum("bhij,bij->bh", excess, inside.to(excess.dtype)) / count,
        entropy,
    ]
    return torch.stack(found, dim=-1)


def _padded(rows: Sequence[np.ndarray], like: Tensor) -> Tensor:
    found = pad_sequence([torch.from_numpy(np.ascontiguousarray(row)) for row in rows], batch_first=True)
    return found.to(like.device)


def _diagonal(values: Maps, offset: int) -> Float[Tensor, "batch head"]:
    return values.diagonal(offset, dim1=-2, dim2=-1).sum(-1)


@dataclass(frozen=True)
class RuleLabeller:
    """Labels maps by thresholds of their measures."""

    tree: DecisionTreeClassifier
    name: str = "rules"

    @classmethod
    def fitted(cls, drawn: LabelledMaps, leaves: int = LEAVES) -> "RuleLabeller":
        """The rules that separate drawn maps best (a decision tree with `leaves` leaves)."""
        tree = DecisionTreeClassifier(max_leaf_nodes=leaves, class_weight="balanced", random_state=0)
        return cls(
            tree.fit(np.stack([_measured(*pair) for pair in zip(*drawn[:2], strict=True)]), drawn.patterns)
        )

    def __call__(self, attention: Maps, layouts: Sequence[Layout]) -> Int[np.ndarray, "batch head"]:
        """The number of the pattern, in PATTERNS, of every map of a padded batch."""
        found = measures(attention, layouts).cpu().numpy()
        return self.tree.predict(found.reshape(-1, len(MEASURES))).reshape(found.shape[:2])

    @property
    def key(self) -> str:
        """Tells rules apart."""
        return hashlib.sha256(self.words(decimals=6).encode()).hexdigest()

    def words(self, decimals: int = 2) -> str:
        """The rules as text."""
        return export_text(
            self.tree, feature_names=list(MEASURES), class_names=list(PATTERNS), decimals=decimals
        )


def _measured(one: Float[np.ndarray, "token token"], layout: Layout) -> Float[np.ndarray, " measure"]:
    return measures(torch.from_numpy(one)[None, None], [layout])[0, 0].numpy()
