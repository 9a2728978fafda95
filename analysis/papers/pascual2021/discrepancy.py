"""How far attention and attribution differ, row by row, how much of it is mixing, and how exact attribution is."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float
from scipy import special
from tqdm import tqdm

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.papers.pascual2021.attribution import MapStore, attributed
from analysis.papers.pascual2021.measures import (
    ATTENTION,
    GLOBAL,
    JSD,
    LOCAL,
    MIXING,
    RATIO,
    TOKENS,
    VALUES,
    WHOLE,
)
from analysis.papers.pascual2021.roles import sequence_counts
from analysis.statistics.answers import pearson
from analysis.statistics.bootstrap import bca_interval
from analysis.statistics.intervals import percentile_interval
from analysis.statistics.resampling import Clusters

PAIRS = {WHOLE: (ATTENTION, GLOBAL), VALUES: (ATTENTION, LOCAL), MIXING: (LOCAL, GLOBAL)}

Maps = Float[np.ndarray, "*head row token"]
Rows = Float[np.ndarray, "*head row"]


def jensen_shannon(first: Maps, second: Maps) -> Rows:
    """Jensen-Shannon divergence of rows, bits."""
    middle = (first + second) / 2
    return (special.rel_entr(first, middle) + special.rel_entr(second, middle)).sum(-1) / (2 * np.log(2))


def total_variation(first: Maps, second: Maps) -> Rows:
    """Total variation of rows: the mass that must move."""
    return np.abs(first - second).sum(-1) / 2


# Functions of the rows of two maps whose rows sum to 1.
MEASURES: dict[str, Callable[[Maps, Maps], Rows]] = {"pearson": pearson, JSD: jensen_shannon}
VALIDATED = MEASURES | {"total_variation": total_variation}


def measured(
    first: Maps, second: Maps, measures: Mapping[str, Callable[[Maps, Maps], Rows]] = MEASURES
) -> Float[np.ndarray, " measure *head"]:
    """The mean over rows of each measure; rows without a value are left out."""
    values = np.stack([measure(first, second) for measure in measures.values()])
    return np.ma.masked_invalid(values).mean(-1).filled(np.nan)


def restricted(maps: Maps, tokens: Bool[np.ndarray, " token"]) -> Maps:
    """The rows and columns of some tokens, each row divided by its sum (NaN where that is 0)."""
    part = maps[..., tokens, :][..., tokens]
    with np.errstate(divide="ignore", invalid="ignore"):
        return part / part.sum(-1, keepdims=True)


def by_sequence(stores: Mapping[str, MapStore]) -> xr.DataArray:
    """MEASURES for each of PAIRS, with and without special tokens (TOKENS), for every sequence and every head."""
    sequences, values = stores[ATTENTION].sequences, []
    for layout in tqdm(sequences, desc="discrepancy", unit="sequence"):
        maps = {name: store.maps[layout.id].double().cpu().numpy() for name, store in stores.items()}
        subsets = [
            {name: restricted(array, tokens) for name, array in maps.items()}
            for tokens in (np.full(len(layout), True), layout.text >= 0)
        ]
        values.append([[measured(maps[a], maps[b]) for maps in subsets] for a, b in PAIRS.values()])
    names = {"sequence": [layout.id for layout in sequences], "pair": [*PAIRS], "tokens": [*TOKENS]}
    dims = ("sequence", "pair", "tokens", "measure", "layer", "head")
    return xr.DataArray(np.array(values), names | {"measure": [*MEASURES]}, dims)


def discrepancy_table(values: xr.DataArray, resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """The table `pascual_discrepancy` (docs/tables.yaml) from the values `by_sequence`; intervals are BCa.

    Rows with a head are values of that head, for the pair `whole`. Rows without a head are means over the heads of a
    layer. One more measure has no head, `mixing_ratio`: the divergence of local and global attribution over that of
    attention and local attribution (percentile interval).
    """
    layers, heads = (_rows(part, resamples, seed) for part in (values.mean("head"), values.sel(pair=[WHOLE])))
    return pd.concat([layers, heads, _ratios(values, resamples, seed)], ignore_index=True)


def _rows(values: xr.DataArray, resamples: int, seed: int) -> pd.DataFrame:
    """Mean over sequences and its interval for every combination of the other coordinates, which become columns."""
    columns = values.stack(column=[name for name in values.dims if name != "sequence"])
    by_sequence = columns.transpose("sequence", "column").values
    complete = _complete(by_sequence)
    low, high = bca_interval(complete, resamples=resamples, seed=seed)
    table = columns.indexes["column"].to_frame(index=False).assign(value=complete.mean(0))
    return table.assign(low=low, high=high, n=np.isfinite(by_sequence).sum(0))


def _complete(values: Float[np.ndarray, " sequence *column"]) -> Float[np.ndarray, " sequence *column"]:
    """The mean of the other sequences where a sequence has no value: one without word pieces has no rows of text."""
    return np.where(np.isnan(values), np.nanmean(values, axis=0), values)


def _ratios(values: xr.DataArray, resamples: int, seed: int) -> pd.DataFrame:
    """How much more mixing changes the maps of each layer than values and softmax do."""
    parts = values.sel(measure=JSD).mean("head").transpose("sequence", "pair", "tokens", "layer")
    complete = _complete(parts.values).reshape(len(parts), -1)
    counts = sequence_counts(len(complete), resamples, seed)
    draws = Clusters.of(complete).moments(counts).mean.reshape(-1, *parts.shape[1:])
    local, mixing = (draws[:, [*PAIRS].index(name)] for name in (VALUES, MIXING))
    ratio = mixing / local  # replicate, tokens, layer
    names = ["pair", "tokens", "measure", "layer"]
    table = pd.MultiIndex.from_product([[WHOLE], [*TOKENS], [RATIO], parts["layer"].values], names=names)
    table = table.to_frame(index=False)
    low, high = percentile_interval(ratio)
    n = np.isfinite(parts.values).all(axis=1).sum(axis=0)
    return table.assign(value=ratio[0].ravel(), low=low.ravel(), high=high.ravel(), n=n.ravel())


def validation_table(
    encoder: Encoder, sequences: Sequence[Layout], probes: Sequence[int], seed: int = 0
) -> pd.DataFrame:
    """The table `pascual_validation` (docs/tables.yaml): means over rows, heads and sequences.

    Sampled attribution is compared with exact (`probes` is NaN for all directions), and attribution to the input before
    normalisation with that after it: there both sides are exact, so that it shows the effect of the input point alone.
    """
    variants = [("sampled", count, "post_ln") for count in probes]
    variants.append(("input before normalisation", None, "pre_ln"))
    parts = []
    for layout in tqdm(sequences, desc="exact attribution", unit="sequence"):
        exact = attributed(encoder, layout, None, seed).double().cpu().numpy()
        for name, count, start in variants:
            maps = attributed(encoder, layout, count, seed, start).double().cpu().numpy()
            columns = dict(zip(VALIDATED, measured(exact, maps, VALIDATED).mean(axis=-1), strict=True))
            error = exact.shape[-1] * np.abs((maps - exact)[..., 0].mean(-1)).mean(axis=-1)
            table = pd.DataFrame({"layer": range(len(exact)), **columns, "score_error": error})
            parts.append(table.assign(compared=name, probes=count))
    keys = ["compared", "probes", "layer"]
    means = pd.concat(parts, ignore_index=True).groupby(keys, sort=False, dropna=False).mean()
    return means.reset_index().assign(n=len(sequences))
