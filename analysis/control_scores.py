"""The scores of roles on their control maps, in the form of those on attention."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from analysis.errors import InputError
from analysis.roles import REVERSED, ROLES, UNIFORM, Role

DIMENSIONS = ("sequence", "role", "layer", "head")
UNIFORM_SCORE = 1.0  # of a uniform head


def control_sieves(sieves: Sequence[str], second: bool = False) -> dict[str, list[str]]:
    """The elementary sieves of the roles, by the map source on which their (second) control has to be scored.

    Sieves that are part of no role, and those whose control needs no pass of its own, are left out.
    """
    sources = {}
    for role in ROLES.values():
        source = (second and role.second) or role.control
        if source not in (UNIFORM, *sieves):
            sources |= dict.fromkeys(_definitions(role, sieves), source)
    chosen = [name for name in sieves if name in sources]
    return {
        source: [name for name in chosen if sources[name] == source]
        for source in dict.fromkeys(map(sources.get, chosen))
    }


def all_control_sieves(sieves: Sequence[str]) -> dict[str, list[str]]:
    """The sieves of `control_sieves` for the first and the second controls together."""
    first, second = control_sieves(sieves), control_sieves(sieves, second=True)
    wanted = {source: {*first.get(source, ()), *second.get(source, ())} for source in {**first, **second}}
    return {source: [name for name in sieves if name in names] for source, names in wanted.items()}


def _definitions(role: Role, sieves: Sequence[str]) -> set[str]:
    """The sieves that may define a role, by the choices of `statistics.roles.compose`."""
    if role.name == "local":
        return {name for name in sieves if name.startswith("window_")}
    if role.name == "block":
        return {role.sieve, "own_sentence"}
    if role.name == "syntactic":  # pools relations, which are the sieves with a reversed counterpart
        relations = [name for name in sieves if f"{name}{REVERSED}" in sieves]
        return {*relations, *(f"{name}{REVERSED}" for name in relations)}
    return {role.sieve}


def control_bank(
    bank: xr.DataArray, controls: Mapping[str, xr.DataArray], second: bool = False
) -> xr.DataArray:
    """The scores of elementary sieves on their control maps, which `compose` takes like the scores of attention.

    `bank` holds the scores on attention, `controls` those on the map sources of `control_sieves`; a control that is a
    sieve stands in `bank`. Raises InputError for a missing source, and if sequences, heads or the presence of roles
    differ from those of attention.
    """
    names, parts = bank["role"].values.tolist(), []
    for source, sieves in control_sieves(names, second).items():
        if source not in controls:
            raise InputError(f"control scores of maps {source!r} are missing: extract them with 01_extract")
        parts.append(same_cells(bank.sel(role=sieves), controls[source], f"maps {source!r}"))
    for role in ROLES.values():
        if role.sieve in names and role.control in (UNIFORM, *names):
            scores = bank.sel(role=[role.sieve])
            # As a uniform head scores, if the sieve is present.
            of_control = scores.where(scores.isnull(), UNIFORM_SCORE)
            if role.control != UNIFORM:
                # Where a text has no other pieces, no head can prefer them: 1, as for a uniform head.
                of_control = of_control * bank.sel(role=role.control, drop=True).drop_vars(
                    "units", errors="ignore"
                ).fillna(UNIFORM_SCORE)
            parts.append(of_control)
    return xr.concat(parts, "role", combine_attrs="override")


def same_cells(scores: xr.DataArray, control: xr.DataArray, what: str) -> xr.DataArray:
    """Control scores in the order and with the coordinates of `scores`; raises InputError if these differ."""
    for name in DIMENSIONS:
        if not set(scores[name].values) <= set(control[name].values):
            raise InputError(f"{what} differ from the scores in {name}: extract both from the same sequences")
    aligned = control.sel({name: scores[name].values for name in DIMENSIONS}).transpose(*scores.dims)
    if not np.array_equal(np.isnan(aligned.values), np.isnan(scores.values)):
        raise InputError(f"{what} differ from the scores in which sequence has which role: use one parse")
    return scores.copy(data=aligned.values)
