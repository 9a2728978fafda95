"""Findings on the claims of Clark 2019, from the notebooks' tables; intervals resample heads or are those of tables."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy import stats

from analysis.papers.clark2019.quantities import UNTRAINED
from analysis.statistics.layers import (
    DRAWS,
    FIRST_THIRD,
    LAST_THIRD,
    MIDDLE,
    drawn_layer_means,
    head_grid,
    layers_within,
)
from analysis.statistics.measures import drawn_measures, with_limits
from analysis.statistics.verdicts import Finding, untestable

FROM_MIDDLE = (Fraction(5, 12), Fraction(1))
FIRST_SIXTH = (Fraction(0), Fraction(1, 6))
# The relations in bold in Table 1 whose heads the article shows, with their names in the treebank.
SPECIALISED = ("obj", "det", "nmod:poss", "aux:pass", "pobj")


@dataclass(frozen=True)
class Tables:
    """The evidence: saved tables of the notebooks, None if one is missing."""

    surface: pd.DataFrame | None = None
    gradients: pd.DataFrame | None = None
    distances: pd.DataFrame | None = None
    dependencies: pd.DataFrame | None = None
    coreference: pd.DataFrame | None = None
    probes: pd.DataFrame | None = None
    drawn: str = "heads of each layer"


def neighbour_heads(tables: Tables) -> Finding:
    """CL1: heads with more than half of their attention on a neighbour; draws take the heads of a layer anew."""
    if tables.surface is None:
        return untestable("no surface patterns")
    counts = {place: int((tables.surface[place] > 0.5).sum()) for place in ("previous", "next")}
    grids = {
        place: head_grid(tables.surface.assign(most=tables.surface[place] > 0.5), "most") for place in counts
    }
    draws = {
        place: drawn_layer_means(grid.astype(float)).sum(axis=1) * grid.shape[1]
        for place, grid in grids.items()
    }
    measures = drawn_measures(draws)
    value = f"{counts['previous']} and {counts['next']} of {len(tables.surface)} heads"
    return Finding(value, len(tables.surface), measures, control="uniform heads: none")


def layer_means(tables: Tables, column: str) -> Finding:
    """CL2, CL3: the mean share of each middle layer."""
    if tables.surface is None:
        return untestable("no surface patterns")
    grid = head_grid(tables.surface, column)
    means = drawn_layer_means(grid)
    units = {f"layer {layer}": means[:, layer] for layer in layers_within(len(grid), MIDDLE)}
    value = ", ".join(f"{name} {draws[0]:.0%}" for name, draws in units.items())
    return Finding(
        value, grid.shape[1], drawn_measures(units), control="chance, as the article puts it: about 1 of 64"
    )


def first_and_last_targets(tables: Tables) -> Finding:
    """CL4: attention to [CLS] in the first third minus the last, and the reverse for full stops and commas."""
    if tables.surface is None:
        return untestable("no surface patterns")
    depth = tables.surface["layer"].nunique()
    first, last = layers_within(depth, FIRST_THIRD), layers_within(depth, LAST_THIRD)
    means = {column: drawn_layer_means(head_grid(tables.surface, column)) for column in ("cls", "punct")}
    early, late = (
        {name: each[:, band].mean(axis=1) for name, each in means.items()} for band in (first, last)
    )
    units = {"[CLS]": early["cls"] - late["cls"], "stops and commas": late["punct"] - early["punct"]}
    value = ", ".join(
        f"{name} {early[column][0]:.1%} in the first, {late[column][0]:.1%} in the last third"
        for name, column in (("[CLS]", "cls"), ("stops and commas", "punct"))
    )
    heads = len(tables.surface) * (len(first) + len(last)) // depth
    return Finding(value, heads, drawn_measures(units), control="uniform heads: no difference")


def separator_gradients(tables: Tables) -> Finding:
    """CL5: gradients on [SEP] divided by those on other words, by layer."""
    if tables.gradients is None:
        return untestable("no gradients")
    groups = {name: head_grid(part, "importance") for name, part in tables.gradients.groupby("group")}
    seps, others = (drawn_layer_means(groups[name]) for name in ("sep", "other"))  # with the same draws
    units = {
        f"layer {layer}": seps[:, layer] / others[:, layer]
        for layer in layers_within(len(groups["sep"]), FROM_MIDDLE)
    }
    value = ", ".join(f"{name} {draws[0]:.2f}" for name, draws in units.items())
    return Finding(
        f"[SEP] over other words: {value}", groups["sep"].shape[1], drawn_measures(units), control="alike: 1"
    )


def broad_heads(tables: Tables) -> Finding:
    """CL6: how much higher the entropy of the first layers is than that of the middle ones."""
    if tables.surface is None:
        return untestable("no surface patterns")
    grid = head_grid(tables.surface, "entropy")
    means = drawn_layer_means(grid)
    bands = [layers_within(len(grid), region) for region in (FIRST_SIXTH, MIDDLE)]
    first, middle = (means[:, band].mean(axis=1) for band in bands)
    value = f"{first[0]:.2f} nats in the first, {middle[0]:.2f} in the middle layers"
    measures = drawn_measures({"": first - middle})
    return Finding(
        value, sum(map(len, bands)) * grid.shape[1], measures, control="uniform heads: no difference"
    )


def heads_beat_offsets(tables: Tables) -> Finding:
    """CL7: accuracy of the best head minus that of the best offset, by relation."""
    if tables.dependencies is None:
        return untestable("no dependencies")
    rows = tables.dependencies.set_index("relation").reindex(SPECIALISED).dropna(subset="accuracy")
    if rows.empty:
        return untestable(f"none of the relations {', '.join(SPECIALISED)} is frequent enough")
    value = ", ".join(
        f"{name} {row.accuracy:.1%} against {row.offset_accuracy:.1%}"
        for name, row in zip(rows.index, rows.itertuples(), strict=True)
    )
    found = _against(rows["accuracy"], rows["low"], rows["high"], rows["offset_accuracy"])
    n = rows["n"].astype(int).to_dict() if len(rows) > 1 else int(rows["n"].iloc[0])
    control = ", ".join(f"{name} {share:.1%}" for name, share in rows["offset_accuracy"].items())
    return Finding(value, n, *found, control=f"best offset: {control}")


def overall_accuracy(tables: Tables) -> Finding:
    """CL8: accuracy of the best head over all arcs."""
    if tables.dependencies is None or "all" not in set(tables.dependencies["relation"]):
        return untestable("no dependencies")
    row = tables.dependencies.set_index("relation").loc[["all"]]
    offset = float(row["offset_accuracy"].iloc[0])
    found = _against(row["accuracy"], row["low"], row["high"], 0 * row["accuracy"])
    value = f"{float(row['accuracy'].iloc[0]):.1%}, the best offset {offset:.1%}"
    return Finding(value, int(row["n"].iloc[0]), *found, control=f"best offset: {offset:.1%}")


def antecedents(tables: Tables, rule: str) -> Finding:
    """CL9, CL10: accuracy of the best head minus that of a rule, in each reading of the candidates."""
    if tables.coreference is None:
        return untestable("no coreference")
    halves = tables.coreference[tables.coreference["scored_on"] != "all documents"]
    heads = halves[halves["system"].str.startswith("best head")].set_index("candidates")
    rules = halves[halves["system"] == rule].set_index("candidates").loc[heads.index]
    value = ", ".join(
        f"{name} {heads.loc[name, 'all']:.1%} against {rules.loc[name, 'all']:.1%}" for name in heads.index
    )
    found = _against(heads["all"], heads["low"], heads["high"], rules["all"])
    return Finding(value, int(heads["n"].iloc[0]), *found, control=f"{rule}: {rules['all'].iloc[0]:.1%}")


def probes_differ(tables: Tables, first: str, second: str) -> Finding:
    """CL11, CL12: accuracy of one probe minus that of another, or (without a second) minus its own on untrained layers.

    The interval is that of the paired t test over seeds.
    """
    if tables.probes is None:
        return untestable("no probes")
    untrained = tables.probes["encoder"].str.endswith(UNTRAINED)
    probe = tables.probes["probe"]
    chosen = (probe == first) & ~untrained, (probe == second) if second else (probe == first) & untrained
    one, other = (tables.probes[rows].set_index("seed")["uas_no_punct"] for rows in chosen)
    difference = (one - other).dropna()
    if difference.empty:
        return untestable("no such probes with the same seeds")
    value = f"{one.mean():.1%} against {other.mean():.1%} ({len(difference)} seeds)"
    mean = pd.Series({"": difference.mean()})
    if len(difference) < 2:
        return Finding(value, 1, drawn_measures({"": difference.to_numpy()}))
    low, high = stats.t.interval(0.95, len(difference) - 1, difference.mean(), stats.sem(difference))
    found = _against(mean, pd.Series({"": low}), pd.Series({"": high}), 0 * mean)
    return Finding(value, len(difference), *found, control=f"{second or UNTRAINED}: {other.mean():.1%}")


def layers_cluster(tables: Tables) -> Finding:
    """CL13: the distance between heads of different layers relative to that within a layer, minus 1."""
    if tables.distances is None:
        return untestable("no distances")
    same = tables.distances["layer"] == tables.distances["other_layer"]
    within, between = (tables.distances.loc[rows, "distance"].mean() for rows in (same, ~same))
    heads = len(set(map(tuple, tables.distances[["other_layer", "other_head"]].to_numpy()))) + 1
    value = f"{within:.0f} within, {between:.0f} between layers (nats)"
    measures = drawn_measures({"": _drawn_clusters(tables.distances)})
    return Finding(value, heads, measures, control="heads dealt to layers at random: none on average")


def _drawn_clusters(distances: pd.DataFrame) -> Float[np.ndarray, " draw"]:
    """CL13 on the sample, then with the heads of every layer drawn anew; pairs of one head with itself do not count."""
    one, other = ([*zip(distances[a], distances[b], strict=True)] for a, b in
                  (("layer", "head"), ("other_layer", "other_head")))  # fmt: skip
    heads = sorted({*one, *other})
    place = {head: number for number, head in enumerate(heads)}
    rows, columns = ([place[head] for head in side] for side in (one, other))
    layer = np.array([head[0] for head in heads])
    drawn = np.ones((1 + DRAWS, len(heads)))
    rng = np.random.default_rng(0)
    for each in np.unique(layer):
        own = np.flatnonzero(layer == each)
        drawn[1:, own] = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), DRAWS)
    weights = drawn[:, rows] * drawn[:, columns]
    apart, same = distances["distance"].to_numpy(float), layer[rows] == layer[columns]
    with np.errstate(invalid="ignore"):
        within, between = (
            (weights[:, kind] @ apart[kind]) / weights[:, kind].sum(axis=1) for kind in (same, ~same)
        )
    return (between - within) / between


def _against(
    values: pd.Series, low: pd.Series, high: pd.Series, other: pd.Series
) -> tuple[xr.DataArray, xr.DataArray]:
    """Measures and limits of values minus others, which count as known."""
    value, ends = values - other, ((end - other).fillna(values - other) for end in (low, high))
    return with_limits(map(str, values.index), value, *ends)  # all right or all wrong: no spread
