"""Roles, patterns and dependencies on every map: heads that have them, mean scores, mass at offsets and special tokens.

The same sequences are scored by the same sieves on attention and on every map that is made from it.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int

from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.pascual2021.attribution import MapStore
from analysis.papers.pascual2021.measures import ATTENTION, GLOBAL
from analysis.scores.words import ARC_DIRECTIONS, Attachment, documents_of, halves, right, split_words
from analysis.statistics.bootstrap import bca_interval, resampled_test
from analysis.statistics.intervals import percentile_interval
from analysis.statistics.layers import cross_fitted
from analysis.statistics.resampling import Clusters, counted
from analysis.statistics.roles import compose
from analysis.statistics.significance import DEFAULT_RULE, Rule, published_labels, quiet
from analysis.tables import stacked
from analysis.texts.dependencies import arcs, best_offsets, offset_table
from analysis.texts.examples import Example, sample

# Patterns in addition to the roles: neighbours, the token itself, punctuation.
PATTERNS = ("offset_-2", "offset_-1", "offset_+0", "offset_+1", "offset_+2", "punctuation")
OFFSETS = range(-10, 11)  # tokens from the row to the column
SAME = 1e-6  # masses count as equal if they differ by less
TARGETS = {"[CLS]": "cls", "[SEP]": "sep"}

Assigned = Bool[np.ndarray, "replicate head"]
SURVIVAL = ["role", "map", "heads", "kappa", "low", "high", "heads_low", "heads_high", "n"]


def short_examples(
    encoder: Encoder, examples: Sequence[Example], pieces: int, count: int, seed: int = 0
) -> list[Example]:
    """A sample of `count` examples of at most `pieces` word pieces, with special tokens, in their original order.

    Raises InputError if no example is so short.
    """
    lengths = map(len, layouts(encoder.tokenizer, examples, encoder.positions))
    short = [example for example, length in zip(examples, lengths, strict=True) if length <= pieces]
    if not short:
        raise InputError(f"no sequence has at most {pieces} word pieces: raise the limit")
    return sample(short, count, seed)


def with_patterns(bank: xr.DataArray) -> xr.DataArray:
    """The roles of `compose` without block, followed by PATTERNS.

    Block weights rows by their entropy. Uniform heads have the highest entropy, so every broad map would show block.
    """
    roles = compose(bank).drop_sel(role="block")
    parts = [roles, bank.sel(role=[*PATTERNS]).transpose(*roles.dims)]
    return xr.concat(parts, "role", join="override", combine_attrs="override")


def labels(scores: Float[np.ndarray, "sequence head"], rule: Rule, resamples: int | None = None) -> Assigned:
    """Published labels of every head, on the sequences and then on resamples of them; NaN sequences are left out.

    All maps have the same resamples. With fewer than two sequences, no head has a role.
    """
    complete = scores[np.isfinite(scores).all(axis=1)]
    resamples = rule.resamples if resamples is None else resamples
    if len(complete) < 2:
        return np.zeros((1 + resamples, scores.shape[1]), bool)
    counts = sequence_counts(len(complete), resamples, rule.seed)
    return published_labels(resampled_test(Clusters.of(complete), counts, rule.tau), rule) == 1


def sequence_counts(sequences: int, resamples: int, seed: int) -> Int[np.ndarray, "replicate sequence"]:
    """How often each sequence counts: once in the sample itself, then in every resample."""
    samples = np.random.default_rng(seed).integers(sequences, size=(resamples, sequences))
    return np.concatenate([np.ones((1, sequences), int), counted(samples, sequences)])


def kappa(first: Assigned, second: Assigned) -> Float[np.ndarray, " replicate"]:
    """Cohen's kappa of two labellings of the same heads; NaN if both label all heads, or none."""
    rate, other_rate = first.mean(axis=-1), second.mean(axis=-1)
    chance = rate * other_rate + (1 - rate) * (1 - other_rate)
    with quiet():
        agreement = ((first == second).mean(axis=-1) - chance) / (1 - chance)
    return np.where(chance < 1, agreement.round(12), np.nan)  # so that 0 has no rounding error


