"""How far a label can be trusted: other thresholds, fewer sequences, and controls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import seaborn as sns
import torch
import xarray as xr
from matplotlib.figure import Figure
from torch import Tensor

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.figures import theme
from analysis.figures.colours import ink
from analysis.scores.maps import Source, by_batch
from analysis.statistics.controls import controlled_table
from analysis.statistics.roles import COARSE, HEAD
from analysis.statistics.significance import DEFAULT_RULE, Rule, published_table

# --- other thresholds, fewer sequences --------------------------------------------------------------------

TAUS = tuple(np.linspace(1, 5, 17).tolist())


def tau_sweep(
    scores: xr.DataArray, taus: Sequence[float | int] = TAUS, rule: Rule = DEFAULT_RULE
) -> pd.DataFrame:
    """The table `sensitivity_tau` (docs/tables.yaml): published labels at other thresholds.

    `jaccard` compares the labelled heads with those at the threshold of the rule; NaN if neither threshold labels a
    head. Roles without a testable head are left out.
    """
    default, parts = _labels(scores, rule), []
    for tau in taus:
        labels = _labels(scores, replace(rule, tau=tau))
        parts.append(_compared(labels, default).assign(tau=float(tau)))
    return pd.concat(parts).reset_index()[["role", "tau", "testable", "heads", "jaccard"]]


def threshold_lines(means: pd.DataFrame, tau: float) -> Figure:
    """The share of heads with each role over the threshold, and how much their set has in common with that at `tau`.

    Coarse roles stand above, other roles below. `means` has role, tau, share and jaccard.
    """
    labels = {"share": "heads with the role (proportion)", "jaccard": f"Jaccard index with τ = {tau:g}"}
    figure, grid = theme.rows_of_axes(4, 2, 2.1, sharex=True)
    is_coarse = means["role"].isin(COARSE)
    for row, part in zip((grid[:2], grid[2:]), (means[is_coarse], means[~is_coarse]), strict=True):
        roles = theme.in_order(part["role"])
        look = {"hue_order": roles, "style_order": roles, "palette": [ink(role) for role in roles]}
        for axes, (column, label) in zip(row, labels.items(), strict=True):
            sns.lineplot(part, x="tau", y=column, hue="role", style="role", ax=axes, **look)
            axes.axvline(tau, color="0.5", linestyle="--", linewidth=0.9)
            axes.set(xlabel="threshold τ (score)", ylabel=label)
        row[0].get_legend().remove()
        sns.move_legend(row[1], "center left", bbox_to_anchor=(1, 0.5), title="")
    return figure


def label_stability(
    scores: xr.DataArray, sizes: Sequence[int], draws: int = 20, rule: Rule = DEFAULT_RULE
) -> pd.DataFrame:
    """The table `sensitivity_n` (docs/tables.yaml): published labels on samples compared with those on all sequences.

    Sequences are drawn without replacement. agreement, jaccard and heads are means over the draws, with standard
    deviations. Sizes beyond the number of sequences are left out; raises InputError if none is left.
    """
    rng, total = np.random.default_rng(rule.seed), scores.sizes["sequence"]
    if not (fitting := [size for size in sizes if size <= total]):
        raise InputError(f"sizes are {[*sizes]} of {total} sequences: give a smaller one")
    default, samples = _labels(scores, rule), []
    for size in fitting:
        for _ in range(draws):
            sample = scores.isel(sequence=rng.choice(total, size, replace=False))
            samples.append(_compared(_labels(sample, rule), default).assign(size=size))
    by_size = pd.concat(samples).groupby(["role", "size"], sort=False)
    measures = ["agreement", "jaccard", "heads"]
    means, spread = by_size[measures].mean(), by_size[measures].std().add_suffix("_sd")
    return by_size[["heads_full"]].first().join(means).join(spread).reset_index()


def sample_differences(scores: xr.DataArray, others: xr.DataArray, rule: Rule = DEFAULT_RULE) -> pd.DataFrame:
    """The table `sensitivity_sample` (docs/tables.yaml): labels on `others` compared with those on `scores`."""
    compared = _compared(_labels(others, rule), _labels(scores, rule))
    return compared.drop(columns="agreement").assign(n=others.sizes["sequence"]).reset_index()


def _labels(scores: xr.DataArray, rule: Rule) -> pd.DataFrame:
    """Published labels: a row per role, with a column per head; NaN where a head cannot be tested."""
    table = published_table(scores, rule)
    labels = table.pivot(index="role", columns=HEAD, values="assigned").astype("Float64")
    return labels.loc[table["role"].unique()]


def _compared(labels: pd.DataFrame, default: pd.DataFrame) -> pd.DataFrame:
    """Labels of each role compared with the default ones; roles without a testable head by default are left out."""
    default = default[default.notna().any(axis=1)]
    first, second = (table.reindex(default.index).fillna(0) > 0 for table in (labels, default))
    both, either = (first & second).sum(axis=1), (first | second).sum(axis=1)
    columns = {
        "testable": default.notna().sum(axis=1),
        "heads": first.sum(axis=1),
        "heads_full": second.sum(axis=1),
        "differ": (first != second).sum(axis=1),
        "agreement": (first == second).mean(axis=1).astype(float),
        "jaccard": (both / either.where(either > 0)).astype(float),
    }
    return pd.DataFrame(columns)


# --- controls: maps that cannot have a role, labelled as heads are ----------------------------------------


def offset_head(step: int) -> Source:
    """Ideal heads, all equal: every token attends to the token `step` positions on, or to itself if there is none."""

    def read(encoder: Encoder, batch: Sequence[Layout], read: Callable, check: bool = False) -> None:
        maps = _at_offset(step, [len(layout) for layout in batch]).to(encoder.device)
        for layer in range(encoder.layers):
            read(layer, maps[:, None].expand(-1, encoder.heads, -1, -1).contiguous())

    return Source(f"offset {step:+d}", by_batch(read))


def _at_offset(step: int, lengths: Sequence[int]) -> Tensor:
    """The maps of a batch: rows of padding attend to themselves."""
    position = torch.arange(max(lengths))
    target = (position + step).expand(len(lengths), -1)
    inside = (target >= 0) & (target < torch.tensor(lengths)[:, None])
    return torch.nn.functional.one_hot(torch.where(inside, target, position), max(lengths)).float()


def control_table(
    scores: Mapping[str, tuple[xr.DataArray, xr.DataArray]], rule: Rule = DEFAULT_RULE
) -> pd.DataFrame:
    """Labels of encoders and of controls by the three rules: a row for each, and for each of its roles.

    `scores` maps the name of some heads, or of a control that replaces heads, to their composed scores and to the
    scores of their own controls. Columns as in `control_counts`.
    """
    tables = [controlled_table(*pair, rule).assign(control=name) for name, pair in scores.items()]
    return control_counts(pd.concat(tables))


def control_counts(tables: pd.DataFrame) -> pd.DataFrame:
    """The table `controls` (docs/tables.yaml), from role tables with a column control, which says whose heads they are.

    `mean` is that of all heads. Heads that cannot be tested have no label.
    """
    keys = [*tables.columns.intersection(["task", "state"]), "control", "role"]
    counts = tables.groupby(keys, sort=False).agg(
        n=("n", "max"),
        mean=("mean", "mean"),
        highest=("mean", "max"),
        published=("assigned", "sum"),
        corrected=("assigned_corrected", "sum"),
        controlled=("assigned_controlled", "sum"),
    )
    return counts[counts["n"] > 0].reset_index()
