"""The control of each role, and the scores on control maps as a bank that composes like that of attention."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from analysis.errors import InputError
from analysis.texts.syntax import RELATIONS, REVERSED

DIMENSIONS = ("sequence", "role", "layer", "head")
UNIFORM = "uniform"
UNIFORM_SCORE = 1.0  # of a uniform head
# The control of each role, which cannot know what the role needs: a map source, or another sieve on the same map.
# Shuffled: the head's attention with its word pieces in random order. Twin: the part of the head's attention that
# depends only on position. Spread: rows with the head's entropies, spread evenly. Uniform: all tokens alike, which
# scores 1.
CONTROLS = {
    "local": "shuffled",
    **dict.fromkeys(("syntactic", *RELATIONS), "twin"),
    "block": "spread",
    **dict.fromkeys(("delimiter", "cls", "sep"), UNIFORM),
    "match": "match_control",
}


def control_sieves(sieves: Sequence[str]) -> dict[str, list[str]]:
    """The elementary sieves of the roles, by the map source on which their control has to be scored (CONTROLS).

    Sieves that are part of no role, and those whose control needs no pass of its own, are left out. Relations are the
    sieves with a reversed counterpart.
    """
    relations = {name for name in sieves if f"{name}{REVERSED}" in sieves}
    found = {
        CONTROLS["local"]: [name for name in sieves if name.startswith("window_")],
        CONTROLS["syntactic"]: [name for name in sieves if name.removesuffix(REVERSED) in relations],
        CONTROLS["block"]: [name for name in sieves if name in ("block", "own_sentence")],
    }
    return {source: names for source, names in found.items() if names}


def control_bank(bank: xr.DataArray, controls: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """The scores of elementary sieves on their control maps, which `compose` takes like the `bank` of attention.

    `controls` maps a map source to its scores by `extract`; scores of `uniform` are 1 and need none, and a control that
    is a sieve stands in the bank. Sieves that are part of no role are left out. Raises InputError for a missing source,
    and if sequences, heads or the presence of roles differ from those of the bank.
    """
    names, parts = bank["role"].values.tolist(), []
    for source, own in control_sieves(names).items():
        if source not in controls:
            raise InputError(f"control scores of maps {source!r} are missing: extract them with 01_extract")
        parts.append(same_cells(bank.sel(role=own), controls[source], f"maps {source!r}"))
    for role, control in CONTROLS.items():
        if role in names and control in (UNIFORM, *names):
            scores = bank.sel(role=[role])
            alike = scores.where(
                scores.isnull(), UNIFORM_SCORE
            )  # as a uniform head scores, if the sieve is present
            if control != UNIFORM:
                # Where a text has no other pieces, no head can prefer them: 1, as for a uniform head.
                alike = alike * bank.sel(role=control, drop=True).fillna(UNIFORM_SCORE)
            parts.append(alike)
    return xr.concat(parts, "role", combine_attrs="override")


def same_cells(scores: xr.DataArray, control: xr.DataArray, what: str) -> xr.DataArray:
    """Control scores in the order and with the coordinates of `scores`; raises InputError if these differ."""
    for name in DIMENSIONS:
        if not set(scores[name].values) <= set(control[name].values):
            raise InputError(f"{what} differ from the scores in {name}: extract both from the same sequences")
    chosen = control.sel({name: scores[name].values for name in DIMENSIONS}).transpose(*scores.dims)
    if not np.array_equal(np.isnan(chosen.values), np.isnan(scores.values)):
        raise InputError(f"{what} differ from the scores in which sequence has which role: use one parse")
    return scores.copy(data=chosen.values)
