"""The measures and limits of a finding as arrays, which `verdicts.judge` compares with the bound of a claim."""

from collections.abc import Iterable, Mapping
from typing import SupportsFloat

import numpy as np
import xarray as xr
from jaxtyping import Num


def drawn_measures(units: Mapping[str, Num[np.ndarray, " replicate"]]) -> xr.DataArray:
    """Measures (unit, replicate) from the replicates of each unit."""
    return xr.DataArray(np.stack([*units.values()]), {"unit": [*units]}, ("unit", "replicate"))


def with_limits(
    units: Iterable[str],
    values: Iterable[SupportsFloat],
    lows: Iterable[SupportsFloat],
    highs: Iterable[SupportsFloat],
) -> tuple[xr.DataArray, xr.DataArray]:
    """Measures (unit, replicate) with one value for each unit, and their known intervals as limits (unit, end)."""
    names = {"unit": [*units]}
    value, *ends = (np.array([*column], float) for column in (values, lows, highs))
    measures = xr.DataArray(value[:, None], names, ("unit", "replicate"))
    return measures, xr.DataArray(np.stack(ends, 1), names | {"end": ["low", "high"]}, ("unit", "end"))
