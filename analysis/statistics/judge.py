"""Judge a claim by the intervals of its units: tasks, relations, roles, or a single one."""

from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

SUPPORTED, MIXED, NOT_SUPPORTED = "supported", "mixed", "not supported"
INCONCLUSIVE, NOT_APPLICABLE = "inconclusive", "not applicable"
VERDICTS = (SUPPORTED, MIXED, NOT_SUPPORTED, INCONCLUSIVE, NOT_APPLICABLE)


class Judgement(NamedTuple):
    """What the intervals of its units say of one claim; numbers in the claim's own unit."""

    estimate: float  # mean over units; for a claim about every unit, the least favourable one
    low: float  # 95 % interval of the estimate
    high: float
    # Units whose interval, corrected for their number, lies on the claim's side of the threshold.
    supporting: int
    contradicting: int  # units whose corrected interval lies on the other side
    verdict: str


def judge(
    values: Float[np.ndarray, " unit"],
    low: Float[np.ndarray, " unit"],
    high: Float[np.ndarray, " unit"],
    threshold: float | int,
    relation: Literal[">", "<"] = ">",
    every: bool = False,
    independent: bool = False,
) -> Judgement:
    """Compares the values of units and their 95 % intervals with a threshold.

    `every`: the claim is about each unit ("to the previous *and* to the next token"), not about their mean.
    `independent`: the units are samples of their own, as tasks are; else they may share sequences, and the half width
    of their mean is the mean of theirs. The caller leaves out units without a value.
    """
    if relation == "<":
        swapped = judge(-values, -high, -low, -threshold, ">", every, independent)
        return swapped._replace(estimate=-swapped.estimate, low=-swapped.high, high=-swapped.low)

    wider = norm.ppf(1 - 0.025 / len(values)) / norm.ppf(0.975)  # Bonferroni
    supports = values - wider * (values - low) > threshold
    contradicts = values + wider * (high - values) < threshold
    if every:
        worst = np.argmin(np.where(np.isnan(low), values, low))
        estimate, below, above = values[worst], values[worst] - low[worst], high[worst] - values[worst]
    else:
        estimate = values.mean()
        below, above = pooled(values - low, independent), pooled(high - values, independent)

    if supports.any() and contradicts.any():
        verdict = MIXED
    elif estimate - below > threshold and not contradicts.any() and (values > threshold).mean() > 0.5:
        verdict = SUPPORTED
    elif contradicts.any() if every else estimate + above < threshold:
        verdict = NOT_SUPPORTED
    else:
        verdict = INCONCLUSIVE
    counts = int(supports.sum()), int(contradicts.sum())
    return Judgement(float(estimate), float(estimate - below), float(estimate + above), *counts, verdict)


def pooled(half_widths: Float[np.ndarray, " unit"], independent: bool) -> float:
    """The half width of the interval of a mean over units."""
    if independent:
        return float(np.linalg.norm(half_widths) / len(half_widths))
    return float(np.mean(half_widths))
