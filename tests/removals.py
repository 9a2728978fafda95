"""Logits of made-up classifiers with heads off, whose answers are known."""

import numpy as np
import xarray as xr

from analysis.statistics.changes import BASELINE


def logits(said: np.ndarray, names: list[str], sure: float = 2.0) -> xr.DataArray:
    """Logits (intervention, sequence, class) that give the classes `said` (intervention, sequence); "none" first."""
    rows = sure * np.eye(2)[said]
    sequences = [f"dev-{number}" for number in range(said.shape[1])]
    coordinates = {"intervention": [BASELINE, *names], "sequence": sequences, "class": [0, 1]}
    return xr.DataArray(rows.astype(np.float32), coordinates, ("intervention", "sequence", "class"))


def wrong(labels: np.ndarray, counts: list[int]) -> np.ndarray:
    """Answers that are wrong for the first sequences, then right; a row for each number of wrong answers."""
    return np.stack([np.where(np.arange(len(labels)) < count, 1 - labels, labels) for count in counts])
