"""Surface patterns of heads (Clark 2019, section 3): where attention goes, computed from sieve bias scores.

If all cells of a sieve have the same weight, its score is T / cells times the attention on these cells. So every share
in the article follows exactly from a stored score, without reading attention again.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.clark2019 import published
from analysis.scores.extraction import extract
from analysis.scores.maps import cls_row_entropy, mean_row_entropy
from analysis.scores.sieves import SIEVES
from analysis.texts.examples import Example

# Column of the table: its sieve, and the rows by which the article divides.
SHARES = {
    "next": ("offset_+1", "all"),
    "previous": ("offset_-1", "all"),
    "self": ("offset_+0", "all"),
    "cls": ("cls", "all"),
    "sep": ("sep", "all"),
    "punct": ("stops", "all"),
    "sep_sep": ("sep_to_sep", "sep"),
    "rest_sep": ("rest_to_sep", "rest"),
}
TARGETS = ["previous", "next", "self", "cls", "sep", "punct"]  # possible targets of all rows
ENTROPIES = {"entropy": mean_row_entropy, "entropy_cls": cls_row_entropy}
COLUMNS = [*SHARES, *ENTROPIES]
# The condition for a head to show a pattern in a figure: the highest value of a column.
EXEMPLARS = {
    "broad": "entropy",
    "next token": "next",
    "[CLS]": "cls",
    "[SEP]": "sep",
    "stops, commas": "punct",
}


def surface_scores(
    encoder: Encoder,
    examples: Sequence[Example],
    max_tokens: int = 128,
    segment_ids: str = "zeros",
    progress: bool = True,
) -> xr.DataArray:
    """Sieve bias scores for the surface patterns, and both entropies (nats).

    As `extract` gives them, with a coordinate `cells` (sequence, role): the token pairs that a sieve marks. Raises
    InputError as `extract` does. Source: Clark 2019, section 3, in whose released code all segment ids are 0.
    """
    roles = [sieve for sieve, _ in SHARES.values()]
    scores = extract(
        encoder, examples, roles=roles, max_tokens=max_tokens, progress=progress, statistics=ENTROPIES,
        segment_ids=segment_ids,
    )  # fmt: skip
    marked = [cells(layout) for layout in layouts(encoder.tokenizer, examples, max_tokens, segment_ids)]
    scores = scores.assign_coords(cells=(("sequence", "role"), np.stack(marked)))
    return scores.assign_attrs(segment_ids=segment_ids)


def cells(layout: Layout) -> Int[np.ndarray, " role"]:
    """The token pairs that each sieve of SHARES marks in a sequence, then all pairs for each of ENTROPIES."""
    matrices = [SIEVES[sieve].matrix(layout, {}) for sieve, _ in SHARES.values()]
    counts = [0 if matrix is None else np.count_nonzero(matrix) for matrix in matrices]
    return np.array([*counts, *[len(layout) ** 2] * len(ENTROPIES)])


def surface_shares(scores: xr.DataArray) -> xr.DataArray:
    """The shares and entropies of every sequence and head, from `surface_scores`; `statistic` names COLUMNS.

    A share is the attention on the pairs of its sieve, divided by the number of rows that the article counts: T; for
    sep_sep the [SEP] tokens, for rest_sep all others. `next` and `previous` are at most (T - 1) / T. If a sequence has
    no such pair, the share is 0. Raises InputError for scores without the coordinate cells.
    """
    if "cells" not in scores.coords:
        raise InputError("the scores have no coordinate 'cells': compute them with surface_scores")
    parts = [_share(scores, sieve, rows) for sieve, rows in SHARES.values()]
    parts += [scores.sel(role=name, drop=True).reset_coords(drop=True) for name in ENTROPIES]
    joined = xr.concat(parts, xr.Variable("statistic", COLUMNS))
    return joined.assign_coords(tokens=scores["tokens"]).assign_attrs(scores.attrs)


def _share(scores: xr.DataArray, sieve: str, rows: str) -> xr.DataArray:
    chosen = scores.sel(role=sieve, drop=True)
    mass = chosen.fillna(0) * chosen["cells"] / chosen["tokens"]
    separators = scores["separators"]
    divisors = {"all": scores["tokens"], "sep": separators, "rest": scores["tokens"] - separators}
    return (mass / divisors[rows]).reset_coords(drop=True)


def surface_table(scores: xr.DataArray) -> pd.DataFrame:
    """Mean over sequences of every share (proportion) and entropy (nats) of each head: layer, head, *COLUMNS.

    Source: Clark 2019, section 3; `punct` counts full stops and commas only.
    """
    means = surface_shares(scores).reset_coords(drop=True).mean("sequence")
    return means.to_dataset("statistic").to_dataframe().reset_index()[["layer", "head", *COLUMNS]]


def uniform_values(scores: xr.DataArray) -> pd.Series:
    """The value of each of COLUMNS for a head that attends uniformly, on the same sequences.

    Its scores are all 1; its entropy is the mean of ln T.
    """
    uniform = xr.ones_like(scores.isel(layer=0, head=0, drop=True)).where(scores["cells"] > 0)
    entropies = np.log(scores["tokens"]).expand_dims(role=[*ENTROPIES])
    uniform.loc[{"role": [*ENTROPIES]}] = entropies.transpose("sequence", "role").values
    return surface_shares(uniform).mean("sequence").to_series().rename("uniform")


def layer_means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over the heads of each layer, indexed by layer."""
    return table.drop(columns="head").groupby("layer").mean()


