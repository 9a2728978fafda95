"""What roles heads have: roles made from elementary sieves, and what a role table says."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import or_
from typing import TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from analysis.errors import InputError

RELATIONS = ("nsubj", "dobj", "amod", "advmod")
COARSE = ("local", "syntactic", "delimiter", "block")
ROLES = ("local", "syntactic", "delimiter", *RELATIONS, "block", "cls", "sep")
# A head has a coarse role when it has that role or one of its finer roles.
FAMILIES = {
    "local": ("local",),
    "syntactic": ("syntactic", *RELATIONS),
    "delimiter": ("delimiter", "cls", "sep"),
    "block": ("block",),
}
# The map that each role is held against: attention that could not know what the role asks for. Shuffled: the head's
# own, its word pieces in random order. Twin: the head's own as far as it depends on position alone. Spread: rows of
# the same entropies, spread evenly. Uniform: all tokens alike, which scores 1.
CONTROLS = {
    "local": "shuffled",
    **dict.fromkeys(("syntactic", *RELATIONS), "twin"),
    "block": "spread",
    **dict.fromkeys(("delimiter", "cls", "sep"), "uniform"),
}
DIRECTIONS = {
    "dependent_to_head": ("{}",),
    "head_to_dependent": ("{}_reversed",),
    "both": ("{}", "{}_reversed"),
}
WINDOWS = {"corrected": "window_{}", "published": "window_{}_published"}
GROUP = ["task", "state"]
HEAD = ["layer", "head"]
Heads = TypeVar("Heads", pd.Series, xr.DataArray)  # booleans, one for each head


def compose(
    scores: xr.DataArray,
    window: int = 2,
    relations: Sequence[str] = RELATIONS,
    direction: str = "dependent_to_head",
    arithmetic: str = "corrected",
    weighted_block: bool = True,
) -> xr.DataArray:
    """The ten published roles, in the order of ROLES, from the scores of the elementary sieves.

    `relations` are pooled, each word pair counting once, into the role `syntactic`; "both" directions
    are averaged. `weighted_block` multiplies each row of `block` by its entropy (nats), as published.
    A relation that the data never show gives a role of NaN and 0 units. Raises InputError for an
    unknown direction or arithmetic, and for an elementary sieve that was not stored.
    Source: Pande 2021 (window 2, dependent to head); departure: the true size of a window at the edges.
    """
    sources = {
        "local": _option(WINDOWS, "arithmetic", arithmetic).format(window),
        "block": "block" if weighted_block else "own_sentence",
        **{role: role for role in ("delimiter", "cls", "sep")},
    }
    names = _option(DIRECTIONS, "direction", direction)
    parts = {role: _stored(scores, source) for role, source in sources.items()}
    parts |= {label: _relation(scores, label, names) for label in {*RELATIONS, *relations}}
    parts["syntactic"] = _pooled([parts[label] for label in relations])
    composed = xr.concat([parts[role] for role in ROLES], xr.Variable("role", [*ROLES]), join="override")
    composed = composed.transpose("sequence", "role", "layer", "head").rename(scores.name)
    composed["units"] = composed["units"].transpose("sequence", "role")
    return composed.assign_attrs(scores.attrs | {"arithmetic": arithmetic})


def _option(options: dict, parameter: str, value: str):
    if value not in options:
        raise InputError(f"{parameter} {value!r} is unknown; use one of {', '.join(options)}")
    return options[value]


def _stored(scores: xr.DataArray, sieve: str) -> xr.DataArray:
    if sieve not in scores["role"].values:
        raise InputError(f"the scores hold no sieve {sieve!r}; extract them again with it")
    return scores.sel(role=sieve, drop=True)


def _relation(scores: xr.DataArray, label: str, names: tuple[str, ...]) -> xr.DataArray:
    """Mean of one relation over the named directions, which have the same word pairs."""
    if label not in scores["role"].values:
        empty = xr.full_like(scores.isel(role=0, drop=True), np.nan)
        return empty.assign_coords(units=xr.zeros_like(empty["units"]))
    directions = [_stored(scores, name.format(label)) for name in names]
    return directions[0].copy(data=np.mean([each.values for each in directions], axis=0))


def _pooled(parts: list[xr.DataArray]) -> xr.DataArray:
    """Mean over all word pairs of several relations: each is weighted by its number of pairs."""
    if not parts:
        raise InputError("relations is empty; name at least one relation to pool, such as nsubj")
    pairs = sum(part["units"] for part in parts)
    total = sum(part.fillna(0) * part["units"] for part in parts)
    pooled = (total / pairs.where(pairs > 0)).astype(parts[0].dtype)
    return pooled.assign_coords(units=pairs)


def memberships(table: pd.DataFrame) -> pd.DataFrame:
    """Which head has which role: a boolean frame, (task, state, layer, head) x roles; untestable is False.

    Task and state are levels of the index only where the table has these columns.
    """
    labels = table.assign(assigned=table["assigned"].fillna(False).astype(bool))
    index = [*_group(table), *HEAD]
    return labels.pivot(index=index, columns="role", values="assigned")[[*table["role"].unique()]]


def coarse_memberships(table: pd.DataFrame) -> pd.DataFrame:
    """Which head has which coarse role, itself or one of its finer roles (FAMILIES)."""
    return pd.DataFrame(coarsened(dict(memberships(table).items())))


def multifunctional(table: pd.DataFrame) -> pd.Series:
    """True for each head with at least two coarse roles; indexed as `memberships`."""
    return has_several(dict(coarse_memberships(table).items())).rename("multi-functional")


def coarsened(held: Mapping[str, Heads]) -> dict[str, Heads]:
    """Which heads have each coarse role, itself or one of its finer roles (FAMILIES).

    `held` maps every role to the heads that have it.
    """
    found = {coarse: [held[role] for role in roles if role in held] for coarse, roles in FAMILIES.items()}
    return {coarse: reduce(or_, heads, False) for coarse, heads in found.items()}


def has_several(coarse: Mapping[str, Heads]) -> Heads:
    """Which heads are multi-functional: those with at least two coarse roles, as `coarsened` gives them.

    Counting a head with any of the four relations as syntactic, and one with [CLS] or [SEP] as
    delimiter, is what makes the released maps agree with the article on the middle layers.
    """
    return sum(coarse.values()) >= 2


def overlap(table: pd.DataFrame) -> pd.DataFrame:
    """Heads that two roles share, one row per unordered pair of roles (and task, state).

    Columns role_a, role_b, heads_a, heads_b, both (heads); jaccard, share_of_a, share_of_b
    (proportions, NaN where nothing divides them).
    """
    return _each(table, lambda part: _overlaps(memberships(part)))


def _overlaps(members: pd.DataFrame) -> pd.DataFrame:
    rows = [
        (a, b, members[a].sum(), members[b].sum(), (members[a] & members[b]).sum())
        for a, b in combinations(members.columns, 2)
    ]
    pairs = pd.DataFrame(rows, columns=["role_a", "role_b", "heads_a", "heads_b", "both"])
    both = pairs["both"].astype(float)
    pairs["jaccard"] = both / (pairs["heads_a"] + pairs["heads_b"] - pairs["both"])
    return pairs.assign(share_of_a=both / pairs["heads_a"], share_of_b=both / pairs["heads_b"])


def layer_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Heads per layer: (task, state,) layer, role, heads.

    Besides the roles stand "multi-functional" (at least two coarse roles) and "none" (no role). A role that
    no head can be tested for has missing counts, not zeros.
    """
    return _each(table, _layer_counts)


