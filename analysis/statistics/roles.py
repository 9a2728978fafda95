"""The roles of heads: roles made from elementary sieves, and summaries of role tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import combinations
from operator import or_
from typing import TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from analysis.errors import InputError
from analysis.roles import PUBLISHED_ROLES as PUBLISHED_ROLES
from analysis.roles import ROLES, UNIFORM, families
from analysis.texts.syntax import RELATIONS

COARSE = tuple(families())
DIRECTIONS = {
    "dependent_to_head": ("{}",),
    "head_to_dependent": ("{}_reversed",),
    "both": ("{}", "{}_reversed"),
}
WINDOWS = {"corrected": "window_{}", "published": "window_{}_published"}
GROUP = ["task", "state"]
MASSES = ("sep", "cls", "other")  # targets of attention
HEAD = ["layer", "head"]
LABELS = {"assigned": "published", "assigned_corrected": "corrected", "assigned_controlled": "controlled"}
# The three nested counts of the heads of a role, and how figures name them.
COUNT_NAMES = {
    "assigned": "published rule",
    "exceeds_control": "... and exceeds the control",
    "assigned_controlled": "... by the margin τ − 1",
}
COUNTS = [*COUNT_NAMES, "tested", "all_exceed", "ratio"]
Heads = TypeVar("Heads", pd.Series, xr.DataArray)  # booleans, one for each head


def compose(
    scores: xr.DataArray,
    window: int = 2,
    relations: Sequence[str] = RELATIONS,
    direction: str = "dependent_to_head",
    arithmetic: str = "corrected",
    weighted_block: bool = True,
) -> xr.DataArray:
    """The roles in the order of ROLES, those of Pande 2021 and others, from elementary sieves.

    The role `syntactic` pools `relations`, and each word pair counts once; direction "both" is the mean of the two.
    `weighted_block` multiplies each row of `block` by its entropy (nats), as published. A relation that is not in the
    data gives NaN and 0 units. Raises InputError for an unknown direction or arithmetic, and for an elementary sieve
    that was not stored. Source: Pande 2021 (window 2, dependent to head); departure: the true size of a window at the
    edges.
    """
    pooled = ("syntactic", *RELATIONS)
    sources = {role.name: role.sieve for role in ROLES.values() if role.sieve not in pooled}
    sources["local"] = _option(WINDOWS, "arithmetic", arithmetic).format(window)
    sources["block"] = "block" if weighted_block else "own_sentence"
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
    """The mean scores of one relation over the named directions."""
    if label not in scores["role"].values:
        empty = xr.full_like(scores.isel(role=0, drop=True), np.nan)
        return empty.assign_coords(units=xr.zeros_like(empty["units"]))
    directions = [_stored(scores, name.format(label)) for name in names]
    return directions[0].copy(data=np.mean([scored.values for scored in directions], axis=0))


def _pooled(parts: list[xr.DataArray]) -> xr.DataArray:
    """The mean over all word pairs of several relations."""
    if not parts:
        raise InputError("relations is empty; name at least one relation to pool, such as nsubj")
    pairs = sum(part["units"] for part in parts)
    total = sum(part.fillna(0) * part["units"] for part in parts)
    pooled = (total / pairs.where(pairs > 0)).astype(parts[0].dtype)
    return pooled.assign_coords(units=pairs)


def role_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Three counts of the heads of each role, and two of all heads, over the rows of tables of `controlled_table`.

    Columns: assigned (published rule); of these, exceeds_control (mean score above that of the control, paired, p
    corrected) and assigned_controlled (by tau - 1); of all heads that can be tested, tested and all_exceed
    (the base rate); ratio, the median over labelled heads of the mean score over that of the control. A uniform head is
    exceeded by nearly all heads: its roles have no counts of exceeding.
    """
    assigned, controlled = (
        table[name].fillna(False).astype(bool) for name in ("assigned", "assigned_controlled")
    )
    exceeds = table["exceeds_control"].fillna(False).astype(bool)
    columns = {
        "assigned": assigned,
        "exceeds_control": assigned & exceeds,
        "assigned_controlled": assigned & controlled,
        "tested": table["exceeds_control"].notna(),
        "all_exceed": exceeds,
    }
    counts = pd.DataFrame(columns).groupby(table["role"], sort=False).sum().astype("Int64")
    ratios = (table["mean"] / table["control_mean"]).where(assigned & (table["control_mean"] > 0))
    counts["ratio"] = ratios.groupby(table["role"], sort=False).median()
    uniform = [role in ROLES and ROLES[role].control == UNIFORM for role in counts.index]
    counts.loc[uniform, ["exceeds_control", "assigned_controlled", "all_exceed"]] = pd.NA
    return counts


def memberships(table: pd.DataFrame) -> pd.DataFrame:
    """The roles of each head: a boolean frame, (task, state, layer, head) x roles; untestable is False.

    The index has the levels task and state if the table has these columns.
    """
    labels = table.assign(assigned=table["assigned"].fillna(False).astype(bool))
    index = [*_group(table), *HEAD]
    return labels.pivot(index=index, columns="role", values="assigned")[[*table["role"].unique()]]


def coarse_memberships(table: pd.DataFrame) -> pd.DataFrame:
    """The coarse roles of each head (see `coarsened`); indexed as `memberships`."""
    return pd.DataFrame(coarsened(dict(memberships(table).items())))