def layers_beside_published(table: pd.DataFrame) -> pd.DataFrame:
    """Layer means next to those in the article's figures for BERT-base: another model on other text.

    Columns layer, statistic, bert_base_published, this_encoder; missing if an encoder has no such layer. `table` is
    that of `surface_table`.
    """
    theirs = published.surface_layers().set_index("layer")
    columns = {"bert_base_published": theirs, "this_encoder": layer_means(table)[theirs.columns]}
    long = {name: means.rename_axis(columns="statistic").stack() for name, means in columns.items()}
    return pd.DataFrame(long).reindex(long["bert_base_published"].index).reset_index()


def exemplars(table: pd.DataFrame) -> dict[str, tuple[int, int] | None]:
    """The head, (layer, head), that shows each pattern of EXEMPLARS most (Clark 2019, figure 1); None if there is none.

    A head shows a target only if it attends to no other of TARGETS more. A head that shows an earlier pattern is
    skipped.
    """
    heads = table.set_index(["layer", "head"])
    most = heads[TARGETS].idxmax(axis=1)
    found: dict[str, tuple[int, int] | None] = {}
    for pattern, column in EXEMPLARS.items():
        suitable = heads[column][(most == column) | (column not in TARGETS)]
        left = suitable.drop([place for place in found.values() if place in suitable.index])
        found[pattern] = tuple(int(index) for index in left.idxmax()) if len(left) else None
    return found


def specialists(table: pd.DataFrame, threshold: float = 0.5) -> pd.DataFrame:
    """Heads that put more than `threshold` of their attention into one share: statistic, layer, head, share.

    Source: Clark 2019, sections 3.1 and 3.2 (more than half).
    """
    long = table.melt(["layer", "head"], TARGETS, "statistic", "share")
    found = long[long["share"] > threshold]
    order = found["statistic"].map(TARGETS.index)
    return found.iloc[np.lexsort([-found["share"], order])].reset_index(drop=True)[
        ["statistic", "layer", "head", "share"]
    ]


def specialist_counts(table: pd.DataFrame, uniform: pd.Series, threshold: float = 0.5) -> pd.DataFrame:
    """The specialists of each share: statistic, heads (how many), layers (of each head), highest (share of any head)
    and uniform (share of a head that attends uniformly).
    """
    layers = {
        name: sorted(part["layer"]) for name, part in specialists(table, threshold).groupby("statistic")
    }
    rows = [
        (
            name,
            len(layers.get(name, [])),
            ", ".join(map(str, layers.get(name, []))),
            table[name].max(),
            uniform[name],
        )
        for name in TARGETS
    ]
    return pd.DataFrame(rows, columns=["statistic", "heads", "layers", "highest", "uniform"])