def survival_table(scores: Mapping[str, xr.DataArray], rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """The table `pascual_survival` (docs/tables.yaml), from composed scores of the same sequences on all maps.

    Labels follow the published rule; intervals are 95 % percentile intervals over sequences, of kappa (low, high) from
    the replicates that have one. Values are missing if a role is undefined on a map or absent from all sequences;
    attention has no kappa with itself.
    """
    rows = []
    for role in scores[ATTENTION]["role"].values:
        by_map = {name: _by_head(maps, role) for name, maps in scores.items()}
        labels_on = {name: labels(values, rule) for name, values in by_map.items()}
        for name, assigned in labels_on.items():
            row = {"role": role, "map": name, "n": int(np.isfinite(by_map[name]).all(axis=1).sum())}
            if row["n"] > 1:
                heads, agreement = assigned.sum(axis=1), kappa(labels_on[ATTENTION], assigned)
                row["heads"], (row["heads_low"], row["heads_high"]) = heads[0], percentile_interval(heads)
                if name != ATTENTION and not np.isnan(agreement[0]):
                    row["kappa"], (row["low"], row["high"]) = agreement[0], percentile_interval(agreement)
            rows.append(row)
    return pd.DataFrame(rows).reindex(columns=SURVIVAL).astype({"heads": "Int64"})


def _by_head(scores: xr.DataArray, role: str) -> Float[np.ndarray, "sequence head"]:
    values = scores.sel(role=role).transpose("sequence", "layer", "head").values
    return values.reshape(len(values), scores.sizes["layer"] * scores.sizes["head"])


def persistence_table(scores: Mapping[str, xr.DataArray], rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """The table `pascual_persistence` (docs/tables.yaml), from scores with patterns as roles (see `with_patterns`).

    Numbers are heads of a layer with the pattern, on each map and on both.
    """
    tables, sizes = {}, scores[ATTENTION].sizes
    for pattern in scores[ATTENTION]["role"].values:
        attention, attribution = (
            labels(_by_head(scores[name], pattern), rule, resamples=0).reshape(sizes["layer"], sizes["head"])
            for name in (ATTENTION, GLOBAL)
        )
        maps = {"attention": attention, "attribution": attribution, "kept": attention & attribution}
        counts = {name: heads.sum(axis=1) for name, heads in maps.items()}
        tables[pattern] = pd.DataFrame({"layer": range(sizes["layer"]), **counts})
    return stacked(tables, "pattern")


def offset_profiles(stores: Mapping[str, MapStore]) -> pd.DataFrame:
    """The table `pascual_offsets` (docs/tables.yaml): means over rows that have such a token, heads and sequences."""
    parts = []
    for name, store in stores.items():
        by_sequence = [_at_offsets(store.maps[layout.id].cpu().numpy()) for layout in store.sequences]
        mass = np.nanmean(np.array(by_sequence), axis=(0, 2))  # layer, offset
        table = pd.DataFrame(mass, columns=OFFSETS).rename_axis("layer").reset_index()
        parts.append(table.melt("layer", var_name="offset", value_name="mass").assign(map=name))
    return pd.concat(parts, ignore_index=True)[["map", "layer", "offset", "mass"]]


def _at_offsets(maps: Float[np.ndarray, "layer head token token"]) -> Float[np.ndarray, "layer head offset"]:
    """Mean of every diagonal of OFFSETS; NaN beyond the sequence."""
    beyond = np.full(maps.shape[:-2], np.nan)
    inside = range(1 - maps.shape[-1], maps.shape[-1])
    means = [np.diagonal(maps, offset, -2, -1).mean(-1) if offset in inside else beyond for offset in OFFSETS]
    return np.stack(means, axis=-1)


def pattern_table(scores: Mapping[str, xr.DataArray]) -> pd.DataFrame:
    """The table `pascual_patterns` (docs/tables.yaml), from scores with patterns as roles (see `with_patterns`)."""
    means = {name: array.mean("sequence").reset_coords(drop=True) for name, array in scores.items()}
    table = xr.Dataset(means).rename(role="pattern").to_dataframe(["pattern", "layer", "head"])
    return table.reset_index()


def sink_table(scores: Mapping[str, xr.DataArray], resamples: int = 999, seed: int = 0) -> pd.DataFrame:
    """The table `pascual_sinks` (docs/tables.yaml): means over rows, heads and sequences, BCa intervals over sequences.

    Rows without a layer are means over all heads; `changed` compares with attention.
    """
    parts = []
    for (name, array), (target, role) in product(scores.items(), TARGETS.items()):
        masses = _masses(array, role)
        changed = (np.abs(masses - _masses(scores[ATTENTION], role)) > SAME).any(axis=1).mean()
        low, high = bca_interval(masses, resamples=resamples, seed=seed)
        part = pd.DataFrame({"map": name, "target": target, "layer": [np.nan, *array["layer"].values]})
        part = part.assign(mass=masses.mean(axis=0), low=low, high=high, n=len(masses))
        parts.append(part.assign(changed=changed))
    return pd.concat(parts, ignore_index=True)


def _masses(scores: xr.DataArray, role: str) -> Float[np.ndarray, "sequence column"]:
    """The mean mass on the role's tokens of every sequence, over all heads and over those of each layer."""
    count = scores["separators"] if role == "sep" else 1
    shares = (scores.sel(role=role) * count / scores["tokens"]).mean("head")
    masses = shares.transpose("sequence", "layer").values
    return np.concatenate([masses.mean(axis=1, keepdims=True), masses], axis=1)


def short_sentences(
    encoder: Encoder, words: pd.DataFrame, pieces: int, count: int, seed: int = 0
) -> pd.DataFrame:
    """Words of a sample of `count` sentences of at most `pieces` word pieces; raises InputError if none is left."""
    forms = {sentence: part["form"].tolist() for sentence, part in words.groupby("sentence", sort=False)}
    short = split_words(encoder.tokenizer, [*forms.values()], pieces).kept
    names = [*forms]
    sampled = {names[sentence.number] for sentence in sample(short, count, seed)}
    return words[words["sentence"].isin(sampled)].reset_index(drop=True)


def dependency_survival(
    attachments: Mapping[str, Attachment], minimum: int = 30, resamples: int = 999, seed: int = 0
) -> pd.DataFrame:
    """The table `pascual_dependencies` (docs/tables.yaml), the most frequent relation first.

    The best heads on attention, the same heads on attribution, and the best heads on attribution: in each half of the
    documents, the score is that of the head that is best in the other half. layer, head and direction are the best on
    attention over all sentences; change is that of the same head. Intervals are BCa, over sentences. Relations with
    fewer than `minimum` arcs are left out. Raises InputError if no relation has enough. Source: Clark 2019, 4.2
    (protocol); departure: cross-fitting.
    """
    words = attachments[ATTENTION].words
    scored = arcs(words)
    halved = pd.Series(halves(documents_of(words, scored), seed), index=scored.index)
    rows = []
    for relation, part in scored.groupby("relation", sort=False):
        first_half = halved[part.index].to_numpy()
        if len(part) < minimum or first_half.all() or not first_half.any():
            continue
        attention, attribution = (right(attachments[name], part) for name in (ATTENTION, GLOBAL))
        accuracy = attention.mean(axis=0)
        layer, direction, head = np.unravel_index(accuracy.argmax(), accuracy.shape)
        row = {"relation": relation, "n": len(part)}
        row |= {"layer": layer, "head": head, "direction": ARC_DIRECTIONS[direction]}
        row["offset_accuracy"] = best_offsets(offset_table(part))["accuracy"].iloc[0]
        correct = {
            "attention": cross_fitted(attention, first_half).astype(float),
            "attribution_same_head": cross_fitted(attention, first_half, attribution).astype(float),
            "attribution": cross_fitted(attribution, first_half).astype(float),
        }
        correct["change"] = correct["attribution_same_head"] - correct["attention"]
        values = np.stack([*correct.values()], axis=1)
        low, high = bca_interval(values, part["sentence"].to_numpy(), resamples=resamples, seed=seed)
        row |= zip(correct, values.mean(axis=0), strict=True)
        for number, name in enumerate(correct):
            row |= {f"{name}_low": low[number], f"{name}_high": high[number]}
        rows.append(row)
    if not rows:
        raise InputError(f"no relation has {minimum} arcs: give more sentences or lower the minimum")
    return pd.DataFrame(rows).sort_values("n", ascending=False, kind="stable", ignore_index=True)
