"""Findings on the claims of Clark 2019, from the tables of the notebooks; intervals draw heads, or are the tables'."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy import stats

from analysis.statistics.verdicts import Finding, untestable

MIDDLE = (Fraction(5, 12), Fraction(10, 12))
FROM_MIDDLE = (Fraction(5, 12), Fraction(1))
FIRST_SIXTH = (Fraction(0), Fraction(1, 6))
FIRST_THIRD, LAST_THIRD = (Fraction(0), Fraction(1, 3)), (Fraction(2, 3), Fraction(1))
DRAWS = 499
# The relations in bold of Table 1 whose heads the article shows, as the treebank calls them.
SPECIALISED = ("obj", "det", "nmod:poss", "aux:pass", "pobj")
UNTRAINED = "random layers"  # how the names of untrained encoders end


@dataclass(frozen=True)
class Tables:
    """The evidence: saved tables of the notebooks, None where one is not there."""

    surface: pd.DataFrame | None = None
    gradients: pd.DataFrame | None = None
    distances: pd.DataFrame | None = None
    dependencies: pd.DataFrame | None = None
    coreference: pd.DataFrame | None = None
    probes: pd.DataFrame | None = None
    drawn: str = "heads of each layer"


def neighbour_heads(tables: Tables) -> Finding:
    """CL1: heads with more than half of their attention on a neighbour."""
    if tables.surface is None:
        return untestable("no surface patterns")
    counts = {place: int((tables.surface[place] > 0.5).sum()) for place in ("previous", "next")}
    measures = _measures({place: np.array([count]) for place, count in counts.items()})
    value = f"{counts['previous']} and {counts['next']} of {len(tables.surface)} heads"
    return Finding(value, len(tables.surface), measures, control="uniform heads: none")


def layer_means(tables: Tables, column: str) -> Finding:
    """CL2, CL3: the mean share of each middle layer."""
    if tables.surface is None:
        return untestable("no surface patterns")
    grid = _grid(tables.surface, column)
    means = _drawn_means(grid)
    units = {f"layer {layer}": means[:, layer] for layer in _band(len(grid), MIDDLE)}
    value = ", ".join(f"{name} {draws[0]:.0%}" for name, draws in units.items())
    return Finding(
        value, grid.shape[1], _measures(units), control="chance, as the article puts it: about 1 of 64"
    )


def first_and_last_targets(tables: Tables) -> Finding:
    """CL4: more [CLS] in the first third than in the last, and the reverse for full stops and commas."""
    if tables.surface is None:
        return untestable("no surface patterns")
    depth = tables.surface["layer"].nunique()
    first, last = _band(depth, FIRST_THIRD), _band(depth, LAST_THIRD)
    means = {column: _drawn_means(_grid(tables.surface, column)) for column in ("cls", "punct")}
    early, late = (
        {name: each[:, band].mean(axis=1) for name, each in means.items()} for band in (first, last)
    )
    units = {"[CLS]": early["cls"] - late["cls"], "stops and commas": late["punct"] - early["punct"]}
    value = ", ".join(
        f"{name} {early[column][0]:.1%} in the first, {late[column][0]:.1%} in the last third"
        for name, column in (("[CLS]", "cls"), ("stops and commas", "punct"))
    )
    heads = len(tables.surface) * (len(first) + len(last)) // depth
    return Finding(value, heads, _measures(units), control="uniform heads: no difference")


def separator_gradients(tables: Tables) -> Finding:
    """CL5: gradients on [SEP] over those on other words, layer by layer."""
    if tables.gradients is None:
        return untestable("no gradients")
    groups = {name: _grid(part, "importance") for name, part in tables.gradients.groupby("group")}
    seps, others = (_drawn_means(groups[name]) for name in ("sep", "other"))  # the same draws of heads
    units = {
        f"layer {layer}": seps[:, layer] / others[:, layer]
        for layer in _band(len(groups["sep"]), FROM_MIDDLE)
    }
    value = ", ".join(f"{name} {draws[0]:.2f}" for name, draws in units.items())
    return Finding(
        f"[SEP] over other words: {value}", groups["sep"].shape[1], _measures(units), control="alike: 1"
    )


def broad_heads(tables: Tables) -> Finding:
    """CL6: how much higher the entropy of the first layers is than that of the middle ones."""
    if tables.surface is None:
        return untestable("no surface patterns")
    grid = _grid(tables.surface, "entropy")
    means = _drawn_means(grid)
    bands = [_band(len(grid), region) for region in (FIRST_SIXTH, MIDDLE)]
    first, middle = (means[:, band].mean(axis=1) for band in bands)
    value = f"{first[0]:.2f} nats in the first, {middle[0]:.2f} in the middle layers"
    measures = _measures({"": first - middle})
    return Finding(
        value, sum(map(len, bands)) * grid.shape[1], measures, control="uniform heads: no difference"
    )


def heads_beat_offsets(tables: Tables) -> Finding:
    """CL7: accuracy of the best head minus that of the best offset, relation by relation."""
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
    """CL11, CL12: accuracy of one probe minus that of another, or of the same on untrained layers (no second).

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
        return Finding(value, 1, _measures({"": difference.to_numpy()}))
    low, high = stats.t.interval(0.95, len(difference) - 1, difference.mean(), stats.sem(difference))
    found = _against(mean, pd.Series({"": low}), pd.Series({"": high}), 0 * mean)
    return Finding(value, len(difference), *found, control=f"{second or UNTRAINED}: {other.mean():.1%}")


