"""What each claim of Clark 2019 measures: a tidy frame for each claim, from the tables of its notebooks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
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
SEP = "sep"


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its notebook of verdicts saved it."""
    return results.claims("claims-clark2019")


def measures(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the saved tables `clark_<name>` of TABLES; some may be missing."""
    surface, uniform, extremes, gradients, distances, dependencies, coreference, probes = (
        tables.get(name, pd.DataFrame()) for name in TABLES
    )
    evenly = uniform.set_index("statistic")["uniform"].to_dict() if len(uniform) else {}
    own = sink(surface) if len(surface) else SEP
    return {
        "CL1": extreme_heads(extremes, evenly, ["previous", "next"], largest=True),
        "CL2": middle_layers(surface, SEP, evenly),
        "CL2b": middle_layers(surface, own, evenly),
        "CL3": middle_layers(surface, f"{SEP}_{SEP}", evenly),
        "CL3b": middle_layers(surface, f"{own}_{own}", evenly),
        "CL4": first_and_last_targets(surface),
        "CL5": gradients_of_sink(surface, gradients, SEP),
        "CL5b": gradients_of_sink(surface, gradients, own),
        "CL6": broad_layers(surface),
        "CL7": heads_beat_offsets(dependencies),
        "CL8": overall_accuracy(dependencies),
        "CL9": antecedents(coreference, FAIR, "head match"),
        "CL9b": antecedents(coreference, STRICT, "head match"),
        "CL10": antecedents(coreference, FAIR, "rule-based"),
        "CL10b": antecedents(coreference, STRICT, "rule-based"),
        "CL11": probes_differ(probes, "distances + words"),
        "CL12": probes_differ(probes, UNTRAINED),
        "CL13": layers_cluster(distances),
        "CL14": extreme_heads(extremes, evenly, ["most"], largest=False),
    }


def sink(surface: pd.DataFrame) -> str:
    """The special token that gets most attention, cls or sep: where heads rest, by the account of section 3.2."""
    return str(surface[["sep", "cls"]].mean().idxmax())


def extreme_heads(
    extremes: pd.DataFrame, evenly: Mapping[str, float], statistics: Sequence[str], largest: bool
) -> pd.DataFrame:
    """CL1, CL14: the head with the largest (or smallest) mean of each statistic; its far end is that of any head."""
    rows = []
    for name, part in extremes.groupby("statistic", sort=False) if len(extremes) else ():
        if name in statistics:
            best = part.loc[part["mean"].idxmax() if largest else part["mean"].idxmin()]
            ends = (best["low"], part["high"].max()) if largest else (part["low"].min(), best["high"])
            unit = f"{MARKED[name]}, head {best['layer']}-{best['head']}"
            rows.append((unit, best["mean"], *ends, best["n"], evenly.get(name, np.nan)))
    found = pd.DataFrame(rows, columns=["unit", "mean", "low", "high", "n", "uniform"])
    return tabled(found, "unit", "mean", control="uniform", note="" if rows else "no surface patterns")


def middle_layers(surface: pd.DataFrame, column: str, evenly: Mapping[str, float]) -> pd.DataFrame:
    """CL2, CL3: the mean share of each middle layer; the control attends uniformly."""
    if surface.empty:
        return untestable("no surface patterns")
    grid = head_grid(surface, column)
    middle = layers_within(len(grid), MIDDLE)
    if len(middle) < LEAST_LAYERS:
        return untestable(f"fewer than {LEAST_LAYERS} middle layers")
    means = drawn_layer_means(grid)
    units = {f"{MARKED[column]}, layer {layer}": means[:, layer] for layer in middle}
    control = dict.fromkeys(units, evenly.get(column, np.nan))
    return sampled(units, grid.shape[1], control=control)


def first_and_last_targets(surface: pd.DataFrame) -> pd.DataFrame:
    """CL4: attention to [CLS] in the first third minus the last, and the reverse for full stops and commas."""
    if surface.empty:
        return untestable("no surface patterns")
    depth = surface["layer"].nunique()
    bands = [layers_within(depth, third) for third in (FIRST_THIRD, LAST_THIRD)]
    units = {}
    for column, sign in (("cls", 1), ("punct", -1)):
        means = drawn_layer_means(head_grid(surface, column))
        early, late = (means[:, band].mean(axis=1) for band in bands)
        units[MARKED[column]] = sign * (early - late)
    heads = len(surface) * sum(map(len, bands)) // depth
    return sampled(units, heads, control=dict.fromkeys(units, 0.0))


def gradients_of_sink(surface: pd.DataFrame, gradients: pd.DataFrame, token: str) -> pd.DataFrame:
    """CL5: gradients on a token over those on other words, in each layer where it gets most of the marks' attention."""
    if surface.empty or gradients.empty:
        return untestable("no gradients")
    means = surface.groupby("layer")[["cls", "sep", "punct"]].mean()
    most = means.index[means[token] > means.drop(columns=token).sum(axis=1)]
    if most.empty:
        return untestable(
            f"{MARKED[token]} gets {means[token].min():.0%} to {means[token].max():.0%} of a layer's attention"
        )
    groups = {name: head_grid(part, "importance") for name, part in gradients.groupby("group")}
    own, others = (drawn_layer_means(groups[name]) for name in (token, "other"))  # with the same draws
    units = {f"{MARKED[token]}, layer {layer}": own[:, layer] / others[:, layer] for layer in most}
    return sampled(units, groups[token].shape[1], control=dict.fromkeys(units, 1.0))


def broad_layers(surface: pd.DataFrame) -> pd.DataFrame:
    """CL6: how much higher the entropy of the first third of the layers is than that of the middle ones."""
    if surface.empty:
        return untestable("no surface patterns")
    grid = head_grid(surface, "entropy")
    means = drawn_layer_means(grid)
    bands = [layers_within(len(grid), region) for region in (FIRST_THIRD, MIDDLE)]
    if min(map(len, bands)) < LEAST_LAYERS:
        return untestable(f"fewer than {LEAST_LAYERS} first or middle layers")
    first, middle = (means[:, band].mean(axis=1) for band in bands)
    note = f"{first[0]:.2f} against {middle[0]:.2f}; layer 0 alone {means[0, 0]:.2f}"
    return sampled({"": first - middle}, sum(map(len, bands)) * grid.shape[1], control={"": 0.0}, note=note)


def heads_beat_offsets(dependencies: pd.DataFrame) -> pd.DataFrame:
    """CL7: accuracy of the best head minus that of the best offset, for each relation of SPECIALISED."""
    if dependencies.empty:
        return untestable("no dependencies")
    gain = dependencies["accuracy"] - dependencies["offset_accuracy"]
    beaten = (dependencies["p_adjusted"] < LEVEL) & (gain > 0)
    rows = dependencies.set_index("relation").reindex(SPECIALISED).dropna(subset="accuracy").reset_index()
    if rows.empty:
        return untestable(f"none of the relations {', '.join(SPECIALISED)} is frequent enough")
    note = f"in {beaten.sum()} of {len(dependencies)} relations a head beats the offset"
    return _against(rows, "relation", "accuracy", rows["offset_accuracy"], note)


def overall_accuracy(dependencies: pd.DataFrame) -> pd.DataFrame:
    """CL8: accuracy of the best head over all arcs; the control is the best offset."""
    rows = dependencies[dependencies["relation"] == "all"] if len(dependencies) else dependencies
    if rows.empty:
        return untestable("no dependencies")
    return tabled(rows.assign(relation=""), "relation", "accuracy", control="offset_accuracy")


def antecedents(coreference: pd.DataFrame, candidates: str, rule: str) -> pd.DataFrame:
    """CL9, CL10: accuracy of the best head among `candidates` minus that of a rule, on the same anaphors."""
    if coreference.empty or candidates not in set(coreference["candidates"]):
        return untestable("no coreference in this reading")
    halves = coreference[
        (coreference["candidates"] == candidates) & (coreference["scored_on"] == BOTH_HALVES)
    ]
    head = halves[halves["layer"].notna()].assign(unit="").reset_index(drop=True)
    known = halves.loc[halves["system"] == rule, "all"].reset_index(drop=True)
    return _against(head, "unit", "all", known, f"{head['all'][0]:.1%} against {known[0]:.1%}")


def probes_differ(probes: pd.DataFrame, other: str) -> pd.DataFrame:
    """CL11, CL12: accuracy of the probe of attention and words minus that of another, or of itself on random layers.

    The interval is that of the paired t test over seeds.
    """
    if probes.empty:
        return untestable("no probes")
    untrained = probes["encoder"].str.endswith(UNTRAINED)
    full = probes["probe"] == "attention + words"
    chosen = full & untrained if other == UNTRAINED else (probes["probe"] == other) & ~untrained
    one, two = (probes[rows].set_index("seed")["uas_no_punct"] for rows in (full & ~untrained, chosen))
    difference = (one - two).dropna()
    if difference.empty:
        return untestable("no such probes with the same seeds")
    half = np.nan
    if len(difference) > 1:
        half = stats.t.ppf(1 - LEVEL / 2, len(difference) - 1) * stats.sem(difference)
    mean = difference.mean()
    row = pd.DataFrame({"unit": [""], "value": mean, "low": mean - half, "high": mean + half})
    note = f"{one.mean():.1%} against {two.mean():.1%} ({other})"
    return tabled(row.assign(n=len(difference)), "unit", "value", note=note)


def layers_cluster(distances: pd.DataFrame) -> pd.DataFrame:
    """CL13: the distance between heads of different layers relative to that within a layer, minus 1."""
    if distances.empty:
        return untestable("no distances")
    same = distances["layer"] == distances["other_layer"]
    within, between = (distances.loc[rows, "distance"].mean() for rows in (same, ~same))
    heads = len(set(map(tuple, distances[["other_layer", "other_head"]].to_numpy()))) + 1
    note = f"{within:.0f} within, {between:.0f} between layers (nats)"
    return sampled({"": _drawn_clusters(distances)}, heads, control={"": 0.0}, note=note)


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
        drawn[:, own] = resampled(len(own), DRAWS, rng)
    weights = drawn[:, rows] * drawn[:, columns]
    apart, same = distances["distance"].to_numpy(float), layer[rows] == layer[columns]
    with np.errstate(invalid="ignore"):
        within, between = (
            (weights[:, kind] @ apart[kind]) / weights[:, kind].sum(axis=1) for kind in (same, ~same)
        )
    return (between - within) / between


def _against(rows: pd.DataFrame, unit: str, value: str, known: pd.Series, note: str) -> pd.DataFrame:
    """Values of a table minus values that count as known; all right or all wrong: no spread."""
    ends = rows[["low", "high"]].fillna({"low": rows[value], "high": rows[value]})
    shifted = rows.assign(low=ends["low"] - known, high=ends["high"] - known)
    shifted[value] = rows[value] - known
    return tabled(shifted, unit, value, note=note)