def multifunctional(table: pd.DataFrame) -> pd.Series:
    """True for each head with at least two coarse roles; indexed as `memberships`."""
    return has_several(dict(coarse_memberships(table).items())).rename("multi-functional")


def coarsened(heads: Mapping[str, Heads]) -> dict[str, Heads]:
    """The heads that have each coarse role or one of its finer roles; `heads` maps roles to their heads."""
    parts = {coarse: [heads[role] for role in roles if role in heads] for coarse, roles in families().items()}
    return {coarse: reduce(or_, finer, False) for coarse, finer in parts.items()}


def has_several(coarse: Mapping[str, Heads]) -> Heads:
    """The multi-functional heads: those with at least two coarse roles of `coarsened`.

    With coarse roles, in which any of the four relations counts as syntactic and [CLS] or [SEP] as delimiter, the
    released maps agree with Pande et al. on the middle layers.
    """
    return sum(coarse.values()) >= 2


def overlap(table: pd.DataFrame) -> pd.DataFrame:
    """The heads that two roles share, one row per unordered pair of roles (and task, state).

    Columns: role_a, role_b; heads_a, heads_b, both (heads); jaccard, share_of_a, share_of_b (NaN for 0 / 0).
    """
    return _by_group(table, lambda part: _overlaps(memberships(part)))


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

    Further rows count "multi-functional" heads (at least two coarse roles) and "none" (no role). The counts of a role
    that is untestable for all heads are missing.
    """
    return _by_group(table, _layer_counts)


def _layer_counts(table: pd.DataFrame) -> pd.DataFrame:
    members = memberships(table)
    marks = members.assign(**{"multi-functional": multifunctional(table), "none": ~members.any(axis=1)})
    heads = marks.groupby("layer").sum().astype("Int64")
    tested = table["assigned"].notna().groupby(table["role"]).any()
    heads[tested.index[~tested].tolist()] = pd.NA  # roles that are untestable for all heads
    counts = heads.rename_axis(index="layer", columns="role").unstack().rename("heads").reset_index()
    return counts[["layer", "role", "heads"]]


def transitions(pretrained_table: pd.DataFrame, finetuned_table: pd.DataFrame) -> pd.DataFrame:
    """Heads per layer that gained, lost or kept a role: (task,) layer, role, gained, lost, kept.

    An untestable head counts as without the role; a role that is untestable for all heads of a task is left out.
    Raises InputError if the tables differ in heads or roles.
    """
    keys = [*pretrained_table.columns.intersection(["task"]), "role", *HEAD]
    before, after = (table.set_index(keys)["assigned"] for table in (pretrained_table, finetuned_table))
    if not before.index.sort_values().equals(after.index.sort_values()):
        raise InputError("the two role tables differ in heads or roles; use one model and one set of roles")
    after = after.reindex(before.index)
    tested = (before.notna() | after.notna()).groupby(level=keys[:-2], sort=False).transform("any")
    had, has = (labels[tested].fillna(False).astype(bool) for labels in (before, after))
    moves = pd.DataFrame({"gained": ~had & has, "lost": had & ~has, "kept": had & has})
    return moves.groupby(level=[*keys[:-3], "layer", "role"], sort=False).sum().reset_index()


def label_agreement(table: pd.DataFrame) -> pd.DataFrame:
    """The agreement of fine-tuning runs on the heads of a role: one row per task and role.

    `table` holds published labels of the pre-trained encoder (`seed` missing) and of every run (`seed`). Columns: task,
    role, runs; between_runs, with_pretrained: mean Jaccard similarity of the sets of heads over pairs of runs, and of
    each run with the pre-trained encoder (proportions, NaN if both sets are empty or there is no pair); always, ever:
    heads with the role in every run, and in at least one.
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
    similarities = [(a & b).sum() / (a | b).sum() for a, b in pairs if (a | b).any()]
    return float(np.mean(similarities)) if similarities else np.nan


def attention_masses(scores: xr.DataArray) -> dict[str, xr.DataArray]:
    """The proportion of a token's attention to [SEP], [CLS] and all other tokens (MASSES), in every sequence.

    The score of a sieve with k columns is T / k times their attention, so the proportion is score * k / T; k is the
    number of [SEP], or 1 for [CLS]. Raises InputError for missing scores.
    """
    sep = _stored(scores, "sep") * scores["separators"] / scores["tokens"]
    cls = _stored(scores, "cls") / scores["tokens"]
    return dict(zip(MASSES, (sep, cls, 1 - cls - sep), strict=True))


def mass_table(scores: xr.DataArray) -> pd.DataFrame:
    """The mean attention of each head to [SEP], [CLS] and all other tokens: layer, head, sep, cls, other."""
    means = {
        target: mass.mean("sequence").transpose(*HEAD).reset_coords(drop=True)
        for target, mass in attention_masses(scores).items()
    }
    return xr.Dataset(means).to_dataframe().reset_index()


def _group(table: pd.DataFrame) -> list[str]:
    return [name for name in GROUP if name in table.columns]


def _by_group(table: pd.DataFrame, summary: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """The summary of every task and state of the table, with these columns in front."""
    group = _group(table)
    if not group:
        return summary(table)
    parts = {key: summary(part.drop(columns=group)) for key, part in table.groupby(group, sort=False)}
    return pd.concat(parts, names=group).reset_index(level=group).reset_index(drop=True)
