"""How much labels depend on choices: threshold, sequences and their length, definitions, clusters, parser, controls."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Int
from scipy import stats
from torch import Tensor

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.scores.maps import Source
from analysis.statistics.controls import controlled_table
from analysis.statistics.resampling import Clusters
from analysis.statistics.roles import DIRECTIONS, HEAD, RELATIONS, ROLES, compose, memberships
from analysis.statistics.significance import DDOF, adjust, published_table, role_table
from analysis.texts.examples import Relation

TAUS = tuple(np.linspace(1, 5, 17).tolist())
# Other values of a parameter of `roles.compose`, and the roles that depend on it.
VARIANTS: dict[str, tuple[tuple, tuple[str, ...]]] = {
    "window": ((1, 2, 3, 4, 5), ("local",)),
    "direction": (tuple(DIRECTIONS), ("syntactic", *RELATIONS)),
    "weighted_block": ((True, False), ("block",)),
    "arithmetic": (("corrected", "published"), ROLES),
}


def tau_sweep(
    scores: xr.DataArray, taus: Sequence[float | int] = TAUS, alpha: float = 0.05, tau: float | int = 3.0
) -> pd.DataFrame:
    """Labels at other thresholds, one row per role and threshold; roles without a testable head are left out.

    Columns role, tau, testable (heads), heads (published rule), heads_by (BY over the heads of the role, sample
    standard deviation), jaccard (with the published labels at `tau`; NaN if neither has a head), mean_layer (of the
    labelled heads, NaN if there are none).
    """
    table = _testable(published_table(scores, tau, alpha))
    labels = _labels_over(table, taus, alpha)
    sample_sd = np.sqrt((table["n"] - _ddof(scores)) / (table["n"] - 1)) * table["sd"]
    p = _p_over(table.assign(sd=sample_sd), taus).groupby("role", sort=False)
    by = p.transform(lambda column: adjust(column.to_numpy(), "fdr_by")) < alpha
    default = table["assigned"].astype(bool).to_numpy()[:, None]
    columns = {
        "testable": _by_role(labels | True),
        "heads": _by_role(labels),
        "heads_by": _by_role(by),
        "jaccard": _by_role(labels & default) / _by_role(labels | default),
        "mean_layer": _by_role(labels.mul(labels.index.get_level_values("layer"), axis=0)) / _by_role(labels),
    }
    return pd.DataFrame({name: column.stack() for name, column in columns.items()}).reset_index()


def tau_layers(scores: xr.DataArray, taus: Sequence[float | int] = TAUS, alpha: float = 0.05) -> pd.DataFrame:
    """Heads with a role per layer at other thresholds (published rule): role, layer, tau, heads."""
    labels = _labels_over(_testable(published_table(scores, 0, alpha)), taus, alpha)
    return labels.groupby(["role", "layer"], sort=False).sum().stack().rename("heads").reset_index()


def _labels_over(table: pd.DataFrame, taus: Sequence[float | int], alpha: float) -> pd.DataFrame:
    """The published label of every row of a role table (rows) at every threshold (columns)."""
    above = table["mean"].to_numpy()[:, None] > np.asarray(taus)
    return (_p_over(table, taus) < alpha) & above


def _p_over(table: pd.DataFrame, taus: Sequence[float | int]) -> pd.DataFrame:
    """p of the one-sided t test for every row of a role table at every threshold; it does not need the scores."""
    n, mean, sd = (table[name].to_numpy()[:, None] for name in ("n", "mean", "sd"))
    p = stats.t.sf((mean - np.asarray(taus, dtype=float)) / (sd / np.sqrt(n)), n - 1)
    return pd.DataFrame(p, table.index, pd.Index(taus, name="tau", dtype=float))


def _testable(table: pd.DataFrame) -> pd.DataFrame:
    """The testable rows of a role table, indexed by role, layer and head."""
    return table[table["assigned"].notna()].set_index(["role", *HEAD])


def _by_role(labels: pd.DataFrame) -> pd.DataFrame:
    return labels.groupby("role", sort=False).sum()


def _ddof(scores: xr.DataArray) -> int:
    return DDOF[scores.attrs.get("arithmetic", "corrected")]


def label_stability(
    scores: xr.DataArray,
    sizes: Sequence[int],
    draws: int = 20,
    seed: int = 0,
    tau: float | int = 3.0,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Published labels on samples of the sequences compared with those on all, one row per role and size.

    Samples are drawn without replacement from the sequences that have the role. Sizes beyond their number are left out,
    and so are roles and heads that cannot be tested. Columns role, size, sequences (all with the role), testable and
    heads_full (heads, all sequences). The other columns are means over the draws, each with its standard deviation
    (`_sd`): agreement (proportion of heads with the same label as on all sequences), jaccard (of the two sets of
    labelled heads, NaN if none is labelled on all sequences), heads. Raises InputError for sizes below 2, for no draws
    and if no size fits.
    """
    if min(sizes, default=0) < 2 or draws < 1:
        raise InputError(
            f"sizes are {[*sizes]}, draws {draws}: give sizes of at least 2 and at least one draw"
        )
    rng = np.random.default_rng(seed)
    table = _testable(published_table(scores, tau, alpha))["assigned"].astype(bool)
    array = scores.stack(column=["role", *HEAD]).transpose("sequence", "column").to_pandas().astype(float)
    rows = []
    for role, full in table.groupby("role", sort=False):
        values = array[full.index].dropna().to_numpy()
        sums = Clusters.of(values)
        # One order of the sequences per draw: a larger sample contains the smaller.
        rank = rng.random((draws, len(values))).argsort(axis=1).argsort(axis=1)
        for size in (size for size in sizes if size <= len(values)):
            sample = sums.of_scores(rank < size)  # without spread t is infinite: the mean alone decides
            with np.errstate(divide="ignore", invalid="ignore"):
                t = (sample.mean - tau) / (sample.error * np.sqrt((size - 1) / (size - _ddof(scores))))
            labels = (stats.t.sf(t, size - 1) < alpha) & (sample.mean > tau)
            found = {"role": role, "size": size, "sequences": len(values), "testable": len(full)}
            rows.append(found | {"heads_full": full.sum()} | _spread(labels, full.to_numpy()))
    if not rows:
        raise InputError(f"sizes are {[*sizes]} of {scores.sizes['sequence']} sequences: give a smaller one")
    return pd.DataFrame(rows)


