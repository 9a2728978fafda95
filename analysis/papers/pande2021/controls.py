"""Controls: scores on the control map of each role, heads with a known pattern, and the labels that rules give them."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.scores import maps as sources
from analysis.scores.extraction import extract_states
from analysis.scores.maps import Source
from analysis.statistics.controls import UNIFORM, control_bank, control_sieves, controlled_table
from analysis.texts.examples import Example
from analysis.texts.syntax import Relations

State = TypeVar("State", bound=Hashable)


def extract_controls(
    encoders: Mapping[State, Encoder],
    examples: Sequence[Example],
    relations: Relations,
    sieves: Sequence[str],
    of: str | Source = "attention",
    max_tokens: int = 128,
) -> dict[str, dict[State, xr.DataArray]]:
    """Scores of the elementary `sieves` that roles consist of, on each role's control maps, by map source and state.

    `of` names the maps from which the controls are made, or is their source. Uniform controls need no pass. Raises
    InputError as `extract_states` does.
    """
    needed = {source: names for source, names in control_sieves(sieves).items() if source != UNIFORM}
    return {
        source: extract_states(
            encoders, examples, relations, names, max_tokens=max_tokens, maps=getattr(sources, source)(of=of)
        )
        for source, names in needed.items()
    }


def scored_with_controls(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations,
    maps: str | Source = "attention",
    max_tokens: int = 128,
) -> tuple[xr.DataArray, xr.DataArray]:
    """Scores of elementary sieves on a source of maps, and of each sieve on its control; both are to be composed.

    Raises InputError as `extract` does.
    """
    bank = extract_states({"": encoder}, examples, relations, max_tokens=max_tokens, maps=maps)[""]
    found = extract_controls(
        {"": encoder}, examples, relations, bank["role"].values.tolist(), maps, max_tokens
    )
    return bank, control_bank(bank, {source: states[""] for source, states in found.items()})


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
    minimum: int = 20,
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
