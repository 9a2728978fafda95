"""What an intervention changes: paired changes of a metric between two sets of answers to the same sequences.

Accuracy has the exact McNemar test, its power, and the least change that a sample can show.
"""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int, Shaped
from scipy import optimize, stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from analysis.statistics.answers import LOSS, METRICS, PEARSON, Labels, divided
from analysis.statistics.bootstrap import bca
from analysis.statistics.significance import adjust, quiet

BASELINE = "none"  # the row of logits without an intervention
ROUNDING = 1e-12
NEGLIGIBLE = 1e-6  # a change or a spread below this (proportion, nats) is rounding of single-precision logits
FLIPS_AT_ONCE = 500  # bounds the memory
POWER = 0.8
FEW = 10  # changed answers

ByVariant = Float[np.ndarray, " variant"]
Counts = Int[np.ndarray, " variant"]
Ends = Float[np.ndarray, "end variant"]


def change_interval(gains: Counts, lost: Counts, n: int, alpha: float = 0.05) -> Ends:
    """Both ends of the interval of a change of accuracy, from how many of `n` answers turn right and wrong.

    The Wald interval after .5 is added to each of the four cells of the paired table (Agresti and Min 2005). Where
    fewer than FEW answers change, it misses losses without gains too often; there the ends are those of Clopper and
    Pearson 1934 for the share of answers that turn right minus the opposite ones for wrong, each at half the error.
    """
    gains, lost = np.asarray(gains), np.asarray(lost)
    total, change = n + 2, gains - lost
    error = np.sqrt(gains + lost + 1 - change**2 / total) / total
    wald = change / total + stats.norm.ppf(1 - alpha / 2) * error * np.array([[-1], [1]])
    (fewest, most), (fewest_lost, most_lost) = (
        proportion_confint(count, n, alpha / 2, method="beta") for count in (gains, lost)
    )
    return np.where(gains + lost < FEW, [fewest - most_lost, most - fewest_lost], wald)


class NotWorse(NamedTuple):
    """Whether a change loses at most a margin (None: inconclusive), its interval, and the reason if n is too small."""

    low: float
    high: float
    holds: bool | None
    reason: str = ""


def not_worse(gains: int, lost: int, n: int, margin: float, alpha: float = 0.05) -> NotWorse:
    """Whether a change of accuracy loses at most `margin` (a proportion), by its interval (`change_interval`).

    A margin below what `n` answers can show if none changes is inconclusive, whatever changes.
    """
    low, high = (float(end[0]) for end in change_interval(np.array([gains]), np.array([lost]), n, alpha))
    # What `change_interval` needs if none changes.
    needed = int(np.ceil(np.log(alpha / 4) / np.log1p(-margin)))
    if n < needed:
        return NotWorse(low, high, None, f"{n} answers: a margin of {margin:.2g} needs {needed}")
    if low >= -margin:
        return NotWorse(low, high, True)
    return NotWorse(low, high, False if high < -margin else None)


def mcnemar(gains: Counts, lost: Counts) -> ByVariant:
    """Two-sided p of the exact McNemar test from the numbers of answers put right and put wrong; 1 for none."""
    return np.minimum(1, 2 * stats.binom.cdf(np.minimum(gains, lost), gains + lost, 0.5))


@cache
def least_accuracy(gains: int, n: int, alpha: float = 0.05, power: float = POWER) -> float:
    """The least loss of accuracy that the exact McNemar test finds with this power, `gains` answers of n put right.

    NaN where no loss is large enough.
    """
    gain = gains / n
    largest = 1 - 2 * gain

    def lacking(loss: float) -> float:
        return mcnemar_power(gain, gain + loss, n, alpha) - power

    if largest <= 0 or lacking(largest) < 0:
        return float("nan")
    return float(optimize.brentq(lacking, 1e-9, largest, xtol=1e-6))