def _spread(labels: np.ndarray, full: np.ndarray) -> dict[str, float]:
    """Agreement, Jaccard index and number of heads: means over the draws and standard deviations."""
    both, either = (labels & full).sum(axis=1), (labels | full).sum(axis=1)
    jaccard = pd.Series(both / either if full.any() else np.full(len(labels), np.nan))
    agreement, heads = pd.Series((labels == full).mean(axis=1)), pd.Series(labels.sum(axis=1))
    measures = {"agreement": agreement, "jaccard": jaccard, "heads": heads}
    return {
        name + ending: summary(values)
        for name, values in measures.items()
        for ending, summary in {"": pd.Series.mean, "_sd": pd.Series.std}.items()
    }


def variants(
    bank: xr.DataArray, tau: float | int = 3.0, alpha: float = 0.05, **defaults: Any
) -> pd.DataFrame:
    """Published labels under other definitions of the roles (VARIANTS), each compared with the default definition.

    `bank` holds elementary sieves; `defaults` are the arguments of `roles.compose` in the study. Columns variant,
    value, role (testable roles that depend on the variant), heads, jaccard, gained, lost.
    """
    default = published_table(compose(bank, **defaults), tau, alpha)
    parts = []
    for variant, (values, roles) in VARIANTS.items():
        reference = default[default["role"].isin(roles)]
        for value in values:
            composed = compose(bank, **defaults | {variant: value}).sel(role=[*roles])
            found = agreement(reference, published_table(composed, tau, alpha))
            parts.append(found.assign(variant=variant, value=str(value)))
    return pd.concat(parts, ignore_index=True).rename(columns={"heads_second": "heads"})[
        ["variant", "value", "role", "heads", "jaccard", "gained", "lost"]
    ]


def agreement(first: pd.DataFrame, second: pd.DataFrame, column: str = "assigned") -> pd.DataFrame:
    """Labels of two role tables compared, one row per role that has a testable head in both.

    Columns role, heads_first, heads_second, gained (in the second), lost, agreement (proportion of heads with the same
    label; untestable heads count as without), jaccard (NaN if neither has a head).
    """
    tested = [set(table.loc[table[column].notna(), "role"]) for table in (first, second)]
    keys = ["role", *HEAD]
    labels = [table.set_index(keys)[column].fillna(False).astype(bool) for table in (first, second)]
    both = pd.concat(labels, axis=1, keys=["first", "second"], join="inner")
    marks = both.assign(
        gained=~both["first"] & both["second"],
        lost=both["first"] & ~both["second"],
        either=both.any(axis=1),
        same=both["first"] == both["second"],
    ).groupby("role", sort=False)
    sums = marks.sum()
    table = sums[["first", "second"]].add_prefix("heads_").join(sums[["gained", "lost"]])
    table["agreement"] = marks["same"].mean()
    table["jaccard"] = (sums["either"] - sums["gained"] - sums["lost"]) / sums["either"].where(
        sums["either"] > 0
    )
    return table[table.index.isin(set.intersection(*tested))].reset_index()


