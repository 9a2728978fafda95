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
from analysis.papers.pascual2021.measures import (
    ATTENTION,
    GLOBAL,
    JSD,
    LOCAL,
    MIXING,
    SHARE,
    VALUES,
    WHOLE,
)
from analysis.scores.attribution import attributed
from analysis.scores.kept import Kept
from analysis.statistics.correlations import pearson, spearman
from analysis.statistics.intervals import percentile_interval
from analysis.statistics.resampling import Clusters, bootstrap, counted

PAIRS = {WHOLE: (ATTENTION, GLOBAL), VALUES: (ATTENTION, LOCAL), MIXING: (LOCAL, GLOBAL)}
TOKENS = ("all", "text")  # text: without the rows and columns of special tokens
COLUMNS = ["pair", "tokens", "measure", "layer", "head", "value", "low", "high", "sd", "n"]
FEW = 5  # tokens with the most attention
VALIDATED = ("pearson", "spearman", "total_variation", JSD, "top_1")

Maps = Float[np.ndarray, "*head row token"]
Rows = Float[np.ndarray, "*head row"]


def jensen_shannon(first: Maps, second: Maps) -> Rows:
    """Jensen-Shannon divergence of rows, bits."""
    middle = (first + second) / 2
    return (special.rel_entr(first, middle) + special.rel_entr(second, middle)).sum(-1) / (2 * np.log(2))


def total_variation(first: Maps, second: Maps) -> Rows:
    """Total variation of rows: the mass that must move."""
    return np.abs(first - second).sum(-1) / 2


def same_largest(first: Maps, second: Maps) -> Rows:
    """1 where the largest entry of a row is the same, else 0."""
    return np.where(np.isnan(second[..., 0]), np.nan, first.argmax(-1) == second.argmax(-1))


def on_largest(first: Maps, second: Maps) -> Rows:
    """The mass of the second map on the five tokens with the largest entries in the first."""
    few = np.argsort(-first, axis=-1, kind="stable")[..., :FEW]
    return np.take_along_axis(second, few, -1).sum(-1)


# What is compared: functions of the rows of two maps whose rows sum to 1.
MEASURES: dict[str, Callable[[Maps, Maps], Rows]] = {
    "pearson": pearson,
    "spearman": spearman,
    JSD: jensen_shannon,
    "total_variation": total_variation,
    "top_1": same_largest,
    "top_5": lambda first, _: on_largest(first, first),
    "top_5_other": on_largest,
}


def measured(
    first: Maps, second: Maps, measures: Mapping[str, Callable[[Maps, Maps], Rows]] = MEASURES
) -> Float[np.ndarray, "measure *head"]:
    """The mean over rows of each measure; rows without a value are left out."""
    values = np.stack([measure(first, second) for measure in measures.values()])
    present = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(present, values, 0).sum(-1) / present.sum(-1)


def restricted(maps: Maps, kept: Bool[np.ndarray, " token"]) -> Maps:
    """The rows and columns of the kept tokens, each row divided by its sum (NaN where that is 0)."""
    found = maps[..., kept, :][..., kept]
    with np.errstate(divide="ignore", invalid="ignore"):
        return found / found.sum(-1, keepdims=True)


def by_sequence(
    kept: Mapping[str, Kept],
    pairs: Mapping[str, tuple[str, str]] = PAIRS,
    measures: Mapping[str, Callable[[Maps, Maps], Rows]] = MEASURES,
    progress: bool = True,
) -> xr.DataArray:
    """The measures for each pair of maps, with and without special tokens (TOKENS), every sequence and every head."""
    sequences, found = kept[ATTENTION].sequences, []
    for layout in tqdm(sequences, desc="discrepancy", unit="sequence", disable=not progress):
        maps = {name: each.maps[layout.id].double().cpu().numpy() for name, each in kept.items()}
        chosen = (np.full(len(layout), True), layout.text >= 0)
        parts = [{name: restricted(each, tokens) for name, each in maps.items()} for tokens in chosen]
        found.append([[measured(part[a], part[b], measures) for part in parts] for a, b in pairs.values()])
    names = {"sequence": [layout.id for layout in sequences], "pair": [*pairs], "tokens": [*TOKENS]}
    dims = ("sequence", "pair", "tokens", "measure", "layer", "head")
    return xr.DataArray(np.array(found), names | {"measure": [*measures]}, dims)


