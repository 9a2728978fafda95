"""Findings on the claims of Pande 2021: one function per claim, from the evidence to a verdict."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd

from .roles import coarse_memberships, memberships, multifunctional

MIDDLE = (Fraction(5, 12), Fraction(10, 12))  # layers 5-9 of 12
INITIAL = (Fraction(0), Fraction(1, 3))
FIRST_HALF = (Fraction(0), Fraction(1, 2))
LAST_HALF = (Fraction(1, 2), Fraction(1))
LAST_THIRD = (Fraction(2, 3), Fraction(1))
LAST_SIXTH = (Fraction(5, 6), Fraction(1))  # the last two layers of 12
MULTIFUNCTIONAL_REGIONS = {"mrpc": MIDDLE, "qnli": MIDDLE, "sst-2": MIDDLE, "qqp": INITIAL}
TENTH = 0.10  # "many" is at least, "very few" at most this share
NEAR = 0.05  # how near to 0 or 1 a p-value counts as near


@dataclass(frozen=True)
class Evidence:
    """What claims are judged on: long tables with the columns task and state in front.

    `roles` role table (layer, head, role, assigned, p...); `masses` mean attention mass (layer, head,
    sep, cls, other); `change` mean scores before and after (task, layer, head, role, pretrained,
    finetuned, difference); `skewness` (role, layer, head, n, skewness, p). None: not known.
    """

    roles: pd.DataFrame | None = None
    masses: pd.DataFrame | None = None
    change: pd.DataFrame | None = None
    skewness: pd.DataFrame | None = None

    @property
    def finetuned(self) -> pd.DataFrame | None:
        """The role table of the fine-tuned models."""
        return None if self.roles is None else self.roles[self.roles["state"] == "finetuned"]

    @property
    def tests(self) -> pd.DataFrame | None:
        """The testable head tests of the fine-tuned models."""
        return None if self.roles is None or "p" not in self.roles else self.finetuned.dropna(subset="p")

    @property
    def asymmetry(self) -> pd.DataFrame | None:
        """The testable skewness of the fine-tuned models' scores."""
        known = None if self.skewness is None else self.skewness.dropna(subset="p")
        return None if known is None else known[known["state"] == "finetuned"]

    def with_testable(self, roles: tuple[str, ...]) -> "Evidence":
        """The fine-tuned role tables of those tasks where each of the roles has a testable head."""
        table = self.finetuned
        known = table[table["assigned"].notna()].groupby("task")["role"].agg(set)
        tasks = [task for task, found in known.items() if found.issuperset(roles)]
        return replace(self, roles=table[table["task"].isin(tasks)])


class Finding(NamedTuple):
    """What the evidence says of a claim: the value in words, how many cases, and the verdict."""

    value: str
    n: int
    verdict: str


def judged(value: str, n: int | np.integer, holds: bool | np.bool_) -> Finding:
    """A finding with a verdict."""
    return Finding(value, int(n), "holds" if holds else "does not hold")


def untestable(reason: str) -> Finding:
    """A finding that the evidence does not allow a verdict."""
    return Finding(reason, 0, "untestable")


def band(layers: pd.Index | pd.Series, region: tuple[Fraction, Fraction]) -> list[int]:
    """The layers whose relative depth lies in [start, stop), at least one whatever the depth."""
    depth = int(max(layers)) + 1
    start, stop = (bound * depth for bound in region)
    return [layer for layer in range(depth) if start <= layer < stop] or [int(start)]


def many_multifunctional(evidence: Evidence) -> Finding:
    """C1: share of heads with at least two coarse roles."""
    multi = multifunctional(evidence.finetuned)
    shares = multi.groupby("task").mean()
    return judged(f"{multi.mean():.0%} of heads ({_percentages(shares)})", len(multi), multi.mean() >= TENTH)


def many_delimiter(evidence: Evidence) -> Finding:
    """C2: share of heads with the role delimiter."""
    labels = _labels(evidence.finetuned, "delimiter")
    share = labels["assigned"].mean()
    shares = labels.groupby("task")["assigned"].mean()
    return judged(f"{share:.0%} of heads ({_percentages(shares)})", len(labels), round(share, 2) >= 0.73)


def local_is_syntactic(evidence: Evidence) -> Finding:
    """C3: share of local heads that are syntactic too."""
    members = memberships(evidence.finetuned)
    if not members["local"].any():
        return untestable("no local heads")
    syntactic = members.loc[members["local"], "syntactic"]
    shares = syntactic.groupby("task").mean()
    value = f"{shares.min():.0%} to {shares.max():.0%} ({_percentages(shares)})"
    return judged(value, len(syntactic), round(shares.min(), 2) >= 0.42)


def multifunctional_layers(evidence: Evidence) -> Finding:
    """C4: multi-functional heads per layer, inside and outside the region named for the task."""
    counts = multifunctional(evidence.finetuned).groupby(["task", "layer"]).sum().unstack("layer")
    counts = counts[counts.index.isin(MULTIFUNCTIONAL_REGIONS)]
    if counts.empty:
        return untestable(f"none of the tasks {', '.join(MULTIFUNCTIONAL_REGIONS)}")
    rows = {}
    for task, heads in counts.iterrows():
        inside = heads.index.isin(band(heads.index, MULTIFUNCTIONAL_REGIONS[task]))
        rows[task] = (_span(heads.index[inside]), heads[inside].mean(), heads[~inside].mean())
    value = "; ".join(f"{task} {a:.1f} in {span}, {b:.1f} elsewhere" for task, (span, a, b) in rows.items())
    return judged(f"heads per layer: {value}", len(rows), all(a > b for _, a, b in rows.values()))


