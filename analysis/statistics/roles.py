"""The roles of heads: roles made from elementary sieves, and summaries of role tables."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from analysis.errors import InputError
from analysis.roles import PUBLISHED_ROLES as PUBLISHED_ROLES
from analysis.roles import RELATIONS, ROLES, UNIFORM, UNIFORM_SCORE, families
from analysis.statistics.significance import same_cells
from analysis.tables import stacked

COARSE = tuple(families())
DIRECTIONS = {
    "dependent_to_head": ("{}",),
    "head_to_dependent": ("{}_reversed",),
    "both": ("{}", "{}_reversed"),
}
WINDOWS = {"corrected": "window_{}", "published": "window_{}_published"}
MASSES = ("sep", "cls", "other")  # targets of attention
HEAD = ["layer", "head"]
LABELS = {"assigned": "published", "assigned_corrected": "corrected", "assigned_controlled": "controlled"}
# The three nested counts of the heads of a role, and how figures name them.
COUNT_NAMES = {
    "assigned": "published rule",
    "exceeds_control": "... and exceeds the control",
    "assigned_controlled": "... by the margin τ − 1",
}
COUNTS = [*COUNT_NAMES, "unlabelled", "unlabelled_exceed", "ratio"]


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
    data gives NaN and 0 units. Source: Pande 2021 (window 2, dependent to head); departure: the true size of a window
    at the edges.
    """
    for name, value, options in (("direction", direction, DIRECTIONS), ("arithmetic", arithmetic, WINDOWS)):
        if value not in options:
            raise InputError(f"{name} {value!r} is unknown; use one of {', '.join(options)}")
    pooled = ("syntactic", *RELATIONS)
    sources = {role.name: role.sieve for role in ROLES.values() if role.sieve not in pooled}
    sources["local"] = WINDOWS[arithmetic].format(window)
    sources["block"] = "block" if weighted_block else "own_sentence"
    parts = {role: _stored(scores, source) for role, source in sources.items()}
    parts |= {label: _relation(scores, label, DIRECTIONS[direction]) for label in {*RELATIONS, *relations}}
    parts["syntactic"] = _pooled([parts[label] for label in relations])
    composed = xr.concat([parts[role] for role in ROLES], xr.Variable("role", [*ROLES]), join="override")
    composed = composed.transpose("sequence", "role", "layer", "head").rename(scores.name)
    composed["units"] = composed["units"].transpose("sequence", "role")
    return composed.assign_attrs(scores.attrs | {"arithmetic": arithmetic})


def compose_controls(
    bank: xr.DataArray, controls: Mapping[str, xr.DataArray], *choices: Any, second: bool = False
) -> xr.DataArray:
    """The scores of every role on its (second) control, composed by the same `choices` as the roles of `compose`.

    `bank` holds the elementary sieves on attention, `controls` on each of `roles.control_sources`; a control that is a
    sieve stands in `bank`. Raises InputError for a missing source, and if sequences, heads or the presence of roles
    differ from those of attention.
    """
    composed = compose(bank, *choices)
    on_maps = {source: compose(scores, *choices) for source, scores in controls.items()}
    parts = []
    for name, role in ROLES.items():
        control, scores = (second and role.second) or role.control, composed.sel(role=[name])
        if control in on_maps:
            parts.append(same_cells(scores, on_maps[control].sel(role=[name]), f"maps {control!r}"))
            continue
        if control not in (UNIFORM, *bank["role"].values):
            raise InputError(f"control scores of maps {control!r} are missing: extract them with 01_extract")
        of_control = scores.where(scores.isnull(), UNIFORM_SCORE)  # as a uniform head scores
        if control != UNIFORM:
            # Where a text has no other pieces, no head can prefer them: 1, as for a uniform head.
            of_control = of_control * _stored(bank, control).reset_coords(drop=True).fillna(UNIFORM_SCORE)
        parts.append(of_control.transpose(*composed.dims))
    return xr.concat(parts, "role", combine_attrs="override")


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
    pairs = sum(part["units"] for part in parts)
    total = sum(part.fillna(0) * part["units"] for part in parts)
    pooled = (total / pairs.where(pairs > 0)).astype(parts[0].dtype)
    return pooled.assign_coords(units=pairs)