def mcnemar_power(gain: float, lost: float, n: int, alpha: float = 0.05) -> float:
    """How often the two-sided exact McNemar test of n sequences finds a loss.

    `gain` and `lost` are the shares of sequences whose answers are put right and put wrong.
    """
    pairs = np.arange(n + 1)
    critical = stats.binom.ppf(alpha / 2, pairs, 0.5)
    critical = np.where(2 * stats.binom.cdf(critical, pairs, 0.5) > alpha, critical - 1, critical)
    power_by_pairs = stats.binom.cdf(critical, pairs, gain / (gain + lost))
    return float(stats.binom.pmf(pairs, n, gain + lost) @ power_by_pairs)


@cache
def least_effect(n: int, alpha: float, power: float) -> float:
    """The least mean over standard deviation that a two-sided paired t test finds; 0 if it finds none as often."""
    if alpha >= power:
        return 0.0
    effect = TTestPower().solve_power(nobs=n, alpha=alpha, power=power, alternative="two-sided")
    return float(np.ravel(effect)[0])  # statsmodels gives an array for some n


def split_baseline(logits: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """The logits without an intervention and those with each (intervention, sequence, class)."""
    logits = logits.transpose("intervention", "sequence", "class")
    return logits.sel(intervention=[BASELINE]), logits.drop_sel(intervention=BASELINE)


def change_table(
    logits: xr.DataArray,
    labels: Labels,
    metrics: Iterable[str],
    alpha: float = 0.05,
    resamples: int = 999,
    permutations: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """What every intervention changes, against the row "none" of the logits: a row per metric and intervention.

    Columns as in `michel_ablation` (docs/tables.yaml). The interval, at level 1 - `alpha`, is `change_interval`
    for accuracy, else BCa; p is that of the exact McNemar test for accuracy, of the paired t test for the loss, else of
    paired swaps, and 1 if no sequence changes; p_by is over the interventions; least is that of `least_changes`.
    """
    tables = []
    for metric in metrics:
        answers = compared(logits, labels, metric)
        low, high = answers.interval(alpha, resamples, seed)
        p = answers.p(permutations, seed)
        columns = {"baseline": answers.baseline, "change": answers.change, "low": low, "high": high, "p": p}
        columns |= {"p_by": adjust(p, "fdr_by"), "least": least_changes(answers, alpha)}
        tables.append(pd.DataFrame({"intervention": answers.names, "metric": metric} | columns))
    return pd.concat(tables, ignore_index=True)


class Compared(NamedTuple):
    """A metric with and without every intervention: what each answer adds to it."""

    metric: str
    names: list[str]  # of the interventions
    base: Float[np.ndarray, "sequence column"]
    others: Float[np.ndarray, "variant sequence column"]

    def value(self, means: Float[np.ndarray, "... column"]) -> Float[np.ndarray, "..."]:
        """The metric from means of what answers add to it."""
        return METRICS[self.metric].value(means)

    @property
    def baseline(self) -> float:
        """The metric without intervention."""
        return float(self.value(self.base.mean(axis=0)))

    @property
    def change(self) -> ByVariant:
        """The metric with each intervention minus that without."""
        return self.value(self.others.mean(axis=1)) - self.baseline

    @property
    def difference(self) -> Float[np.ndarray, "sequence variant column"]:
        """What each answer adds with an intervention minus without."""
        return np.swapaxes(self.others - self.base, 0, 1)

    def discordant(self) -> tuple[Counts, Counts]:
        """How many answers each intervention puts right, and how many wrong."""
        right = self.difference[..., 0] if self.metric == "accuracy" else self.difference[..., [0, 3]].sum(-1)
        return (right > 0.5).sum(axis=0), (right < -0.5).sum(axis=0)

    def interval(self, alpha: float, resamples: int, seed: int) -> Ends:
        """Both ends of the paired interval of the change; BCa gives the change itself where no sequence differs."""
        if self.metric == "accuracy":
            return change_interval(*self.discordant(), len(self.base), alpha)

        def changes(counts: Int[np.ndarray, "*draw sequence"]) -> Float[np.ndarray, " variant *draw"]:
            before, after = self.weighted(counts)
            # BCa counts draws that equal the estimate: rounding must not make them differ.
            return np.moveaxis(np.round(after - before, 12), -1, 0)

        ends = bca(changes, len(self.base), self.others.size, alpha, resamples, seed)
        return np.where(np.isnan(ends).any(axis=0), self.change, ends)

    def weighted(self, counts: Shaped[np.ndarray, "*draw sequence"]) -> Float[np.ndarray, "2 *draw variant"]:
        """The metric without and with each intervention when every sequence counts as often as `counts` says."""
        variants, n, columns = self.others.shape
        weights = counts / counts.sum(axis=-1, keepdims=True)
        flat = np.swapaxes(self.others, 0, 1).reshape(n, -1)
        after = self.value((weights @ flat).reshape(*counts.shape[:-1], variants, columns))
        before = self.value(weights @ self.base)[..., None]
        return np.stack([np.broadcast_to(before, after.shape), after])

    @property
    def contributions(self) -> Float[np.ndarray, "sequence variant"]:
        """What each sequence adds to the change: its difference for means, its jackknife pseudo-value for ratios.

        Their mean and standard error are those of the change.
        """
        n = len(self.base)

        def left_out(columns: Float[np.ndarray, "sequence variant column"]) -> np.ndarray:
            """The metric without each sequence."""
            return self.value((n * columns.mean(axis=0) - columns) / (n - 1))

        change_left_out = left_out(np.swapaxes(self.others, 0, 1)) - left_out(self.base[:, None])
        return n * self.change - (n - 1) * change_left_out

    def p(self, permutations: int, seed: int) -> ByVariant:
        """Two-sided p of no change; 1 where no sequence differs by more than rounding."""
        if self.metric == "accuracy":
            return mcnemar(*self.discordant())
        if self.metric == LOSS:
            difference = self.difference[..., 0]
            with quiet():
                p = stats.ttest_1samp(difference, 0).pvalue
            constant = difference.std(axis=0) < NEGLIGIBLE  # no spread: the mean alone decides
            return np.where(constant, (np.abs(difference.mean(axis=0)) < NEGLIGIBLE).astype(float), p)
        null = self.swapped(permutations, seed)
        return permutation_p(np.abs(null) >= np.abs(self.change) - ROUNDING)

    def swapped(self, permutations: int, seed: int) -> Float[np.ndarray, "draw variant"]:
        """Changes when the answers with and without intervention are swapped in random sequences.

        The same sequences are swapped for all interventions, so that their dependence stays. This is the distribution
        of changes where an intervention does nothing but noise.
        """
        rng, (n, variants, columns) = np.random.default_rng(seed), self.difference.shape
        difference = self.difference.reshape(n, -1) / n
        before, after = self.base.mean(axis=0), self.others.mean(axis=1)
        parts = []
        for start in range(0, permutations, FLIPS_AT_ONCE):
            swaps = rng.integers(2, size=(min(FLIPS_AT_ONCE, permutations - start), n)).astype(np.float64)
            exchange = (swaps @ difference).reshape(len(swaps), variants, columns)
            parts.append(self.value(after - exchange) - self.value(before + exchange))
        return np.concatenate(parts)


def compared(logits: xr.DataArray, labels: Labels, metric: str) -> Compared:
    """The interventions in an array of logits compared with its row "none"."""
    parts = split_baseline(logits)
    base, others = (METRICS[metric].columns(part.values, labels) for part in parts)
    return Compared(metric, parts[1]["intervention"].values.tolist(), base[0], others)


def permutation_p(extreme: Bool[np.ndarray, " draw *variant"]) -> Float[np.ndarray, "*variant"] | float:
    """The p of a permutation test from which draws are at least as extreme as the sample."""
    return (1 + extreme.sum(axis=0)) / (1 + len(extreme))


def least_changes(answers: Compared, alpha: float = 0.05) -> ByVariant:
    """The smallest loss that the paired test at level `alpha` detects with power POWER in as many sequences.

    For accuracy it is that of the exact McNemar test, if the rarer of both kinds of changed answers stays as rare as it
    is; for F1 and Matthews the same loss of right answers, of either class in its share; for the loss (nats) that of
    the paired t test with the observed standard deviation, for a correlation the same with its pseudo-values.
    """
    if answers.metric in (LOSS, PEARSON):
        spread = answers.difference[..., 0] if answers.metric == LOSS else answers.contributions
        return least_effect(len(answers.base), alpha, POWER) * spread.std(axis=0, ddof=1)
    rarer = np.minimum(*answers.discordant())
    losses = np.array([least_accuracy(int(count), len(answers.base), alpha) for count in rarer])
    return losses if answers.metric == "accuracy" else losses * _per_right_answer(answers)


def _per_right_answer(answers: Compared) -> float:
    """How much the metric falls for each unit of accuracy if right answers of both classes turn wrong equally often."""
    cells, step = answers.base.mean(axis=0), 1 / len(answers.base)
    wrong = np.array([[-1, 0, 1, 0], [0, 1, 0, -1]]) * step  # one more answer, of class 1, of class 0
    falls = (answers.value(cells) - answers.value(np.maximum(cells + wrong, 0))) / step
    right = cells[[0, 3]]
    return float(falls @ right / right.sum()) if right.sum() else float("nan")


def rises(
    logits: xr.DataArray,
    labels: Labels,
    metric: str,
    alpha: float = 0.05,
    permutations: int = 9999,
    seed: int = 0,
) -> dict[str, object]:
    """Whether ablations raise the score beyond chance, over all interventions: the columns of `kovaleva_rises`.

    Under the null, baseline and intervention swap their answers. Rises of the loss are falls in nats. The quantile of
    the largest rise holds the family-wise error at `alpha` (Westfall and Young 1993): `beyond` counts simultaneous
    intervals above 0. `largest` is the ablation with the largest rise in standard deviations of its changes over swaps;
    rise, low, high and its family-wise p are of it. If highest_end is not above 0, no ablation raises the score.
    """
    answers, sign = compared(logits, labels, metric), -1 if metric == LOSS else 1
    change, null = sign * answers.change, sign * answers.swapped(permutations, seed)
    spread = null.std(axis=0)
    spread = np.where(spread > NEGLIGIBLE, spread, 0)  # an ablation without effect stands out from nothing
    observed, largest = divided(change, spread), divided(null, spread).max(axis=1)
    reach = np.quantile(largest, 1 - alpha) * spread
    raised, best = int((change > NEGLIGIBLE).sum()), int(observed.argmax())
    by_chance = (null > NEGLIGIBLE).sum(axis=1)
    return {
        "variants": len(answers.names),
        "raised": raised,
        "raised_by_chance": float(np.quantile(by_chance, 1 - alpha)),
        "p_raised": float(permutation_p(by_chance >= raised)),
        "beyond": int((change > reach + NEGLIGIBLE).sum()),
        "largest": answers.names[best],
        "rise": float(change[best]),
        "low": float(change[best] - reach[best]),
        "high": float(change[best] + reach[best]),
        "highest_end": float((change + reach).max()),
        "p": float(permutation_p(largest >= observed[best] - ROUNDING)),
    }


def by_head(table: pd.DataFrame) -> pd.DataFrame:
    """The table with columns layer and head, read from intervention names that end in layer-head, as "2-8"."""
    places = table["intervention"].str.extract(r"(\d+)-(\d+)$").astype(int)
    return table.assign(layer=places[0], head=places[1])
