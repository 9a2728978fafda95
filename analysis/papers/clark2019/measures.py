"""What each claim of Clark 2019 measures: a tidy frame for each claim, from the tables of its notebooks."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from analysis.papers.clark2019.published import BOTH_HALVES, MARKED, UNTRAINED
from analysis.statistics.claims import read_claims, sampled, tabled, untestable
from analysis.statistics.layers import (
    DRAWS,
    FIRST_THIRD,
    LAST_THIRD,
    MIDDLE,
    drawn_layer_means,
    head_grid,
    layers_within,
)
from analysis.statistics.resampling import resampled

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
TABLES = tuple(
    "surface uniform extremes gradients_heads distances dependencies coreference_readings probes".split()
)
LEAST_LAYERS = 2  # middle layers, for a claim about them
LEVEL = 0.05
# The relations in bold in Table 1 whose heads the article shows, with their names in the treebank.
SPECIALISED = ("obj", "det", "nmod:poss", "aux:pass", "pobj")
FAIR, STRICT = "preceding_mention_heads", "all_words"  # what the head that finds antecedents chooses among


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its notebook of verdicts saved it."""
    return results.claims("claims-clark2019")


def sink(surface: pd.DataFrame) -> str:
    """The special token that gets most attention, cls or sep: where heads rest, by the account of section 3.2."""
    return str(surface[["sep", "cls"]].mean().idxmax())


def extreme_heads(
    extremes: pd.DataFrame, uniform: pd.DataFrame, statistics: Sequence[str], largest: bool
) -> pd.DataFrame:
    """CL1, CL14: the head with the largest (or smallest) mean of each statistic; its far end is that of any head."""
    rows = []
    for name, part in extremes[extremes["statistic"].isin(statistics)].groupby("statistic", sort=False):
        best = part.loc[part["mean"].idxmax() if largest else part["mean"].idxmin()]
        ends = (best["low"], part["high"].max()) if largest else (part["low"].min(), best["high"])
        rows.append(
            (name, f"{MARKED[name]}, head {best['layer']}-{best['head']}", best["mean"], *ends, best["n"])
        )
    found = pd.DataFrame(rows, columns=["statistic", "unit", "mean", "low", "high", "n"])
    return tabled(found.merge(uniform, "left"), "unit", "mean", control="uniform")


def middle_layers(surface: pd.DataFrame, column: str, uniform: pd.DataFrame) -> pd.DataFrame:
    """CL2, CL3: the mean share of each middle layer; the control attends uniformly."""
    grid = head_grid(surface, column)
    middle = layers_within(len(grid), MIDDLE)
    if len(middle) < LEAST_LAYERS:
        return untestable(f"fewer than {LEAST_LAYERS} middle layers")
    means = drawn_layer_means(grid)
    units = {f"{MARKED[column]}, layer {layer}": means[:, layer] for layer in middle}
    evenly = uniform.set_index("statistic")["uniform"].get(column, np.nan)
    return sampled(units, grid.shape[1], control=dict.fromkeys(units, evenly))


def first_and_last_targets(surface: pd.DataFrame) -> pd.DataFrame:
    """CL4: attention to [CLS] in the first third minus the last, and the reverse for full stops and commas."""
    cls, heads = _regions(surface, "cls", FIRST_THIRD, LAST_THIRD)
    punct, _ = _regions(surface, "punct", LAST_THIRD, FIRST_THIRD)
    units = {MARKED["cls"]: cls[0] - cls[1], MARKED["punct"]: punct[0] - punct[1]}
    return sampled(units, heads, control=dict.fromkeys(units, 0.0))


def gradients_of_sink(surface: pd.DataFrame, gradients: pd.DataFrame, token: str) -> pd.DataFrame:
    """CL5: gradients on a token over those on other words, in each layer where it gets most of the marks' attention."""
    means = surface.groupby("layer")[["cls", "sep", "punct"]].mean()
    most = means.index[means[token] > means.drop(columns=token).sum(axis=1)]
    if most.empty:
        return untestable(
            f"{MARKED[token]} gets {means[token].min():.0%} to {means[token].max():.0%} of a layer's attention"
        )
    grids = [head_grid(gradients[gradients["group"] == name], "importance") for name in (token, "other")]
    own, others = map(drawn_layer_means, grids)  # with the same draws
    units = {f"{MARKED[token]}, layer {layer}": own[:, layer] / others[:, layer] for layer in most}
    return sampled(units, grids[0].shape[1], control=dict.fromkeys(units, 1.0))


