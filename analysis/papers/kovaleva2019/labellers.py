"""Labellers of attention maps: maps drawn by code, two labellers that learn from them, and how well they do."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy.optimize import nnls
from scipy.special import softmax
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.tree import DecisionTreeClassifier, export_text
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from analysis.cache import cached
from analysis.encoders.fitting import fit
from analysis.encoders.layout import Layout, Pieces
from analysis.encoders.models import Encoder, weights_digest
from analysis.errors import InputError
from analysis.papers.kovaleva2019.names import BLOCK, BOTH, DIAGONAL, HETEROGENEOUS, PATTERNS, VERTICAL
from analysis.scores.extraction import read_attention
from analysis.texts.examples import Example

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
    meant = {BOTH: (VERTICAL, DIAGONAL), HETEROGENEOUS: ()}.get(pattern, (pattern,))
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
    real = real_tokens(attention, layouts)
    own = attention * real[:, None, :, None]
    count = real.sum(1, keepdim=True)
    received = own.sum(2) / count[:, :, None]
    special = stacked([layout.cls | layout.sep for layout in layouts], attention)
    steady = own.masked_fill(~real[:, None, :, None], torch.nan).nanmedian(dim=2).values.amax(-1)
    excess = torch.where(real[:, None, :, None], own - received[:, :, None], 0)
    beside = [excess.diagonal(offset, dim1=-2, dim2=-1).sum(-1) / count for offset in OFFSETS]
    # 1 and 2 for the texts of a pair, 0 for a single text.
    side = stacked([(layout.sentence + 1) * (layout.sep.sum() > 1) for layout in layouts], attention)
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


def real_tokens(attention: Maps, batch: Sequence[Pieces]) -> Bool[Tensor, "batch token"]:
    """Which tokens of a padded batch belong to its sequences."""
    lengths = torch.tensor([len(each) for each in batch], device=attention.device)
    return torch.arange(attention.shape[-1], device=attention.device) < lengths[:, None]


def stacked(rows: Sequence[np.ndarray], like: Tensor) -> Tensor:
    """Rows (..., token) as one batch (sequence, ..., token), filled up with zeros."""
    tokens_first = [torch.from_numpy(np.ascontiguousarray(row)).movedim(-1, 0) for row in rows]
    return pad_sequence(tokens_first, batch_first=True).movedim(1, -1).to(like.device)


class Labeller(NamedTuple):
    """A way to find patterns; `key` tells labellers with the same name apart.

    `find` gives the number of the pattern, in PATTERNS, of every map of a padded batch.
    """

    name: str
    key: str
    find: Callable[[Maps, Sequence[Layout]], Int[np.ndarray, "batch head"]]


def fit_rules(drawn: LabelledMaps) -> DecisionTreeClassifier:
    """The thresholds of measures that separate drawn maps best (a decision tree with LEAVES leaves)."""
    pairs = zip(drawn.maps, drawn.layouts, strict=True)
    measured = [measures(torch.from_numpy(one)[None, None], [layout])[0, 0].numpy() for one, layout in pairs]
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, class_weight="balanced", random_state=0)
    return tree.fit(np.stack(measured), drawn.patterns)


def rule_words(tree: DecisionTreeClassifier, decimals: int = 2) -> str:
    """The rules as text."""
    return export_text(tree, feature_names=list(MEASURES), class_names=list(PATTERNS), decimals=decimals)


def rule_labeller(tree: DecisionTreeClassifier) -> Labeller:
    """Labels maps by thresholds of their measures."""

    def find(attention: Maps, layouts: Sequence[Layout]) -> Int[np.ndarray, "batch head"]:
        found = measures(attention, layouts).cpu().numpy()
        return tree.predict(found.reshape(-1, len(MEASURES))).reshape(found.shape[:2])

    return Labeller("rules", hashlib.sha256(rule_words(tree, decimals=6).encode()).hexdigest(), find)


WIDTHS = (16, 32, 64)
SMALLEST = 32  # tokens: a smaller map is lost in three pairs of convolutions without padding
BATCH = 64
RATE = 1e-3


def network() -> nn.Sequential:
    """Eight convolutions without padding: three pairs of 3 x 3 with pooling between, then two of 1 x 1 around a mean.

    The article says eight layers; widths and kernels are those of the authors' later code.
    """
    steps: list[nn.Module] = []
    for before, width in zip((1, *WIDTHS), WIDTHS, strict=False):
        steps += [
            nn.Conv2d(before, width, 3),
            nn.ReLU(),
            nn.Conv2d(width, width, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    steps[-1] = nn.Conv2d(WIDTHS[-1], 16, 1)  # instead of the last pooling
    found = nn.Sequential(*steps, nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, len(PATTERNS), 1), nn.Flatten())
    for layer in found:
        if isinstance(layer, nn.Conv2d):
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
    return found


def centred(maps: Sequence[Float[Tensor, "*map token token"]]) -> Float[Tensor, "..."]:
    """Maps in the middle of zeros, all as large as the largest map or SMALLEST; in units of uniform attention."""
    size = max(SMALLEST, *(each.shape[-1] for each in maps))
    found = []
    for each in maps:
        length = each.shape[-1]
        before = (size - length) // 2
        found.append(nn.functional.pad(each * length, (before, size - length - before) * 2))
    return torch.stack(found)


def train_network(drawn: LabelledMaps, epochs: int = 10, seed: int = 0) -> nn.Sequential:
    """A network trained by Adam on drawn maps, in batches of similar length and random order.

    Departures from the authors' code: 10 epochs instead of 200, and maps in units of uniform attention.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = network()
    optimiser = torch.optim.Adam(model.parameters(), RATE)
    rng = np.random.default_rng(seed)
    goal = torch.from_numpy(drawn.patterns)
    lengths = np.array([len(each) for each in drawn.maps])

    def loss(indices: list[int]) -> Float[Tensor, ""]:
        maps = centred([torch.from_numpy(drawn.maps[index])[None] for index in indices])
        return nn.functional.cross_entropy(model(maps), goal[indices])

    for _ in tqdm(range(epochs), "training on drawn maps", unit="epoch", leave=None):
        order = np.lexsort((rng.random(len(lengths)), lengths))
        parts = [order[start : start + BATCH].tolist() for start in range(0, len(order), BATCH)]
        fit([parts[number] for number in rng.permutation(len(parts))], loss, optimiser)
    return model