def delimiter_layers(evidence: Evidence) -> Finding:
    """C5: shares of [SEP] and [CLS] heads in the halves where the article sees them."""
    late, early = (
        _shares_inside(evidence.finetuned, *of) for of in (("sep", LAST_HALF), ("cls", FIRST_HALF))
    )
    shares = pd.DataFrame({"sep": late["share"], "cls": early["share"]}).dropna()
    if shares.empty:
        return untestable("no task with both [SEP] heads and [CLS] heads")
    value = "; ".join(f"{task} {row.sep:.0%} and {row.cls:.0%}" for task, row in shares.iterrows())
    n = (late["heads"] + early["heads"])[shares.index].sum()
    return judged(f"[SEP] in the later, [CLS] in the earlier half: {value}", n, (shares > 0.5).all(axis=None))


def block_layers(evidence: Evidence) -> Finding:
    """C6: block heads in layer 0 and later."""
    labels = _labels(evidence.finetuned, "block")
    heads = labels.groupby(["task", "layer"])["assigned"].sum().unstack("layer", fill_value=0)
    heads = heads.reindex(columns=range(max(evidence.finetuned["layer"]) + 1), fill_value=0)
    first, later = heads[0], heads.drop(columns=0)
    value = "; ".join(
        f"{task} {first[task]} in layer 0, {later.loc[task].sum()} later" for task in heads.index
    )
    unknown = (evidence.finetuned["role"] == "block").sum() - len(labels)
    value = f"block heads: {value} ({unknown} untestable)"
    return judged(value, heads.sum(axis=None), (first > later.max(axis=1)).all())


def syntactic_layers(evidence: Evidence) -> Finding:
    """C7: layers with at least three syntactic heads."""
    syntactic = coarse_memberships(evidence.finetuned)["syntactic"]
    apart = syntactic.groupby(["task", "layer"]).sum() >= 3
    pooled = syntactic.groupby(["layer", "head"]).any().groupby("layer").sum() >= 3
    value = (
        f"{apart.sum()} of {len(apart)} layers ({', '.join(apart.index.unique('task'))} apart), "
        f"{pooled.sum()} of {len(pooled)} when a head counts that is syntactic in any task"
    )
    return judged(value, len(apart), (~apart).mean() <= TENTH)


def last_layers(evidence: Evidence) -> Finding:
    """C8: multi-functional heads in the last layers."""
    multi = multifunctional(evidence.finetuned)
    layers = multi.index.get_level_values("layer")
    last = multi[layers.isin(band(layers, LAST_SIXTH))]
    counts = last.groupby("task").agg(["sum", "size"])
    value = "; ".join(f"{task} {row['sum']} of {row['size']}" for task, row in counts.iterrows())
    return judged(f"heads: {value}", len(last), (counts["sum"] <= TENTH * counts["size"]).all())


def later_layers_change(evidence: Evidence) -> Finding:
    """C9: where fine-tuning changes the scores most, and what [SEP] loses there."""
    size = evidence.change.assign(size=evidence.change["difference"].abs())
    size = size.groupby(["task", "layer"])["size"].mean().unstack("layer")
    late = band(size.columns, LAST_THIRD)
    steps = _mass_steps(evidence.masses[evidence.masses["layer"].isin(late)])
    steps = steps.assign(layer=size.idxmax(axis=1)).dropna()
    if steps.empty:
        return untestable("no task with attention masses before and after fine-tuning")
    value = "; ".join(
        f"{task} layer {row.layer:.0f}, [SEP] {row.sep:+.3f}, other {row.other:+.3f}"
        for task, row in steps.iterrows()
    )
    holds = steps["layer"].isin(late) & (steps["sep"] < 0) & (steps["other"] > 0)
    return judged(f"most changed layer and mass of the last third: {value}", len(steps), holds.all())


def extreme_p_values(evidence: Evidence) -> Finding:
    """C10: share of p-values near 0 or 1."""
    near = ~evidence.tests["p"].between(NEAR, 1 - NEAR)
    shares = near.groupby(evidence.tests["task"]).mean()
    return judged(f"{near.mean():.0%} of p-values ({_percentages(shares)})", len(near), near.mean() >= 0.95)


def asymmetric_scores(evidence: Evidence) -> Finding:
    """C11: share of skewed score distributions."""
    skewed = evidence.asymmetry["p"] < 0.05
    shares = skewed.groupby(evidence.asymmetry["task"]).mean()
    value = f"{skewed.mean():.0%} of heads and roles ({_percentages(shares)})"
    return judged(value, len(skewed), skewed.mean() > 0.5)


def _labels(table: pd.DataFrame, role: str) -> pd.DataFrame:
    """The testable labels of one role, as plain booleans."""
    rows = table[(table["role"] == role) & table["assigned"].notna()]
    return rows.assign(assigned=rows["assigned"].astype(bool))


def _shares_inside(table: pd.DataFrame, role: str, region: tuple[Fraction, Fraction]) -> pd.DataFrame:
    """Per task: heads with the role, and the share of them that lies in the region."""
    labels = _labels(table, role)
    heads = labels[labels["assigned"]]
    inside = heads.assign(inside=heads["layer"].isin(band(table["layer"], region)))
    return inside.groupby("task")["inside"].agg(heads="size", share="mean")


def _mass_steps(masses: pd.DataFrame) -> pd.DataFrame:
    """Per task: mean mass on [SEP] and on other tokens, fine-tuned minus pre-trained."""
    before, after = (
        masses[masses["state"] == state].groupby("task")[["sep", "other"]].mean()
        for state in ("pretrained", "finetuned")
    )
    return after - before


def _percentages(shares: pd.Series) -> str:
    return ", ".join(f"{task} {share:.0%}" for task, share in shares.items())


def _span(layers: pd.Index) -> str:
    return f"layers {min(layers)}-{max(layers)}"
