"""The highest possible sieve bias score of a sequence, and the effect of sequence length on roles."""

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from analysis.errors import InputError
from analysis.statistics.roles import memberships
from analysis.statistics.significance import published_table

STRATA = ("short", "middle", "long")


def ceilings(scores: xr.DataArray, window: int = 2, weighted_block: bool = True) -> xr.DataArray:
    """The highest score that a head can have: (sequence, role), NaN if a sequence does not have the role.

    `scores` are composed roles. A head that attends only to the sieve S of every token scores the mean of T / |S|; this
    is exact for local, cls, sep and delimiter. For block, the ceiling is that of two texts of equal length, about 2
    unless texts have only a word or two, times the highest entropy, ln T, if `weighted_block`. For relations, it is
    that of a word with a single piece, T. Raises InputError if `tokens` or `separators` are missing.
    """
    tokens, separators = (_counts(scores, name) for name in ("tokens", "separators"))
    published = scores.attrs.get("arithmetic") == "published"
    texts = tokens - 1 - separators  # word pieces of both texts
    with np.errstate(divide="ignore"):
        block = 2 + 2 * (1 + separators) / texts
    found = {
        "local": tokens * [_inverse_sizes(length, window, published).mean() for length in tokens.tolist()],
        "sep": tokens / separators,
        "delimiter": tokens / (separators + 1),
        "block": block * np.log(tokens) if weighted_block else block,
    }
    columns = [found.get(role, tokens) for role in scores["role"].values]
    values = np.stack(columns, axis=1).astype(float)
    present = scores.notnull().any(["layer", "head"]).transpose("sequence", "role")
    return present.copy(data=np.where(present, values, np.nan)).rename("ceiling")


def uniform_head(scores: xr.DataArray, window: int = 2, weighted_block: bool = True) -> xr.DataArray:
    """The scores of heads that attend equally to all T tokens, in the shape of composed `scores`.

    The score is 1 wherever the role is present; for block it is ln T if `weighted_block`, and for the local band of the
    published arithmetic it is below 1. Raises InputError if `tokens` are missing.
    """
    tokens = _counts(scores, "tokens")
    published = scores.attrs.get("arithmetic") == "published"
    found = {"local": [_share_of_window(length, window, published) for length in tokens.tolist()]}
    if weighted_block:
        found["block"] = np.log(tokens)
    columns = [found.get(role, np.ones(len(tokens))) for role in scores["role"].values]
    values = xr.DataArray(np.stack(columns, axis=1), dims=("sequence", "role"))
    constant = scores.where(scores.isnull(), values.astype(scores.dtype))
    return constant.transpose(*scores.dims).assign_attrs(scores.attrs)


def length_table(
    scores: xr.DataArray,
    tau: float | int = 3.0,
    alpha: float = 0.05,
    window: int = 2,
    weighted_block: bool = True,
) -> pd.DataFrame:
    """Roles in all sequences and in thirds of the sequences by length, one row per stratum and role.

    Columns stratum, role, shortest, longest (tokens), n (sequences with the role), ceiling (mean), below (proportion of
    sequences whose ceiling is at most `tau`), mass_at_tau (mean of `tau` as a proportion of the ceiling), heads
    (published labels within the stratum). For the heads labelled on all sequences: the mean score, and mass (mean
    proportion of the ceiling; for cls, sep and delimiter it is the attention mass itself). A role that is absent from
    all sequences of a stratum is left out.
    """
    labelled = _labels(scores, tau, alpha)
    strata = {"all": np.ones(scores.sizes["sequence"], bool)} | _thirds(_counts(scores, "tokens"))
    parts = [
        _stratum(scores.isel(sequence=np.flatnonzero(chosen)), labelled, tau, alpha, window, weighted_block)
        .assign(stratum=name)
        for name, chosen in strata.items()
    ]  # fmt: skip
    table = pd.concat(parts, ignore_index=True)
    return table[["stratum", *table.columns.drop("stratum")]]


def _stratum(
    scores: xr.DataArray,
    labelled: xr.DataArray,
    tau: float | int,
    alpha: float,
    window: int,
    weighted_block: bool,
) -> pd.DataFrame:
    """The rows of one stratum; `labelled` says which heads have each role on all sequences."""
    tokens, ceiling = _counts(scores, "tokens"), ceilings(scores, window, weighted_block)
    chosen = scores.where(labelled)
    columns = {
        "n": ceiling.count("sequence"),
        "ceiling": ceiling.mean("sequence"),
        "below": (ceiling <= tau).sum("sequence") / ceiling.count("sequence"),
        "mass_at_tau": (tau / ceiling).mean("sequence"),
        "heads": _labels(scores, tau, alpha).sum(["layer", "head"]),
        "score": chosen.mean(["sequence", "layer", "head"]),
        "mass": (chosen / ceiling).mean(["sequence", "layer", "head"]),
    }
    frame = pd.DataFrame({name: column.values for name, column in columns.items()})
    frame.insert(0, "role", scores["role"].values)
    frame.insert(1, "shortest", tokens.min())
    frame.insert(2, "longest", tokens.max())
    return frame[frame["n"] > 0]


def _labels(scores: xr.DataArray, tau: float | int, alpha: float) -> xr.DataArray:
    """Published labels as (role, layer, head); untestable heads have no label."""
    members = memberships(published_table(scores, tau, alpha))
    names = {name: scores[name].values for name in ("role", "layer", "head")}
    values = members.T.to_numpy().reshape([len(labels) for labels in names.values()])
    return xr.DataArray(values, names, tuple(names))


def _thirds(tokens: Int[np.ndarray, "sequence"]) -> dict[str, np.ndarray]:
    """Which sequences are short, middle and long; equal lengths stay together, and empty thirds are left out."""
    third = np.digitize(tokens, np.quantile(tokens, [1 / 3, 2 / 3]), right=True)
    return {name: third == index for index, name in enumerate(STRATA) if (third == index).any()}


def _counts(scores: xr.DataArray, name: str) -> Int[np.ndarray, "sequence"]:
    if name not in scores.coords:
        raise InputError(f"the scores have no coordinate {name!r}; extract them again")
    return scores[name].values


def _window_sizes(length: int, width: int) -> Int[np.ndarray, "token"]:
    """How many tokens of the sequence are in each token's window."""
    position = np.arange(length)
    return np.minimum(position + width, length - 1) - np.maximum(position - width, 0) + 1


def _inverse_sizes(length: int, width: int, published: bool) -> Float[np.ndarray, "token"]:
    """The inverse size of each token's window; in the released code, windows at the end are one too large."""
    surplus = published * (np.arange(length) >= length - width)
    return 1 / (_window_sizes(length, width) + surplus)


def _share_of_window(length: int, width: int, published: bool) -> float:
    """The local score of a uniform head."""
    return float((_window_sizes(length, width) * _inverse_sizes(length, width, published)).mean())
