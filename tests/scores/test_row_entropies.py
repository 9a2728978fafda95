"""Entropies against loops over the formula, with padding, and at the ends of their range."""

import numpy as np
import torch
from oracles import random_maps

from analysis.encoders.layout import layouts
from analysis.encoders.models import load_tokenizer
from analysis.scores.maps import cls_row_entropy, mean_row_entropy
from analysis.texts.examples import Example

TEXTS = {"short": ("It ran .",), "pair": ("The cat , she said , ran .", "It did not see the old dog .")}
BATCH = layouts(load_tokenizer("tiny"), [Example(name, *texts) for name, texts in TEXTS.items()])
LONGEST = max(map(len, BATCH))


def entropy(row: np.ndarray) -> float:
    """Entropy (nats) of one row, smoothed as the released code does."""
    smoothed = (1 - 1e-4) * row + 1e-4 / len(row)
    return -sum(p * np.log(p) for p in smoothed)


def padded(maps: list[np.ndarray]) -> torch.Tensor:
    """Maps of several lengths, nothing on padded columns, anything on padded rows."""
    batch = np.full((len(maps), maps[0].shape[0], LONGEST, LONGEST), 0.3)
    for index, found in enumerate(maps):
        size = found.shape[-1]
        batch[index, :, :size] = 0
        batch[index, :, :size, :size] = found
    return torch.from_numpy(batch)


def test_equal_loops_whatever_the_padding():
    maps = [random_maps(len(layout), heads=3, seed=seed) for seed, layout in enumerate(BATCH)]
    expected = [[np.mean([entropy(row) for row in attention]) for attention in found] for found in maps]
    np.testing.assert_allclose(mean_row_entropy(padded(maps), BATCH), expected, rtol=1e-9)
    expected = [[entropy(attention[0]) for attention in found] for found in maps]
    np.testing.assert_allclose(cls_row_entropy(padded(maps), BATCH), expected, rtol=1e-9)
