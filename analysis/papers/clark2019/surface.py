"""Surface patterns of heads (Clark 2019, section 3): shares of attention, computed from sieve bias scores.

If a sieve gives all its cells the same weight, its score is T / cells times the attention on these cells. Every share
in the paper is therefore a score times cells / T, over the number of rows.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder
from analysis.scores.extraction import Statistic, extract
from analysis.scores.maps import real_tokens, row_entropies
from analysis.scores.sieves import SIEVES, Matrix, columns, rows, sieve
from analysis.statistics.layers import BLOCKS, blocks_of
from analysis.texts.examples import Example

STOPS, SPECIAL = [".", ","], ["[CLS]", "[SEP]"]
SMOOTHING = 1e-4  # the share of every row that is spread evenly: zeros have no logarithm


@sieve("stops")
def stops(layout: Layout, pairs: object) -> Matrix | None:
    """Every full stop and comma (section 3.2)."""
    return columns(are_stops(layout))


@sieve("content")
def content(layout: Layout, pairs: object) -> Matrix | None:
    """Every token but [CLS], [SEP], full stops and commas (the other tokens of figure 3)."""
    return columns(~(layout.cls | layout.sep | are_stops(layout)))


def are_stops(layout: Layout) -> Bool[np.ndarray, " token"]:
    """Which tokens are full stops or commas, also with the mark of a space before them."""
    return np.isin([token.lstrip("Ġ▁") for token in layout.tokens], STOPS)


@sieve("cls_to_cls")
def cls_to_cls(layout: Layout, pairs: object) -> Matrix | None:
    """[CLS], for [CLS]; the counterpart of `sep_to_sep` for an encoder that rests on [CLS]."""
    return rows(layout.cls[:, None] & layout.cls)


@sieve("sep_to_sep")
def sep_to_sep(layout: Layout, pairs: object) -> Matrix | None:
    """Every [SEP], for each [SEP] (section 3.2)."""
    return rows(layout.sep[:, None] & layout.sep)


@sieve("rest_to_sep")
def rest_to_sep(layout: Layout, pairs: object) -> Matrix | None:
    """Every [SEP], for other tokens (section 3.2)."""
    return rows(~layout.sep[:, None] & layout.sep)


def row_mean(
    values: Float[Tensor, "batch head token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head"]:
    """The mean over the rows of real tokens."""
    real = real_tokens(values.shape[-1], batch, values.device)
    return (values * real[:, None]).sum(-1) / real.sum(-1)[:, None]


def smoothed_entropies(
    attention: Float[Tensor, "batch head row token"], batch: Sequence[Layout]
) -> Float[Tensor, "batch head row"]:
    """The entropies of rows (nats), smoothed to 0.9999 A + 0.0001 / T (section 3.3, as in the authors' code)."""
    real = real_tokens(attention.shape[-1], batch, attention.device)
    share = SMOOTHING * real / real.sum(-1, keepdim=True)  # padding gets none
    return row_entropies(attention * (1 - SMOOTHING) + share[:, None, None])


# For each column of the table, its sieve and the rows over which the paper averages.
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
TARGETS = ["previous", "next", "self", "cls", "sep", "punct"]  # columns that average over all rows
ROW_STATISTICS: dict[str, Statistic] = {
    # Of all rows, and of the row of [CLS] (section 3.3): ln T for uniform attention.
    "entropy": lambda attention, batch: row_mean(smoothed_entropies(attention, batch), batch),
    "entropy_cls": lambda attention, batch: smoothed_entropies(attention[:, :, :1], batch)[:, :, 0],
    # What the most attended token of a row gets, mean over rows (proportion).
    "most": lambda attention, batch: row_mean(attention.amax(-1), batch),
}
SURFACE_COLUMNS = [*SHARES, *ROW_STATISTICS]
NEIGHBOURS = ["previous", "next"]  # that claims read head by head
LAYERWISE = ["cls", "sep", "punct", "cls_cls", "sep_sep", "entropy"]  # that claims read layer by layer
LENGTH = 13  # tokens of an excerpt, without [CLS] and [SEP]
# The patterns of figure 1, and the column in which a head of the pattern has a high value.
PATTERNS = {"broad": "entropy", "next token": "next", "[CLS]": "cls", "[SEP]": "sep"}
PATTERNS |= {"full stops and commas": "punct"}


def surface_scores(
    encoder: Encoder, examples: Sequence[Example], max_tokens: int = 128, segment_ids: str = "zeros"
) -> xr.DataArray:
    """The scores of `extract` for the sieves of SHARES, and ROW_STATISTICS (entropies in nats).

    The coordinate `cells` (sequence, role) counts the token pairs that a sieve marks. Source: Clark 2019, section 3; in
    the authors' code all segment ids are 0.
    """
    roles = [sieve for sieve, _ in SHARES.values()]
    options = {"max_tokens": max_tokens, "segment_ids": segment_ids}
    scores = extract(encoder, examples, roles=roles, statistics=ROW_STATISTICS, **options)
    marked = [cells(layout) for layout in layouts(encoder.tokenizer, examples, **options)]
    return scores.assign_coords(cells=(("sequence", "role"), np.stack(marked)))


def cells(layout: Layout) -> Int[np.ndarray, " role"]:
    """The token pairs that each sieve of SHARES marks in a sequence, then all pairs for each of ROW_STATISTICS."""
    matrices = [SIEVES[sieve].function(layout, {}) for sieve, _ in SHARES.values()]
    counts = [0 if matrix is None else np.count_nonzero(matrix) for matrix in matrices]
    return np.array([*counts, *[len(layout) ** 2] * len(ROW_STATISTICS)])


def surface_shares(scores: xr.DataArray) -> xr.DataArray:
    """SURFACE_COLUMNS (coordinate `statistic`) of every sequence and head, from `surface_scores`.

    A share is the attention on the pairs of its sieve over the rows that the paper averages: T; the one [CLS], the
    [SEP] tokens, or all others. `next` and `previous` are at most (T - 1) / T. It is 0 without such a pair.
    """
    tokens, separators = scores["tokens"], scores["separators"]
    row_counts = {"all": tokens, "cls": 1, "sep": separators, "rest": tokens - separators}
    masses = scores.fillna(0) * scores["cells"] / tokens
    parts = [masses.sel(role=sieve) / row_counts[kind] for sieve, kind in SHARES.values()]
    parts += [scores.sel(role=name) for name in ROW_STATISTICS]
    return xr.concat(
        [part.reset_coords(drop=True) for part in parts], xr.Variable("statistic", SURFACE_COLUMNS)
    )


def surface_table(scores: xr.DataArray) -> pd.DataFrame:
    """The table `clark_surface` (docs/tables.yaml): means of `surface_shares` over sequences. Source: Clark 2019, 3."""
    return _columns(surface_shares(scores).mean("sequence"))


def uniform_values(scores: xr.DataArray) -> pd.Series:
    """The value of each of SURFACE_COLUMNS for a head that attends uniformly, on the same sequences.

    Its scores are 1, its row entropy ln T, and its largest weight 1 / T.
    """
    tokens = scores["tokens"].values
    uniform = xr.ones_like(scores.isel(layer=0, head=0, drop=True))
    uniform.loc[{"role": ["entropy", "entropy_cls"]}] = np.log(tokens)[:, None]
    uniform.loc[{"role": "most"}] = 1 / tokens
    return surface_shares(uniform).mean("sequence").to_series().rename("uniform")


def passage_blocks(passages: Sequence[str]) -> Int[np.ndarray, " passage"]:
    """The block of each passage, named "<document>-<number>": all passages of a document are in one block.

    If all passages are of one document, they are spread over the blocks one by one.
    """
    documents = pd.factorize(pd.Series(passages).str.rpartition("-")[0])[0]
    return documents % BLOCKS if documents.any() else blocks_of(len(documents))


def block_tables(scores: xr.DataArray) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means over `passage_blocks`: NEIGHBOURS of every head, and LAYERWISE of every layer, with a column block."""
    blocks = passage_blocks(scores["sequence"].values.tolist())
    means = surface_shares(scores).assign_coords(block=("sequence", blocks)).groupby("block").mean()
    return _columns(means.sel(statistic=NEIGHBOURS)), _columns(means.sel(statistic=LAYERWISE).mean("head"))


def _columns(means: xr.DataArray) -> pd.DataFrame:
    """A column for each block, layer and head (if the means have them), then one for each statistic."""
    order = [name for name in ("block", "layer", "head") if name in means.dims]
    return means.to_dataset("statistic").to_dataframe(order).reset_index()


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
    layout: Layout, attention: Float[np.ndarray, "layer head token token"]
) -> tuple[list[str], Float[np.ndarray, "layer head position position"]]:
    """[CLS], the LENGTH tokens in a row with most full stops and commas, and the last [SEP].

    The tokens, and the attention between them; each row is divided by its sum.
    """
    windows = sliding_window_view(np.isin(layout.tokens[1:-1], STOPS), min(LENGTH, len(layout) - 2))
    start = 1 + int(windows.sum(axis=1).argmax())
    positions = np.array([0, *range(start, start + windows.shape[1]), len(layout) - 1])
    inside = attention[..., positions[:, None], positions]
    return [layout.tokens[position] for position in positions], inside / inside.sum(axis=-1, keepdims=True)


def clearest_excerpt(
    passages: Iterable[tuple[Layout, Float[np.ndarray, "layer head token token"]]], head: tuple[int, int]
) -> tuple[list[str], Float[np.ndarray, "layer head position position"]]:
    """The `excerpt` of all passages in which a head most prefers full stops and commas to [CLS] and [SEP]."""

    def preference(part: tuple[list[str], np.ndarray]) -> float:
        tokens, weights = part
        to_stops, to_special = (weights[head][:, np.isin(tokens, marks)].sum() for marks in (STOPS, SPECIAL))
        return (to_stops - to_special) / len(tokens)

    return max((excerpt(layout, attention) for layout, attention in passages), key=preference)