def layers_cluster(tables: Tables) -> Finding:
    """CL13: how much farther apart heads of different layers are than those of one layer, as a share."""
    if tables.distances is None:
        return untestable("no distances")
    same = tables.distances["layer"] == tables.distances["other_layer"]
    within, between = (tables.distances.loc[rows, "distance"].mean() for rows in (same, ~same))
    heads = len(set(map(tuple, tables.distances[["other_layer", "other_head"]].to_numpy()))) + 1
    value = f"{within:.0f} within, {between:.0f} between layers (nats)"
    measures = _measures({"": np.array([(between - within) / between])})
    return Finding(value, heads, measures, control="heads dealt to layers at random: none on average")


def _band(depth: int, region: tuple[Fraction, Fraction]) -> list[int]:
    """The layers whose relative depth lies in [start, stop), at least one."""
    start, stop = (bound * depth for bound in region)
    return [layer for layer in range(depth) if start <= layer < stop] or [int(start)]


def _grid(table: pd.DataFrame, column: str) -> Float[np.ndarray, "layer head"]:
    return table.pivot(index="layer", columns="head", values=column).to_numpy()


def _drawn_means(grid: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, "draw layer"]:
    """Mean of every layer, first as it is, then of heads drawn with replacement within each layer."""
    layers, heads = grid.shape
    drawn = np.random.default_rng(0).integers(heads, size=(DRAWS, layers, heads))
    means = np.take_along_axis(grid[None], drawn, axis=2).mean(axis=2)
    return np.concatenate([grid.mean(axis=1)[None], means])


def _measures(units: dict[str, Float[np.ndarray, " replicate"]]) -> xr.DataArray:
    return xr.DataArray(np.stack([*units.values()]), {"unit": [*units]}, ("unit", "replicate"))


def _against(
    values: pd.Series, low: pd.Series, high: pd.Series, other: pd.Series
) -> tuple[xr.DataArray, xr.DataArray | None]:
    """Measures and limits of values minus others that are taken as known; no limits where the table has none."""
    measures = _measures({str(name): np.array([value]) for name, value in (values - other).items()})
    ends = pd.concat([low - other, high - other], axis=1)
    known = ends.fillna({column: (values - other) for column in ends})  # all right or all wrong: no spread
    limits = xr.DataArray(
        known.to_numpy(float), {"unit": measures["unit"].values, "end": ["low", "high"]}, ("unit", "end")
    )
    return measures, limits
