"""Jensen-Shannon distances between all heads, and a map of the heads in the plane (Clark 2019, 6)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float, Int
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import MDS
from torch import Tensor
from tqdm import tqdm

from analysis.encoders.layout import batches, layouts
from analysis.encoders.models import Encoder
from analysis.encoders.tap import read_layers
from analysis.papers.clark2019.surface import passage_blocks
from analysis.texts.examples import Example

SMOOTHING = 1e-3  # the share of every row that is spread evenly: zeros have no logarithm
STARTS = 5  # of the scaling, at random
PERMUTATIONS = 99  # of the heads over the layers
CACHED = 2**18  # numbers in the sums of maps that are processed at a time: they fit in a core's cache
# The column and the threshold of each behaviour; later ones override earlier ones.
BEHAVIOURS = {
    "next token": ("next", 0.5),
    "previous token": ("previous", 0.5),
    "broad": ("entropy", 3.8),
    "[CLS]": ("cls", 0.6),
    "[SEP]": ("sep", 0.6),
    "full stops and commas": ("punct", 0.6),
}


def head_distances(
    encoder: Encoder,
    examples: Sequence[Example],
    max_tokens: int = 128,
    segment_ids: str = "zeros",
    progress: bool = True,
) -> pd.DataFrame:
    """The table `clark_distances` (docs/tables.yaml), every pair of heads once.

    The Jensen-Shannon divergence between the rows of two heads (nats), summed over the tokens of all sequences; a row
    is first smoothed to 0.999 P + 0.001 / T. The maximum is ln 2 times the number of tokens. Source: Clark 2019,
    section 6, with segment ids of 0; departure: float32 with sums in float64 (the authors' code computes in float16).
    """
    sequences = layouts(encoder.tokenizer, examples, max_tokens, segment_ids)
    heads = pd.MultiIndex.from_product([range(encoder.layers), range(encoder.heads)], names=["layer", "head"])
    total = torch.zeros(len(heads), len(heads), dtype=torch.float64)
    for indices in tqdm([*batches(sequences)], desc="distances", unit="batch", disable=not progress):
        maps: list[Tensor] = []
        batch = [sequences[index] for index in indices]
        read_layers(encoder, batch, lambda _, attention, maps=maps: maps.append(attention))
        for number, size in enumerate(map(len, batch)):
            total += pairwise(torch.cat([layer[number, :, :size, :size] for layer in maps])).cpu()
    first, second = np.triu_indices(len(heads), 1)
    others = heads[second].to_frame(index=False).add_prefix("other_")
    return heads[first].to_frame(index=False).join(others).assign(distance=total.numpy()[first, second])


def passage_distances(
    encoder: Encoder,
    examples: Sequence[Example],
    max_tokens: int = 128,
    segment_ids: str = "zeros",
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`head_distances` over all passages, and `block_distances` over blocks of them (see `surface.passage_blocks`)."""
    blocks = []
    for _, part in pd.Series(examples).groupby(passage_blocks([passage.id for passage in examples])):
        passages = part.tolist()
        tokens = sum(map(len, layouts(encoder.tokenizer, passages, max_tokens, segment_ids)))
        blocks.append((head_distances(encoder, passages, max_tokens, segment_ids, progress=False), tokens))
    total = blocks[0][0].assign(distance=sum(table["distance"] for table, _ in blocks))
    return total, block_distances(blocks, seed)


def pairwise(maps: Float[Tensor, "map row token"]) -> Float[Tensor, "map map"]:
    """Jensen-Shannon divergence (nats) between the smoothed rows of any two maps, summed over the rows.

    With S = P + Q, the divergence of two rows is ln 2 + sum(P ln P + Q ln Q - S ln S) / 2: one logarithm per pair.
    """
    count, rows, tokens = maps.shape
    smoothed = (maps * (1 - SMOOTHING) + SMOOTHING / tokens).flatten(1)
    single = _product_logarithms(smoothed)
    result = smoothed.new_zeros(count, count, dtype=torch.float64)
    step = max(1, CACHED // smoothed.shape[1]) if maps.device.type == "cpu" else count
    for one in range(count - 1):
        for start in range(one + 1, count, step):
            others = slice(start, start + step)
            sums = _product_logarithms(smoothed[others] + smoothed[one])
            result[one, others] = rows * np.log(2) + (single[one] + single[others] - sums) / 2
    return (result + result.T).clamp(min=0)  # rounding may leave equal maps slightly below 0


def _product_logarithms(values: Float[Tensor, "map cell"]) -> Float[Tensor, " map"]:
    """Sum of v ln v over all cells."""
    return torch.linalg.vecdot(values, values.log()).double()


def _heads(distances: pd.DataFrame) -> pd.DataFrame:
    """Layer and head of every head, in order."""
    others = distances[["other_layer", "other_head"]].set_axis(["layer", "head"], axis=1)
    return pd.concat([distances[["layer", "head"]], others]).drop_duplicates(ignore_index=True)


def embed(distances: pd.DataFrame, seed: int = 0) -> tuple[pd.DataFrame, float]:
    """Heads in the plane by metric multidimensional scaling, and the misfit of the plane (Kruskal's stress-1).

    Columns layer, head, x, y. Only distances between points are meaningful. Stress is the root of squared errors over
    squared distances in the plane, to which the distances are first fitted: 0 if the plane shows all of them exactly;
    above 0.2 it shows them poorly.
    """
    distance = distances["distance"].to_numpy()
    square = squareform(distance)
    scaling = MDS(
        n_components=2, metric_mds=True, metric="precomputed", n_init=STARTS, init="random", max_iter=1000,
        eps=1e-10, random_state=seed, normalized_stress=False,
    )  # fmt: skip
    x, y = scaling.fit_transform(square / square.mean()).T
    in_plane = pdist(np.stack([x, y], axis=1))
    scale = (distance @ in_plane) / (distance @ distance)
    stress = np.sqrt(((in_plane - scale * distance) ** 2).sum() / (in_plane**2).sum())
    return _heads(distances).assign(x=x, y=y), float(stress)


def behaviours(table: pd.DataFrame) -> pd.Series:
    """The name in BEHAVIOURS for each head of a `surface_table`, in the order of its rows (Clark 2019, figure 6).

    The threshold of broad heads (3.8 nats) is the published one, for sequences of about 120 tokens.
    """
    names = pd.Series("other", index=table.index, name="behaviour")
    for name, (column, threshold) in BEHAVIOURS.items():
        names[table[column] > threshold] = name
    return names


def block_distances(blocks: Sequence[tuple[pd.DataFrame, int]], seed: int = 0) -> pd.DataFrame:
    """The table `clark_distance_blocks` (docs/tables.yaml), from the distances and the token count of each block."""
    rows, rng = [], np.random.default_rng(seed)
    for block, (table, tokens) in enumerate(blocks):
        distance, layers = table["distance"].to_numpy() / tokens, _heads(table)["layer"].to_numpy()
        random_layers = [rng.permutation(layers) for _ in range(PERMUTATIONS)]
        gaps = [_gap(distance, order) for order in (layers, *random_layers)]
        rows.append((block, gaps[0], np.mean(gaps[1:])))
    return pd.DataFrame(rows, columns=["block", "gap", "shuffled"])


def _gap(distance: Float[np.ndarray, " pair"], layers: Int[np.ndarray, " head"]) -> float:
    """Mean distance of heads in different layers minus that of heads in one layer."""
    first, second = np.triu_indices(len(layers), 1)
    same_layer = layers[first] == layers[second]
    return distance[~same_layer].mean() - distance[same_layer].mean()
