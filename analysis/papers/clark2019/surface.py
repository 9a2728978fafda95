"""Surface patterns of heads (Clark 2019, section 3): where attention goes, computed from sieve bias scores.

If all cells of a sieve have the same weight, its score is T / cells times the attention on these cells. So every share
in the article follows exactly from a stored score, without reading attention again.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int
from numpy.lib.stride_tricks import sliding_window_view

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder
from analysis.scores.extraction import extract
from analysis.scores.maps import cls_row_entropy, mean_row_entropy, mean_row_maximum
from analysis.scores.sieves import SIEVES
from analysis.statistics.layers import BLOCKS, blocks_of
from analysis.texts.examples import Example

# Column of the table: its sieve, and the rows by which the article divides.
SHARES = {
    "next": ("offset_+1", "all"),
    "previous": ("offset_-1", "all"),
    "self": ("offset_+0", "all"),
    "cls": ("cls", "all"),
    "sep": ("sep", "all"),
    "punct": ("stops", "all"),
    "cls_cls": ("cls_to_cls", "cls"),
    "sep_sep": ("sep_to_sep", "sep"),
    "rest_sep": ("rest_to_sep", "rest"),
}
TARGETS = ["previous", "next", "self", "cls", "sep", "punct"]  # possible targets of all rows
# Statistics of rows, not sieves: two entropies, and the weight of the most attended token.
OF_ROWS = {"entropy": mean_row_entropy, "entropy_cls": cls_row_entropy, "most": mean_row_maximum}
COLUMNS = [*SHARES, *OF_ROWS]
NEIGHBOURS = ["previous", "next"]  # of which the best head is chosen
LAYERWISE = ["cls", "sep", "punct", "cls_cls", "sep_sep", "entropy"]  # of which layers are compared
STOPS, SPECIAL = [".", ","], ["[CLS]", "[SEP]"]
# The patterns of figure 1, and the column in which a head of the pattern has a high value.
PATTERNS = {
    "broad": "entropy",
    "next token": "next",
    "[CLS]": "cls",
    "[SEP]": "sep",
    "full stops and commas": "punct",
}


def surface_scores(
    encoder: Encoder,
    examples: Sequence[Example],
    max_tokens: int = 128,
    segment_ids: str = "zeros",
) -> xr.DataArray:
    """Sieve bias scores for the surface patterns, and the statistics OF_ROWS (entropies in nats).

    As `extract` gives them, with a coordinate `cells` (sequence, role): the token pairs that a sieve marks. Raises
    InputError as `extract` does. Source: Clark 2019, section 3, in whose released code all segment ids are 0.
    """
    roles = [sieve for sieve, _ in SHARES.values()]
    scores = extract(
        encoder, examples, roles=roles, max_tokens=max_tokens, statistics=OF_ROWS, segment_ids=segment_ids
    )
    marked = [cells(layout) for layout in layouts(encoder.tokenizer, examples, max_tokens, segment_ids)]
    return scores.assign_coords(cells=(("sequence", "role"), np.stack(marked)))


def cells(layout: Layout) -> Int[np.ndarray, " role"]:
    """The token pairs that each sieve of SHARES marks in a sequence, then all pairs for each of OF_ROWS."""
    matrices = [SIEVES[sieve].matrix(layout, {}) for sieve, _ in SHARES.values()]
    counts = [0 if matrix is None else np.count_nonzero(matrix) for matrix in matrices]
    return np.array([*counts, *[len(layout) ** 2] * len(OF_ROWS)])


def surface_shares(scores: xr.DataArray) -> xr.DataArray:
    """The shares and entropies of every sequence and head, from `surface_scores`; `statistic` names COLUMNS.

    A share is the attention on the pairs of its sieve, divided by the number of rows that the article counts: T; for
    cls_cls the one [CLS], for sep_sep the [SEP] tokens, for rest_sep all others. `next` and `previous` are at most
    (T - 1) / T. If a sequence has no such pair, the share is 0.
    """
    tokens, separators = scores["tokens"], scores["separators"]
    rows = {"all": tokens, "cls": 1, "sep": separators, "rest": tokens - separators}
    masses = scores.fillna(0) * scores["cells"] / tokens
    parts = [masses.sel(role=sieve) / rows[kind] for sieve, kind in SHARES.values()]
    parts += [scores.sel(role=name) for name in OF_ROWS]
    return xr.concat([part.reset_coords(drop=True) for part in parts], xr.Variable("statistic", COLUMNS))


def surface_table(scores: xr.DataArray) -> pd.DataFrame:
    """Mean over sequences of every share (proportion) and statistic OF_ROWS of each head: layer, head, *COLUMNS.

    Source: Clark 2019, section 3; `punct` counts full stops and commas only.
    """
    means = surface_shares(scores).mean("sequence")
    return means.to_dataset("statistic").to_dataframe().reset_index()[["layer", "head", *COLUMNS]]


def uniform_values(scores: xr.DataArray) -> pd.Series:
    """The value of each of COLUMNS for a head that attends uniformly, on the same sequences.

    Its scores are all 1; its entropy is the mean of ln T, its largest weight that of 1 / T.
    """
    uniform = xr.ones_like(scores.isel(layer=0, head=0, drop=True)).where(scores["cells"] > 0)
    entropies = np.log(scores["tokens"]).expand_dims(role=[*OF_ROWS])
    uniform.loc[{"role": [*OF_ROWS]}] = entropies.transpose("sequence", "role").values
    uniform.loc[{"role": "most"}] = 1 / scores["tokens"].values
    return surface_shares(uniform).mean("sequence").to_series().rename("uniform")


def passage_blocks(passages: Sequence[str]) -> Int[np.ndarray, " passage"]:
    """The block of each passage, named "<document>-<number>": a document is in one block, whichever half that is in.

    If all passages are of one document, each may be in another block than its neighbours.
    """
    documents = pd.factorize(pd.Series(passages).str.rpartition("-")[0])[0]
    return documents % BLOCKS if documents.any() else blocks_of(len(documents))


def block_tables(scores: xr.DataArray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means over `passage_blocks`: NEIGHBOURS of every head, and LAYERWISE of every layer, with a column block."""
    blocks = passage_blocks(scores["sequence"].values.tolist())
    means = surface_shares(scores).assign_coords(block=("sequence", blocks)).groupby("block").mean()
    heads = means.sel(statistic=NEIGHBOURS).to_dataset("statistic").to_dataframe().reset_index()
    layers = means.sel(statistic=LAYERWISE).mean("head").to_dataset("statistic").to_dataframe().reset_index()
    return heads[["block", "layer", "head", *NEIGHBOURS]], layers[["block", "layer", *LAYERWISE]]