def _layer_counts(table: pd.DataFrame) -> pd.DataFrame:
    members = memberships(table)
    marks = members.assign(**{"multi-functional": multifunctional(table), "none": ~members.any(axis=1)})
    heads = marks.groupby("layer").sum().astype("Int64")
    heads[_untestable(table)] = pd.NA
    return (
        heads.rename_axis(index="layer", columns="role")
        .unstack()
        .rename("heads")
        .reset_index()[["layer", "role", "heads"]]
    )


def _untestable(table: pd.DataFrame) -> list[str]:
    """The roles that no head of the table can be tested for."""
    tested = table["assigned"].notna().groupby(table["role"], sort=False).any()
    return tested.index[~tested].tolist()


def transitions(pretrained_table: pd.DataFrame, finetuned_table: pd.DataFrame) -> pd.DataFrame:
    """Heads per layer that gained, lost or kept a role: (task,) layer, role, gained, lost, kept.

    An untestable head counts as not having the role; a role untestable for all heads of a task is left out.
    Raises InputError where the tables are not about the same heads and roles.
    """
    both = _paired({"before": pretrained_table, "after": finetuned_table}, "assigned")
    group = [*both.columns.intersection(["task"]), "role"]
    tested = (
        both[["before", "after"]].notna().any(axis=1).groupby([both[key] for key in group]).transform("any")
    )
    both = both[tested]
    before, after = (both[state].fillna(False).astype(bool) for state in ("before", "after"))
    moves = both.assign(gained=~before & after, lost=before & ~after, kept=before & after)
    keys = [*both.columns.intersection(["task"]), "layer", "role"]
    return moves.groupby(keys, sort=False)[["gained", "lost", "kept"]].sum().reset_index()


