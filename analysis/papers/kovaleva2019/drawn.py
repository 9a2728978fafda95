"""Attention maps drawn by code, with one of five patterns each, noise, and the layouts of real inputs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from analysis.encoders.layout import Layout
from analysis.papers.kovaleva2019.names import BLOCK, BOTH, DIAGONAL, HETEROGENEOUS, PATTERNS, VERTICAL

# The share of attention in all parts of the intended pattern together, and at most in each other part.
SHARE, FAINT = (0.25, 0.9), 0.05
Map = Float[np.ndarray, "token token"]


class LabelledMaps(NamedTuple):
    """Maps, the layout of each map's sequence, and the number of its pattern in PATTERNS."""

    maps: list[Map]
    layouts: list[Layout]
    patterns: Int[np.ndarray, " map"]


def draw_maps(layouts: Sequence[Layout], n: int, seed: int) -> LabelledMaps:
    """`n` maps, equally many of each pattern; the layout of each is drawn from those given, for block from text pairs.

    The same arguments give the same maps. Source: Kovaleva 2019, 4.1, names the patterns; the article uses real maps
    that were annotated by hand.
    """
    rng = np.random.default_rng(seed)
    pairs = [layout for layout in layouts if layout.sep.sum() > 1]
    patterns = [pattern for pattern in PATTERNS if pattern != BLOCK or pairs]
    drawn = [patterns[number % len(patterns)] for number in range(n)]
    chosen = [(pool := pairs if pattern == BLOCK else layouts)[rng.integers(len(pool))] for pattern in drawn]
    maps = [draw_map(layout, pattern, rng) for layout, pattern in zip(chosen, drawn, strict=True)]
    return LabelledMaps(maps, chosen, np.array([PATTERNS.index(pattern) for pattern in drawn]))


def draw_map(layout: Layout, pattern: str, rng: np.random.Generator) -> Map:
    """A map with a pattern: a mixture of its parts, faint traces of the others, and attention without a pattern."""
    size = len(layout)
    meant = PARTS[pattern]
    total = rng.uniform(*SHARE)
    split = dict(zip(meant, total * rng.dirichlet(np.full(len(meant), 8.0)), strict=True)) if meant else {}
    mixed = np.zeros((size, size))
    taken = np.zeros((size, 1))
    for name, part in DRAWN.items():
        share = split.get(name, rng.uniform(0, FAINT))
        if name == BLOCK and layout.sep.sum() < 2:
            continue
        rows = np.minimum(share * rng.lognormal(0, 0.3, (size, 1)), np.maximum(1 - taken, 0))
        mixed += rows * part(layout, rng)
        taken += rows
    rest = np.maximum(1 - taken, 0)
    return (mixed + rest * unstructured(size, rng)).astype(np.float32)


def unstructured(size: int, rng: np.random.Generator) -> Map:
    """Attention by content: tokens that match at random, some that attract more attention than others, and noise."""
    rank = 4
    content = rng.standard_normal((size, rank)) @ rng.standard_normal((rank, size)) / np.sqrt(rank)
    liked = rng.standard_normal(size)
    noise = rng.standard_normal((size, size))
    strengths = rng.uniform((0, 0, 0.3), (1.2, 0.6, 1.0))
    return softmax(strengths[0] * content + strengths[1] * liked + strengths[2] * noise, axis=1)


def columns(layout: Layout, rng: np.random.Generator) -> Map:
    """Attention of all rows to the same few tokens: mostly special ones, sometimes a few others."""
    special = np.flatnonzero(layout.cls | layout.sep)
    chosen = special[rng.random(len(special)) < 0.6]
    if rng.random() < 0.4 or not len(chosen):
        chosen = np.union1d(chosen, rng.integers(len(layout), size=rng.integers(1, 5)))
    weights = rng.dirichlet(np.full(len(chosen), 2.0)) * rng.lognormal(0, 0.4, (len(layout), len(chosen)))
    found = np.zeros((len(layout), len(layout)))
    found[:, chosen] = weights / weights.sum(axis=1, keepdims=True)
    return found


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


DRAWN: dict[str, Callable[[Layout, np.random.Generator], Map]] = {
    VERTICAL: columns,
    DIAGONAL: band,
    BLOCK: blocks,
}
PARTS = {
    VERTICAL: (VERTICAL,),
    DIAGONAL: (DIAGONAL,),
    BOTH: (VERTICAL, DIAGONAL),
    BLOCK: (BLOCK,),
    HETEROGENEOUS: (),
}