def discrepancy_table(found: xr.DataArray, resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """Means over sequences of what `by_sequence` found, with BCa intervals over sequences: COLUMNS.

    Rows with a head are values of that head, for the pair `whole`. Rows without a head are means over the heads of a
    layer (`sd`: standard deviation over heads). One more measure has no head, `mixing_share`: the divergence of local
    and global attribution, divided by its sum with the divergence of attention and local attribution (percentile
    interval).
    """
    whole = found.sel(pair=[WHOLE])
    layers = _rows(found.mean("head"), resamples, seed)
    keys = pd.MultiIndex.from_frame(layers[["pair", "tokens", "measure", "layer"]])
    layers["sd"] = found.mean("sequence").std("head", ddof=1).to_series().reindex(keys).to_numpy()
    parts = [
        layers,
        _rows(whole, resamples, seed),
        _shares(found, resamples, seed),
    ]
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


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


def _shares(found: xr.DataArray, resamples: int, seed: int) -> pd.DataFrame:
    """The share of mixing in the divergence of each layer, with percentile intervals over sequences."""
    parts = found.sel(measure=JSD).mean("head").transpose("sequence", "pair", "tokens", "layer")
    complete = _complete(parts.values).reshape(len(parts), -1)
    draws = resampled_means(complete, resamples, seed).reshape(-1, *parts.shape[1:])
    values, mixing = (draws[:, [*PAIRS].index(name)] for name in (VALUES, MIXING))
    share = mixing / (values + mixing)  # replicate, tokens, layer
    table = pd.MultiIndex.from_product([[WHOLE], TOKENS, [SHARE], parts["layer"].values])
    table = table.to_frame(index=False, name=["pair", "tokens", "measure", "layer"])
    low, high = percentile_interval(share)
    n = np.isfinite(parts.values).all(axis=1).sum(axis=0)
    return table.assign(value=share[0].ravel(), low=low.ravel(), high=high.ravel(), n=n.ravel())


def resampled_means(
    values: Float[np.ndarray, "sequence column"], resamples: int, seed: int
) -> Float[np.ndarray, "replicate column"]:
    """The mean of every column over the sequences, then over resamples of the sequences."""
    sums, units = Clusters.of(values), len(values)
    drawn = np.random.default_rng(seed).integers(units, size=(resamples, units))
    return np.concatenate([sums.moments().mean[None], sums.moments(counted(drawn, units)).mean])


def validation_table(
    encoder: Encoder, sequences: Sequence[Layout], probes: Sequence[int], seed: int = 0, progress: bool = True
) -> pd.DataFrame:
    """Sampled attribution compared with exact, and attribution to the input before normalisation with that after it.

    Columns compared, probes (of the compared map; NaN for all), layer, VALIDATED (mean over rows, heads and sequences),
    score_error (mean absolute difference of a head's score of [CLS], 1 = uniform), n (sequences). In the second
    comparison both sides are exact, so that it shows the effect of the input point alone.
    """
    compared = [("sampled", count, "post_ln") for count in probes]
    compared.append(("input before normalisation", None, "pre_ln"))
    rows = []
    for layout in tqdm(sequences, desc="exact attribution", unit="sequence", disable=not progress):
        exact = attributed(encoder, layout, None, seed).double().cpu().numpy()
        for name, count, start in compared:
            maps = attributed(encoder, layout, count, seed, start).double().cpu().numpy()
            found = measured(exact, maps, {each: MEASURES[each] for each in VALIDATED}).mean(axis=-1)
            error = exact.shape[-1] * np.abs((maps - exact)[..., 0].mean(-1)).mean(axis=-1)
            columns = dict(zip(VALIDATED, found, strict=True)) | {"score_error": error}
            rows.append(
                pd.DataFrame({"compared": name, "probes": count, "layer": range(len(exact)), **columns})
            )
    means = (
        pd.concat(rows, ignore_index=True)
        .groupby(["compared", "probes", "layer"], sort=False, dropna=False)
        .mean()
    )
    return means.reset_index().assign(n=len(sequences))