def role_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Three counts of the heads of each role, over the rows of tables of `controlled_table`, and a base rate.

    Columns: those of COUNT_NAMES; of the heads that can be tested and do not have the role, their number (unlabelled)
    and how many exceed the control all the same (unlabelled_exceed); ratio, the median over labelled heads of the mean
    score over that of the control.
    """
    assigned, exceeds, controlled = (table[name].fillna(False).astype(bool) for name in COUNT_NAMES)
    unlabelled = table["exceeds_control"].notna() & ~assigned
    columns = {
        "assigned": assigned,
        "exceeds_control": assigned & exceeds,
        "assigned_controlled": assigned & controlled,
        "unlabelled": unlabelled,
        "unlabelled_exceed": unlabelled & exceeds,
    }
    counts = pd.DataFrame(columns).groupby(table["role"], sort=False).sum().astype("Int64")
    ratios = (table["mean"] / table["control_mean"]).where(assigned & (table["control_mean"] > 0))
    return counts.assign(ratio=ratios.groupby(table["role"], sort=False).median())


def memberships(table: pd.DataFrame) -> pd.DataFrame:
    """The roles of each head: a boolean frame, (task, state, layer, head) x roles; a missing label is False.

    The index has the levels task and state if the table has these columns.
    """
    labels = table.assign(assigned=table["assigned"].fillna(False).astype(bool))
    index = [*_group(table), *HEAD]
    return labels.pivot(index=index, columns="role", values="assigned")[[*table["role"].unique()]]


def coarse_memberships(table: pd.DataFrame) -> pd.DataFrame:
    """The coarse roles of each head: those that it has, or of which it has a finer role; indexed as `memberships`."""
    members = memberships(table)
    present = {coarse: [role for role in roles if role in members] for coarse, roles in families().items()}
    return pd.DataFrame({coarse: members[roles].any(axis=1) for coarse, roles in present.items()})


def local_and_syntactic(table: pd.DataFrame) -> dict[str, int]:
    """Heads that are local, that have the pooled syntactic role, both, and local with any of the syntactic roles."""
    members, syntactic = memberships(table), coarse_memberships(table)["syntactic"]
    local, pooled = members["local"], members["syntactic"]
    sets = {"local": local, "syntactic": pooled, "both": local & pooled, "both_any": local & syntactic}
    return {name: int(heads.sum()) for name, heads in sets.items()}


def layer_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Heads per layer: (task, state,) layer, role, heads.

    Further rows count "multi-functional" heads (at least two coarse roles) and "none" (no role). The counts of a role
    that cannot be tested for any head are missing.
    """
    group = _group(table)
    if group:
        parts = table.groupby(group, sort=False)
        return stacked({key: layer_counts(part.drop(columns=group)) for key, part in parts}, *group)
    members = memberships(table)
    several = coarse_memberships(table).sum(axis=1) >= 2
    marks = members.assign(**{"multi-functional": several, "none": ~members.any(axis=1)})
    heads = marks.groupby("layer").sum().astype("Int64")
    tested = table["assigned"].notna().groupby(table["role"]).any()
    heads[tested.index[~tested].tolist()] = pd.NA
    counts = heads.rename_axis(index="layer", columns="role").unstack().rename("heads").reset_index()
    return counts[["layer", "role", "heads"]]


def transitions(pretrained_table: pd.DataFrame, finetuned_table: pd.DataFrame) -> pd.DataFrame:
    """Heads per layer that gained, lost or kept a role: (task,) layer, role, gained, lost, kept.

    A head without a label counts as without the role; a role that no head of a task can have is left out.
    """
    keys = [*pretrained_table.columns.intersection(["task"]), "role", *HEAD]
    before, after = (table.set_index(keys)["assigned"] for table in (pretrained_table, finetuned_table))
    after = after.loc[before.index]
    tested = (before.notna() | after.notna()).groupby(level=keys[:-2], sort=False).transform("any")
    had, has = (labels[tested].fillna(False).astype(bool) for labels in (before, after))
    moves = pd.DataFrame({"gained": ~had & has, "lost": had & ~has, "kept": had & has})
    return moves.groupby(level=[*keys[:-3], "layer", "role"], sort=False).sum().reset_index()


def label_agreement(table: pd.DataFrame) -> pd.DataFrame:
    """The agreement of fine-tuning runs on the heads of a role: the table `seeds_agreement` (docs/tables.yaml).

    `table` holds published labels of the pre-trained encoder (`seed` missing) and of every run (`seed`). Jaccard
    indices are NaN if all sets of heads are empty.
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
    indices = [(a & b).sum() / (a | b).sum() for a, b in pairs if (a | b).any()]
    return float(np.mean(indices)) if indices else np.nan


def attention_masses(scores: xr.DataArray) -> dict[str, xr.DataArray]:
    """The proportion of a token's attention to [SEP], [CLS] and all other tokens (MASSES), in every sequence.

    The score of a sieve with k columns is T / k times their attention, so the proportion is score * k / T; k is the
    number of [SEP], or 1 for [CLS].
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
    return [name for name in ("task", "state") if name in table.columns]