def broad_layers(surface: pd.DataFrame) -> pd.DataFrame:
    """CL6: how much higher the entropy of the first third of the layers is than that of the middle ones."""
    if (
        min(len(layers_within(surface["layer"].nunique(), each)) for each in (FIRST_THIRD, MIDDLE))
        < LEAST_LAYERS
    ):
        return untestable(f"fewer than {LEAST_LAYERS} first or middle layers")
    (first, middle), heads = _regions(surface, "entropy", FIRST_THIRD, MIDDLE)
    lowest = surface.loc[surface["layer"] == 0, "entropy"].mean()
    note = f"{first[0]:.2f} against {middle[0]:.2f}; layer 0 alone {lowest:.2f}"
    return sampled({"": first - middle}, heads, control={"": 0.0}, note=note)


def _regions(surface: pd.DataFrame, column: str, *regions: tuple) -> tuple[list[np.ndarray], int]:
    """The mean of a column in regions of the layers, with the same draws, and the number of heads in all of them."""
    grid = head_grid(surface, column)
    means, bands = drawn_layer_means(grid), [layers_within(len(grid), region) for region in regions]
    return [means[:, band].mean(axis=1) for band in bands], grid.shape[1] * sum(map(len, bands))


def heads_beat_offsets(dependencies: pd.DataFrame) -> pd.DataFrame:
    """CL7: accuracy of the best head minus that of the best offset, for each relation of SPECIALISED."""
    gain = dependencies["accuracy"] - dependencies["offset_accuracy"]
    beaten = (dependencies["p_adjusted"] < LEVEL) & (gain > 0)
    rows = dependencies.set_index("relation").reindex(SPECIALISED).dropna(subset="accuracy").reset_index()
    if rows.empty:
        return untestable(f"none of the relations {', '.join(SPECIALISED)} is frequent enough")
    note = f"in {beaten.sum()} of {len(dependencies)} relations a head beats the offset"
    return _against(rows, "relation", "accuracy", rows["offset_accuracy"], note)


def overall_accuracy(dependencies: pd.DataFrame) -> pd.DataFrame:
    """CL8: accuracy of the best head over all arcs; the control is the best offset."""
    row = dependencies[dependencies["relation"] == "all"].assign(relation="")
    return tabled(row, "relation", "accuracy", control="offset_accuracy")


def antecedents(coreference: pd.DataFrame, candidates: str, rule: str) -> pd.DataFrame:
    """CL9, CL10: accuracy of the best head among `candidates` minus that of a rule, on the same anaphors."""
    reading = coreference[coreference["candidates"] == candidates]
    if reading.empty:
        return untestable("no coreference in this reading")
    halves = reading[reading["scored_on"] == BOTH_HALVES]
    head = halves[halves["layer"].notna()].assign(unit="").reset_index(drop=True)
    known = halves.loc[halves["system"] == rule, "all"].reset_index(drop=True)
    return _against(head, "unit", "all", known, f"{head['all'][0]:.1%} against {known[0]:.1%}")


def probes_differ(probes: pd.DataFrame, other: str) -> pd.DataFrame:
    """CL11, CL12: accuracy of the probe of attention and words minus that of another, or of itself on random layers.

    The interval is that of the paired t test over seeds.
    """
    untrained = probes["encoder"].str.endswith(UNTRAINED)
    full = probes["probe"] == "attention + words"
    chosen = full & untrained if other == UNTRAINED else (probes["probe"] == other) & ~untrained
    one, two = (probes[rows].set_index("seed")["uas_no_punct"] for rows in (full & ~untrained, chosen))
    difference = (one - two).dropna()
    mean, n = difference.mean(), len(difference)
    half = stats.t.ppf(1 - LEVEL / 2, n - 1) * difference.sem()
    row = pd.DataFrame({"unit": [""], "value": mean, "low": mean - half, "high": mean + half, "n": n})
    return tabled(row, "unit", "value", note=f"{one.mean():.1%} against {two.mean():.1%} ({other})")