def pattern_heads(table: pd.DataFrame, uniform: pd.Series) -> pd.DataFrame:
    """The head with the highest mean of each of PATTERNS: pattern, layer, head, mean.

    A head stands for a target only if it attends to it more than uniform attention, and to no other of TARGETS more;
    and for one pattern only. A pattern without such a head has no row.
    """
    means = table.set_index(["layer", "head"])
    main_target = means[TARGETS].idxmax(axis=1)
    rows, used = [], []
    for pattern, column in PATTERNS.items():
        leads = (main_target == column) & (means[column] > uniform[column])
        suitable = means[column][leads | (column not in TARGETS)].drop(used, errors="ignore")
        if len(suitable):
            used.append(suitable.idxmax())
            rows.append((pattern, *used[-1], suitable.max()))
    return pd.DataFrame(rows, columns=["pattern", "layer", "head", "mean"])


def excerpt(
    layout: Layout, attention: Float[np.ndarray, "layer head token token"], length: int = 13
) -> tuple[list[str], Float[np.ndarray, "layer head position position"]]:
    """[CLS], the `length` tokens in a row with most full stops and commas, and the last [SEP].

    The tokens, and the attention between them; each row is divided by its sum.
    """
    windows = sliding_window_view(np.isin(layout.tokens[1:-1], STOPS), min(length, len(layout) - 2))
    start = 1 + int(windows.sum(axis=1).argmax())
    positions = np.array([0, *range(start, start + windows.shape[1]), len(layout) - 1])
    inside = attention[..., positions[:, None], positions]
    return [layout.tokens[position] for position in positions], inside / inside.sum(axis=-1, keepdims=True)


def illustrated(
    patterns: pd.DataFrame, passages: Iterable[tuple[Layout, Float[np.ndarray, "layer head token token"]]]
) -> tuple[pd.DataFrame, list[str], Float[np.ndarray, "layer head position position"]]:
    """The rows of `pattern_heads` that one passage shows, and its `excerpt`.

    It is the first passage in which the head of full stops and commas attends to them more than to [CLS] and [SEP]
    together. If there is none, this head is left out.
    """
    stops_head = patterns["pattern"] == "full stops and commas"
    for layout, attention in passages:
        tokens, weights = excerpt(layout, attention)
        to_stops, to_special = (
            weights[..., np.isin(tokens, marks)].sum(axis=-1).mean(axis=-1) for marks in (STOPS, SPECIAL)
        )
        places = tuple(patterns.loc[stops_head, ["layer", "head"]].to_numpy().T)
        if (to_stops > to_special)[places].all():
            return patterns, tokens, weights
    return patterns[~stops_head], tokens, weights