def dependence(
    scores: xr.DataArray,
    tau: float | int = 3.0,
    alpha: float = 0.05,
    minimum: int = 100,
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """Audited labels with sequences and with clusters of sequences as the unit, one row per role.

    Sequences that share a text form a cluster (coordinate `cluster`); published labels ignore clusters. Columns role,
    sequences, clusters, cluster_size (mean, sequences), published, audited_sequence, audited_cluster (heads), differ
    (audited labels), width_ratio (median over heads of the width of the BCa interval over clusters divided by that over
    sequences). Roles without an audited label are left out. Raises InputError if `cluster` is missing.
    """
    options = {"alpha": alpha, "minimum": minimum, "resamples": resamples, "seed": seed}
    tables = {unit: role_table(scores, tau, unit=unit, **options) for unit in ("sequence", "cluster")}
    compared = agreement(tables["sequence"], tables["cluster"], "assigned_audited").set_index("role")
    published = tables["sequence"].groupby("role", sort=False)["assigned"].sum()
    width = [table.set_index(["role", *HEAD]).eval("high_bca - low_bca") for table in tables.values()]
    columns = {
        "published": published,
        "audited_sequence": compared["heads_first"],
        "audited_cluster": compared["heads_second"],
        "differ": compared["gained"] + compared["lost"],
        "width_ratio": (width[1] / width[0]).groupby("role").median(),
    }
    found = _cluster_counts(scores).join(pd.DataFrame(columns))
    return found.loc[compared.index].rename_axis("role").reset_index()


def _cluster_counts(scores: xr.DataArray) -> pd.DataFrame:
    """Sequences with each role, the clusters that they form, and the mean size of these clusters."""
    present = scores.notnull().any(["layer", "head"]).to_pandas().groupby(_counts(scores, "cluster")).sum()
    counts = pd.DataFrame({"sequences": present.sum(), "clusters": (present > 0).sum()})
    return counts.assign(cluster_size=counts["sequences"] / counts["clusters"])


def parser_noise(
    gold: xr.DataArray, predicted: xr.DataArray, tau: float | int = 3.0, alpha: float = 0.05
) -> pd.DataFrame:
    """Published labels of the syntactic roles from gold and from predicted parses of the same sentences.

    Columns role, n_gold, n_predicted (sentences with the relation), heads_gold, heads_predicted, agreement (proportion
    of heads), jaccard, correlation (Pearson, of the heads' mean scores).
    """
    syntactic = [role for role in ROLES if role in ("syntactic", *RELATIONS)]
    tables = [published_table(scores.sel(role=syntactic), tau, alpha) for scores in (gold, predicted)]
    means = pd.concat([table.set_index(["role", *HEAD])["mean"] for table in tables], axis=1)
    found = agreement(*tables).set_index("role").drop(columns=["gained", "lost"])
    found.columns = found.columns.str.replace("first", "gold").str.replace("second", "predicted")
    found.insert(0, "n_gold", tables[0].groupby("role")["n"].max())
    found.insert(1, "n_predicted", tables[1].groupby("role")["n"].max())
    found["correlation"] = [np.corrcoef(means.loc[role].to_numpy().T)[0, 1] for role in found.index]
    return found.reset_index()


def parser_accuracy(
    gold: Mapping[str, Sequence[Relation]], predicted: Mapping[str, Sequence[Relation]]
) -> pd.DataFrame:
    """Precision and recall of a parser on the four relations: role, gold, predicted, both, precision, recall.

    A predicted relation is right if label, text and the character spans of both words equal those of a gold relation.
    """
    rows = []
    for label in RELATIONS:
        sets = [
            {(name, *relation) for name in gold for relation in parses[name] if relation.label == label}
            for parses in (gold, predicted)
        ]
        rows.append((label, *map(len, sets), len(set.intersection(*sets))))
    table = pd.DataFrame(rows, columns=["role", "gold", "predicted", "both"])
    both = table["both"].astype(float)
    return table.assign(precision=both / table["predicted"], recall=both / table["gold"])


STRATA = ("short", "middle", "long")


def ceilings(scores: xr.DataArray, window: int = 2, weighted_block: bool = True) -> xr.DataArray:
    """The highest score that a head can have: (sequence, role), NaN if a sequence does not have the role.

    `scores` are composed roles. A head that attends only to the sieve S of every token scores the mean of T / |S|; this
    is exact for local, cls, sep and delimiter. For block, the ceiling is that of two texts of equal length, about 2
    unless texts have only a word or two, times the highest entropy, ln T, if `weighted_block`. For relations, it is
    that of a word with a single piece, T; for match, that of a word with a single copy, T. Raises InputError if
    `tokens` or `separators` are missing.
    """
    tokens, separators = (_counts(scores, name) for name in ("tokens", "separators"))
    published = scores.attrs.get("arithmetic") == "published"
    texts = tokens - 1 - separators  # word pieces of both texts
    with np.errstate(divide="ignore"):
        block = 2 + 2 * (1 + separators) / texts
    found = {
        "local": tokens * [_windows(length, window, published)[1].mean() for length in tokens.tolist()],
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
    found = {
        "local": [np.prod(_windows(length, window, published), axis=0).mean() for length in tokens.tolist()]
    }
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
    frames = []
    for name, among in strata.items():
        part = scores.isel(sequence=np.flatnonzero(among))
        tokens, ceiling = part["tokens"].values, ceilings(part, window, weighted_block)
        chosen = part.where(labelled)
        columns = {
            "n": ceiling.count("sequence"),
            "ceiling": ceiling.mean("sequence"),
            "below": (ceiling <= tau).sum("sequence") / ceiling.count("sequence"),
            "mass_at_tau": (tau / ceiling).mean("sequence"),
            "heads": _labels(part, tau, alpha).sum(["layer", "head"]),
            "score": chosen.mean(["sequence", "layer", "head"]),
            "mass": (chosen / ceiling).mean(["sequence", "layer", "head"]),
        }
        found = {
            "stratum": name,
            "role": part["role"].values,
            "shortest": tokens.min(),
            "longest": tokens.max(),
        }
        frames.append(pd.DataFrame(found | {key: column.values for key, column in columns.items()}))
    table = pd.concat(frames)
    return table[table["n"] > 0].reset_index(drop=True)


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


def _windows(length: int, width: int, published: bool) -> tuple[np.ndarray, np.ndarray]:
    """How many tokens each token's window holds, and the weight of each: in the released code, windows at the end
    count as one too large."""
    position = np.arange(length)
    sizes = np.minimum(position + width, length - 1) - np.maximum(position - width, 0) + 1
    return sizes, 1 / (sizes + published * (position >= length - width))


def offset_head(step: int) -> Source:
    """Ideal heads, all alike: every token attends to the token `step` positions on, or to itself if there is none."""

    def read(encoder: Encoder, batch: Sequence[Layout], read: Callable, check: bool = False) -> None:
        maps = _at_offset(step, [len(layout) for layout in batch]).to(encoder.device)
        for layer in range(encoder.layers):
            read(layer, maps[:, None].expand(-1, encoder.heads, -1, -1).contiguous())

    return Source(f"offset {step:+d}", read)


def _at_offset(step: int, lengths: Sequence[int]) -> Tensor:
    """The maps of a batch: rows of padding attend to themselves."""
    position = torch.arange(max(lengths))
    target = (position + step).expand(len(lengths), -1)
    inside = (target >= 0) & (target < torch.tensor(lengths)[:, None])
    return torch.nn.functional.one_hot(torch.where(inside, target, position), max(lengths)).float()


def control_table(
    scores: Mapping[str, tuple[xr.DataArray, xr.DataArray]],
    tau: float | int = 3.0,
    alpha: float = 0.05,
    minimum: int = 100,
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """Labels of encoders and of controls by the three rules: a row for each, and for each of its roles.

    `scores` maps the name of some heads, or of a control that replaces heads, to their composed scores and to the
    scores of their own controls. Columns as in `control_counts_of`.
    """
    options = {"alpha": alpha, "minimum": minimum, "resamples": resamples, "seed": seed}
    tables = [controlled_table(*each, tau, **options).assign(control=name) for name, each in scores.items()]
    return control_counts_of(pd.concat(tables))


def control_counts_of(tables: pd.DataFrame) -> pd.DataFrame:
    """The counts of each rule in role tables, for every role; the column control says whose heads they are.

    Columns (task, state,) control, role, n (sequences), mean (score over all heads), highest (mean score of a head),
    published, audited, controlled (heads). Untestable heads, such as heads with constant scores, have no label.
    """
    summaries: dict[str, tuple[str, str | Callable]] = {
        "n": ("n", "max"),
        "mean": ("mean", "mean"),
        "highest": ("mean", "max"),
        "published": ("assigned", "sum"),
        "audited": ("assigned_audited", "sum"),
        "controlled": ("assigned_controlled", "sum"),
    }
    keys = [*tables.columns.intersection(["task", "state"]), "control", "role"]
    table = tables.groupby(keys, sort=False).agg(**summaries).reset_index()
    return table[table["n"] > 0].reset_index(drop=True)