def layers_cluster(distances: pd.DataFrame) -> pd.DataFrame:
    """CL13: mean distance between heads of different layers minus that within a layer, over the former.

    Draws take the heads of every layer anew; pairs of one head with itself do not count.
    """
    ends = np.concatenate([distances[["layer", "head"]], distances[["other_layer", "other_head"]]])
    heads, places = np.unique(ends, axis=0, return_inverse=True)
    (rows, columns), layer = np.split(places, 2), heads[:, 0]
    drawn, rng = np.ones((1 + DRAWS, len(heads))), np.random.default_rng(0)
    for each in np.unique(layer):
        own = np.flatnonzero(layer == each)
        drawn[:, own] = resampled(len(own), DRAWS, rng)
    weights = drawn[:, rows] * drawn[:, columns]
    apart, same = distances["distance"].to_numpy(float), layer[rows] == layer[columns]
    with np.errstate(invalid="ignore"):
        within, between = (
            (weights[:, kind] @ apart[kind]) / weights[:, kind].sum(axis=1) for kind in (same, ~same)
        )
    note = f"{within[0]:.0f} within, {between[0]:.0f} between layers (nats)"
    return sampled({"": (between - within) / between}, len(heads), control={"": 0.0}, note=note)


def _against(rows: pd.DataFrame, unit: str, value: str, known: pd.Series, note: str) -> pd.DataFrame:
    """Values of a table minus values that count as known; all right or all wrong: no spread."""
    ends = rows[["low", "high"]].fillna({"low": rows[value], "high": rows[value]})
    shifted = rows.assign(low=ends["low"] - known, high=ends["high"] - known)
    shifted[value] = rows[value] - known
    return tabled(shifted, unit, value, note=note)


# The measure of each claim, from the saved tables `clark_<name>` of TABLES.
MEASURES: dict[str, Callable[[Mapping[str, pd.DataFrame]], pd.DataFrame]] = {
    "CL1": lambda of: extreme_heads(of["extremes"], of["uniform"], ["previous", "next"], largest=True),
    "CL2": lambda of: middle_layers(of["surface"], "sep", of["uniform"]),
    "CL2b": lambda of: middle_layers(of["surface"], sink(of["surface"]), of["uniform"]),
    "CL3": lambda of: middle_layers(of["surface"], "sep_sep", of["uniform"]),
    "CL3b": lambda of: middle_layers(of["surface"], "{0}_{0}".format(sink(of["surface"])), of["uniform"]),
    "CL4": lambda of: first_and_last_targets(of["surface"]),
    "CL5": lambda of: gradients_of_sink(of["surface"], of["gradients_heads"], "sep"),
    "CL5b": lambda of: gradients_of_sink(of["surface"], of["gradients_heads"], sink(of["surface"])),
    "CL6": lambda of: broad_layers(of["surface"]),
    "CL7": lambda of: heads_beat_offsets(of["dependencies"]),
    "CL8": lambda of: overall_accuracy(of["dependencies"]),
    "CL9": lambda of: antecedents(of["coreference_readings"], FAIR, "head match"),
    "CL9b": lambda of: antecedents(of["coreference_readings"], STRICT, "head match"),
    "CL10": lambda of: antecedents(of["coreference_readings"], FAIR, "rule-based"),
    "CL10b": lambda of: antecedents(of["coreference_readings"], STRICT, "rule-based"),
    "CL11": lambda of: probes_differ(of["probes"], "distances + words"),
    "CL12": lambda of: probes_differ(of["probes"], UNTRAINED),
    "CL13": lambda of: layers_cluster(of["distances"]),
    "CL14": lambda of: extreme_heads(of["extremes"], of["uniform"], ["most"], largest=False),
}


def measures(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the saved tables `clark_<name>` of TABLES."""
    return {name: measure(tables) for name, measure in MEASURES.items()}
