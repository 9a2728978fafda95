"""How far attention and attribution differ, row by row, and how much of it is mixing below the layer (Pascual 2021)."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float
from scipy import special, stats
from tqdm import tqdm

from analysis.papers.pascual2021.names import (
    ATTENTION,
    GLOBAL,
    JSD,
    LOCAL,
    MEASURES,
    MIXING,
    SHARE,
    SLOPE,
    VALUES,
    WHOLE,
)
from analysis.scores.kept import Kept
from analysis.statistics.resampling import Clusters, bootstrap, counted

PAIRS = {WHOLE: (ATTENTION, GLOBAL), VALUES: (ATTENTION, LOCAL), MIXING: (LOCAL, GLOBAL)}
TOKENS = ("all", "text")  # text: without the rows and columns of special tokens
COLUMNS = ["pair", "tokens", "measure", "layer", "head", "value", "low", "high", "sd", "n"]
FEW = 5  # tokens with the most attention

Maps = Float[np.ndarray, "*head row token"]


def measures(first: Maps, second: Maps) -> Float[np.ndarray, "measure *head"]:
    """Mean over rows of MEASURES between two maps whose rows sum to 1; rows without a value are left out.

    Pearson and Spearman correlation; Jensen-Shannon divergence (bits); total variation; whether the largest entry is
    the same; the mass of the first and of the second map on the five tokens with the largest entries in the first.
    """
    few = np.argsort(-first, axis=-1, kind="stable")[..., :FEW]
    rows = [
        _pearson(first, second),
        _pearson(stats.rankdata(first, axis=-1), stats.rankdata(second, axis=-1)),
        _jensen_shannon(first, second),
        np.abs(first - second).sum(-1) / 2,
        np.where(np.isnan(second[..., 0]), np.nan, first.argmax(-1) == second.argmax(-1)),
        np.take_along_axis(first, few, -1).sum(-1),
        np.take_along_axis(second, few, -1).sum(-1),
    ]
    values = np.stack(rows)
    present = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(present, values, 0).sum(-1) / present.sum(-1)


def _pearson(first: Maps, second: Maps) -> Float[np.ndarray, "*head row"]:
    centred = [each - each.mean(-1, keepdims=True) for each in (first, second)]
    with np.errstate(divide="ignore", invalid="ignore"):
        return (centred[0] * centred[1]).sum(-1) / np.sqrt(
            (centred[0] ** 2).sum(-1) * (centred[1] ** 2).sum(-1)
        )


def _jensen_shannon(first: Maps, second: Maps) -> Float[np.ndarray, "*head row"]:
    middle = (first + second) / 2
    return (special.rel_entr(first, middle) + special.rel_entr(second, middle)).sum(-1) / (2 * np.log(2))


def restricted(maps: Maps, kept: Bool[np.ndarray, " token"]) -> Maps:
    """The rows and columns of the kept tokens, each row divided by its sum (NaN where that is 0)."""
    found = maps[..., kept, :][..., kept]
    with np.errstate(divide="ignore", invalid="ignore"):
        return found / found.sum(-1, keepdims=True)


def by_sequence(kept: Mapping[str, Kept], progress: bool = True) -> xr.DataArray:
    """MEASURES for each of PAIRS and TOKENS, every kept sequence and every head."""
    sequences, found = kept[ATTENTION].sequences, []
    for layout in tqdm(sequences, desc="discrepancy", unit="sequence", disable=not progress):
        maps = {name: each.maps[layout.id].double().cpu().numpy() for name, each in kept.items()}
        chosen = {"all": np.full(len(layout), True), "text": layout.text >= 0}
        parts = {
            tokens: {name: restricted(each, chosen[tokens]) for name, each in maps.items()}
            for tokens in TOKENS
        }
        rows = [
            [measures(*(parts[tokens][name] for name in pair)) for tokens in TOKENS]
            for pair in PAIRS.values()
        ]
        found.append(np.array(rows))
    names = {"sequence": [layout.id for layout in sequences], "pair": [*PAIRS], "tokens": [*TOKENS]}
    dims = ("sequence", "pair", "tokens", "measure", "layer", "head")
    return xr.DataArray(np.stack(found), names | {"measure": [*MEASURES]}, dims)


def discrepancy_table(found: xr.DataArray, resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """Means over sequences of the measures of `by_sequence`, with BCa intervals over sequences: COLUMNS.

    Rows with a head are values of that head, for the pair `whole`. Rows without a head are means over the heads of a
    layer (`sd`: standard deviation over heads). Two more measures have no head. `mixing_share`: the divergence of local
    and global attribution, divided by its sum with the divergence of attention and local attribution (percentile
    interval). `jensen_shannon_slope`, also without a layer: the growth of the divergence in bits per layer, above
    layer 0 (least squares); fewer than three layers have none.
    """
    whole = found.sel(pair=[WHOLE])
    layers = _rows(found.mean("head"), resamples, seed)
    layers["sd"] = found.mean("sequence").std("head", ddof=1).to_series().reindex(_keys(layers)).to_numpy()
    parts = [
        layers,
        _rows(whole, resamples, seed),
        *([_rows(_slopes(whole), resamples, seed)] if whole.sizes["layer"] > 2 else []),
        _shares(found, resamples, seed),
    ]
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def _keys(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(table[["pair", "tokens", "measure", "layer"]])


def _rows(values: xr.DataArray, resamples: int, seed: int) -> pd.DataFrame:
    """Mean over sequences and its interval for every combination of the other coordinates, which become columns."""
    flat = values.stack(column=[name for name in values.dims if name != "sequence"]).transpose(
        "sequence", "column"
    )
    data = flat.values
    complete = _complete(data)
    interval = bootstrap(complete, 0.0, None, resamples=resamples, seed=seed)
    table = flat.indexes["column"].to_frame(index=False)
    return table.assign(
        value=complete.mean(0), low=interval.low, high=interval.high, n=np.isfinite(data).sum(0)
    )


def _complete(values: Float[np.ndarray, "sequence *column"]) -> Float[np.ndarray, "sequence *column"]:
    """The mean of the other sequences where a sequence has no value: one without word pieces has no rows of text."""
    return np.where(np.isnan(values), np.nanmean(values, axis=0), values)


def _slopes(whole: xr.DataArray) -> xr.DataArray:
    """The slope over the layers above layer 0 of each sequence's divergence (mean over heads), bits per layer.

    In layer 0 nothing is mixed yet, and its small divergence alone would give a slope.
    """
    means = whole.sel(measure=[JSD]).mean("head")
    means = means.isel(layer=slice(1, None))
    depth = means["layer"] - means["layer"].mean()
    return ((means * depth).sum("layer", skipna=False) / (depth**2).sum()).assign_coords(measure=[SLOPE])


def _shares(found: xr.DataArray, resamples: int, seed: int) -> pd.DataFrame:
    """The share of mixing in the divergence of each layer, with percentile intervals over sequences."""
    parts = found.sel(measure=JSD).mean("head").transpose("sequence", "pair", "tokens", "layer")
    complete = _complete(parts.values).reshape(len(parts), -1)
    draws = resampled_means(complete, resamples, seed).reshape(-1, *parts.shape[1:])
    values, mixing = (draws[:, [*PAIRS].index(name)] for name in (VALUES, MIXING))
    share = mixing / (values + mixing)  # replicate, tokens, layer
    table = pd.MultiIndex.from_product([[WHOLE], TOKENS, [SHARE], parts["layer"].values])
    table = table.to_frame(index=False, name=["pair", "tokens", "measure", "layer"])
    low, high = np.quantile(share[1:], [0.025, 0.975], axis=0)
    n = np.isfinite(parts.values).all(axis=1).sum(axis=0)
    return table.assign(value=share[0].ravel(), low=low.ravel(), high=high.ravel(), n=n.ravel())


def resampled_means(
    values: Float[np.ndarray, "sequence column"], resamples: int, seed: int
) -> Float[np.ndarray, "replicate column"]:
    """The mean of every column over the sequences, then over resamples of the sequences."""
    sums, units = Clusters.of(values), len(values)
    drawn = np.random.default_rng(seed).integers(units, size=(resamples, units))
    return np.concatenate([sums.moments().mean[None], sums.moments(counted(drawn, units)).mean])