def kept_network(folder: Path, drawn: LabelledMaps, epochs: int = 10, seed: int = 0) -> nn.Sequential:
    """The result of `train_network`, saved in a file of `folder` and read from it if the maps are the same."""
    maps = hashlib.sha256(b"".join(one.tobytes() for one in drawn.maps)).hexdigest()

    def trained() -> xr.Dataset:
        weights = train_network(drawn, epochs, seed).state_dict()
        axes = {name: [f"{name} {axis}" for axis in range(value.ndim)] for name, value in weights.items()}
        return xr.Dataset({name: (axes[name], value.numpy()) for name, value in weights.items()})

    found = cached(
        folder, "network", [epochs, seed, drawn.patterns.tolist(), maps, torch.__version__], trained
    )
    model = network()
    model.load_state_dict({str(name): torch.from_numpy(value.values) for name, value in found.items()})
    return model


def network_labeller(model: nn.Sequential) -> Labeller:
    """Labels maps with a trained network."""

    def find(attention: Maps, layouts: Sequence[Layout]) -> Int[np.ndarray, "batch head"]:
        found = []
        for maps, layout in zip(attention.cpu(), layouts, strict=True):
            length = len(layout)
            with torch.no_grad():
                logits = model(centred([one[None, :length, :length] for one in maps]))
            found.append(logits.argmax(-1).numpy())
        return np.stack(found)

    return Labeller("network", weights_digest(model), find)


FOLDER = Path(__file__).parent
MACRO = "macro average"


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
    return np.array(
        [labeller.find(torch.from_numpy(one)[None, None], [layout])[0, 0] for one, layout in pairs]
    )


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


def better(labellers: Sequence[Labeller], quality: pd.DataFrame) -> Labeller:
    """The labeller with the larger mean macro-F1 over the sets, to two decimals; the first if they are equal."""
    means = quality[quality["pattern"] == MACRO].groupby("labeller")["f1"].mean().round(2)
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
