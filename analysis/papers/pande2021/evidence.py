"""The evidence for the claims: labelled arrays of the sample, of the released maps, and of bootstrap replicates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import xarray as xr

from analysis.papers.pande2021.arrays import by_task, mass_steps, paired, skewness_tests
from analysis.statistics.roles import ROLES
from analysis.statistics.significance import published_table

ARRAYS = ("labels", "p", "above", "change", "mass", "skewed", "controlled")
HEADS = ("role", "layer", "head")


@dataclass(frozen=True)
class Evidence:
    """Arrays (replicate, task, role, layer, head): first the sample of every run, then draws; None means not known.

    For the fine-tuned models: `labels` of the published rule (1, 0, NaN untestable), `p` of their tests, `above`
    (whether the mean exceeds tau), `controlled` (labels of the third rule) and `skewed` (whether D'Agostino's test
    rejects zero skewness: 1, 0, NaN untestable; fewer draws). For fine-tuned minus pre-trained: `change` of the mean
    scores, and `mass` (with target instead of role: sep, cls, other), the change of the mean proportion of attention.
    `drawn` says in words what a replicate draws; `runs` says how many fine-tuning runs come first.
    """

    labels: xr.DataArray | None = None
    p: xr.DataArray | None = None
    above: xr.DataArray | None = None
    change: xr.DataArray | None = None
    mass: xr.DataArray | None = None
    skewed: xr.DataArray | None = None
    controlled: xr.DataArray | None = None
    drawn: str = ""
    runs: int = 1

    @property
    def arrays(self) -> dict[str, xr.DataArray]:
        """The known arrays, by name."""
        return {name: array for name in ARRAYS if (array := getattr(self, name)) is not None}

    def with_testable(self, roles: Sequence[str]) -> "Evidence":
        """The labels of the tasks in which each of the roles has a testable head in the sample."""
        tested = self.labels.isel(replicate=0).sel(role=[*roles]).notnull().any(["layer", "head"])
        return replace(self, labels=self.labels.sel(task=tested.all("role")))

    def followed_by(self, draws: "Evidence") -> "Evidence":
        """These samples, followed by the draws."""
        return replace(self, **_stacked([self, draws]), drawn=draws.drawn)

    def under_control(self) -> "Evidence":
        """The same evidence with the controlled labels instead of the published ones."""
        return replace(self, labels=self.controlled)

    def with_controlled(self, table: pd.DataFrame) -> "Evidence":
        """This sample with the labels `assigned_controlled` of role tables (task, role, layer, head)."""
        labels = table["assigned_controlled"].astype("boolean")  # objects, if read from a file
        return replace(
            self, controlled=_array(table.assign(assigned_controlled=labels), "assigned_controlled")
        )


def samples(evidence: Sequence[Evidence]) -> Evidence:
    """The samples of several fine-tuning runs as one evidence; its findings are medians over the runs."""
    return replace(evidence[0], **_stacked(evidence), runs=len(evidence))


def _stacked(parts: Sequence[Evidence]) -> dict[str, xr.DataArray]:
    """The arrays that all parts have, concatenated."""
    names = [name for name in ARRAYS if all(name in part.arrays for part in parts)]
    return {
        name: xr.concat([getattr(part, name) for part in parts], "replicate", join="exact") for name in names
    }


def evidence_of_labels(table: pd.DataFrame, tau: float | int = 3.0) -> Evidence:
    """The labels of a role table with the columns task, role, layer, head, mean and assigned, and which means exceed
    `tau`; the rest is not known."""
    above = (table["mean"] > tau).astype("boolean").mask(table["assigned"].isna())
    return Evidence(labels=_array(table, "assigned"), above=_array(table.assign(above=above), "above"))


def evidence_of(
    pretrained: Mapping[str, xr.DataArray],
    finetuned: Mapping[str, xr.DataArray],
    tau: float | int = 3.0,
    alpha: float = 0.05,
) -> Evidence:
    """The sample's evidence from the composed scores of every task in both states.

    Raises InputError if the states have different tasks or sequences.
    """
    before, after = paired(pretrained, finetuned)
    tables = [published_table(scores, tau, alpha).assign(task=task) for task, scores in after.items()]
    table = pd.concat(tables, ignore_index=True)
    steps = {task: (scores - before[task]).mean("sequence") for task, scores in after.items()}
    masses = {task: mass_steps(before[task], scores).mean("sequence") for task, scores in after.items()}
    skewed = {task: skewness_tests(scores) for task, scores in after.items()}
    return Evidence(
        labels=_array(table, "assigned"),
        p=_array(table, "p"),
        above=_array(
            table.assign(above=(table["mean"] > tau).astype(float).where(table["p"].notna())), "above"
        ),
        change=by_task(steps).expand_dims("replicate"),
        mass=by_task(masses).expand_dims("replicate"),
        skewed=by_task(skewed).expand_dims("replicate"),
    )


def evidence_of_controls(
    pretrained: Mapping[str, xr.DataArray],
    finetuned: Mapping[str, xr.DataArray],
    like: Evidence,
    tau: float | int = 3.0,
    alpha: float = 0.05,
) -> Evidence:
    """The evidence for control heads, from their composed scores in both states; `evidence_of` does the same for heads.

    If the heads of `like` can be tested, a control with constant scores, such as a uniform head, has no role. Raises
    InputError as `evidence_of` does.
    """
    found = evidence_of(pretrained, finetuned, tau, alpha)
    known = like.labels.isel(replicate=[0]).notnull()
    return replace(found, labels=found.labels.fillna(0).where(known))


def _array(table: pd.DataFrame, column: str) -> xr.DataArray:
    """A column of a long table as an array of one replicate; values that are not in the table are NaN."""
    rows = table.set_index(["task", *HEADS])[column].astype("Float64").astype(np.float64)
    return rows.to_xarray().reindex(role=[*ROLES]).rename(None).expand_dims("replicate")
