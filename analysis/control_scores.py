"""The dimensions of scores, and scores of the same heads on two kinds of maps."""

import numpy as np
import xarray as xr

from analysis.errors import InputError

DIMENSIONS = ("sequence", "role", "layer", "head")
UNIFORM_SCORE = 1.0  # of a uniform head


def same_cells(scores: xr.DataArray, control: xr.DataArray, what: str) -> xr.DataArray:
    """Control scores in the order and with the coordinates of `scores`; raises InputError if these differ."""
    for name in DIMENSIONS:
        if not set(scores[name].values) <= set(control[name].values):
            raise InputError(f"{what} differ from the scores in {name}: extract both from the same sequences")
    aligned = control.sel({name: scores[name].values for name in DIMENSIONS}).transpose(*scores.dims)
    if not np.array_equal(np.isnan(aligned.values), np.isnan(scores.values)):
        raise InputError(f"{what} differ from the scores in which sequence has which role: use one parse")
    return scores.copy(data=aligned.values)
