"""Heads with a known pattern, and the labels that the rules give to heads and to controls."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.scores.maps import Source
from analysis.statistics.controls import controlled_table


def offset_head(step: int) -> Source:
    """Ideal heads, all alike: every token attends to the token `step` positions on, or to itself if there is none."""

    def read(encoder: Encoder, batch: Sequence[Layout], read: Callable, check: bool = False) -> None:
        maps = _at_offset(step, [len(layout) for layout in batch]).to(encoder.device)
        for layer in range(encoder.layers):
            read(layer, maps[:, None].expand(-1, encoder.heads, -1, -1).contiguous())

    return Source(f"offset {step:+d}", read)


def _at_offset(step: int, lengths: Sequence[int]) -> Tensor:
    """The maps of a batch: rows of padding attend to themselves."""
    position = torch.arange(max(lengths))
    target = (position + step).expand(len(lengths), -1)
    inside = (target >= 0) & (target < torch.tensor(lengths)[:, None])
    return torch.nn.functional.one_hot(torch.where(inside, target, position), max(lengths)).float()


def control_table(
    scores: Mapping[str, tuple[xr.DataArray, xr.DataArray]],
    tau: float | int = 3.0,
    alpha: float = 0.05,
    minimum: int = 100,
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """Labels of encoders and of controls by the three rules: a row for each, and for each of its roles.

    `scores` maps the name of some heads, or of a control that replaces heads, to their composed scores and to the
    scores of their own controls. Columns as in `control_counts_of`.
    """
    options = {"alpha": alpha, "minimum": minimum, "resamples": resamples, "seed": seed}
    tables = [controlled_table(*each, tau, **options).assign(control=name) for name, each in scores.items()]
    return control_counts_of(pd.concat(tables))


def control_counts_of(tables: pd.DataFrame) -> pd.DataFrame:
    """The counts of each rule in role tables, for every role; the column control says whose heads they are.

    Columns (task, state,) control, role, n (sequences), mean (score over all heads), highest (mean score of a head),
    published, audited, controlled (heads). Untestable heads, such as heads with constant scores, have no label.
    """
    summaries: dict[str, tuple[str, str | Callable]] = {
        "n": ("n", "max"),
        "mean": ("mean", "mean"),
        "highest": ("mean", "max"),
        "published": ("assigned", "sum"),
        "audited": ("assigned_audited", "sum"),
        "controlled": ("assigned_controlled", "sum"),
    }
    keys = [*tables.columns.intersection(["task", "state"]), "control", "role"]
    table = tables.groupby(keys, sort=False).agg(**summaries).reset_index()
    return table[table["n"] > 0].reset_index(drop=True)