def label_agreement(table: pd.DataFrame) -> pd.DataFrame:
    """How far fine-tuning runs give a role to the same heads: one row per task and role.

    `table` holds published labels of the pre-trained encoder (`seed` missing) and of every run (`seed`).
    Columns task, role, runs; between_runs, with_pretrained: mean Jaccard similarity of the sets of heads over
    pairs of runs, and of each run with the pre-trained encoder (proportions, NaN where both sets are empty
    or there is no pair); always, ever: heads with the role in every run, in at least one.
    """
    rows = []
    for (task, role), part in table.groupby(["task", "role"], sort=False):
        labels = part.pivot(index=HEAD, columns="seed", values="assigned").astype("boolean").fillna(False)
        pretrained, runs = labels.loc[:, labels.columns.isna()], labels.loc[:, labels.columns.notna()]
        pairs = combinations(runs.columns, 2)
        rows.append(
            {
                "task": task,
                "role": role,
                "runs": runs.shape[1],
                "between_runs": _mean_jaccard((runs[a], runs[b]) for a, b in pairs),
                "with_pretrained": _mean_jaccard((pretrained.iloc[:, 0], runs[run]) for run in runs),
                "always": int(runs.all(axis=1).sum()),
                "ever": int(runs.any(axis=1).sum()),
            }
        )
    return pd.DataFrame(rows)


def _mean_jaccard(pairs: Iterable[tuple[pd.Series, pd.Series]]) -> float:
    found = [(a & b).sum() / (a | b).sum() for a, b in pairs if (a | b).any()]
    return float(np.mean(found)) if found else np.nan


def arithmetic_differences(corrected_table: pd.DataFrame, published_table: pd.DataFrame) -> pd.DataFrame:
    """Labels (assigned, not assigned, untestable) that the published arithmetic changes: role, heads.

    Raises InputError where the tables are not about the same heads and roles.
    """
    both = _paired({"corrected": corrected_table, "published": published_table}, "assigned")
    labels = both[["corrected", "published"]].astype(object).fillna("untestable")
    differs = both.assign(heads=labels["corrected"] != labels["published"])
    return differs.groupby("role", sort=False)["heads"].sum().reset_index()


def _paired(tables: dict[str, pd.DataFrame], column: str) -> pd.DataFrame:
    """One column of two role tables side by side, under the names given, for each head and role."""
    first, second = tables.values()
    keys = [*first.columns.intersection(["task"]), *HEAD, "role"]
    parts = [table[[*keys, column]].rename(columns={column: name}) for name, table in tables.items()]
    both = parts[0].merge(parts[1], on=keys, how="inner", validate="one_to_one")
    if not len(both) == len(first) == len(second):
        raise InputError("the two role tables differ in heads or roles; use one model and one set of roles")
    return both


def attention_mass(scores: xr.DataArray, role: str) -> xr.DataArray:
    """Mean proportion of a token's attention that goes to `role`, one of cls, sep, other: (layer, head).

    A sieve of k columns scores T / k times the mass it receives, so the mass is score * k / T, with k
    the [SEP] of the sequence (one [CLS]). Raises InputError for another role or missing scores.
    """
    return _option(MASSES, "role", role)(scores).mean("sequence")


def _mass_on_separators(scores: xr.DataArray) -> xr.DataArray:
    return _stored(scores, "sep") * scores["separators"] / scores["tokens"]


def _mass_on_classifier(scores: xr.DataArray) -> xr.DataArray:
    return _stored(scores, "cls") / scores["tokens"]


def _mass_elsewhere(scores: xr.DataArray) -> xr.DataArray:
    return 1 - _mass_on_classifier(scores) - _mass_on_separators(scores)


MASSES = {"sep": _mass_on_separators, "cls": _mass_on_classifier, "other": _mass_elsewhere}


def mass_table(scores: xr.DataArray) -> pd.DataFrame:
    """Mean attention mass of each head on [SEP], [CLS] and all other tokens: layer, head, sep, cls, other."""
    masses = {role: attention_mass(scores, role).transpose(*HEAD).reset_coords(drop=True) for role in MASSES}
    return xr.Dataset(masses).to_dataframe().reset_index()


def _group(table: pd.DataFrame) -> list[str]:
    return [name for name in GROUP if name in table.columns]


def _each(table: pd.DataFrame, summary: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """The summary of each task and state, with their columns in front, as far as the table has them."""
    group = _group(table)
    if not group:
        return summary(table)
    parts = {key: summary(part.drop(columns=group)) for key, part in table.groupby(group, sort=False)}
    return pd.concat(parts, names=group).reset_index(level=group).reset_index(drop=True)
