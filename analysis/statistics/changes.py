"""What an intervention changes: paired changes of a metric between two sets of answers to the same sequences."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int, Shaped
from scipy import stats

from analysis.errors import InputError
from analysis.statistics.answers import LOSS, METRICS, PEARSON, Labels, Logits, divided
from analysis.statistics.paired import POWER, change_interval, least_accuracy, least_effect, mcnemar
from analysis.statistics.resampling import bca
from analysis.statistics.significance import adjust, quiet

BASELINE = "none"  # the row of logits without an intervention
COLUMNS = ["intervention", "metric", "baseline", "change", "low", "high", "p", "p_by", "least"]
ROUNDING = 1e-12
NEGLIGIBLE = 1e-6  # a change or a spread below this (proportion, nats) is rounding of single-precision logits
FLIPS_AT_ONCE = 500  # bounds the memory


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

    `logits` (intervention, sequence, class). Columns intervention, metric; baseline (the metric without intervention);
    change (with minus without); low, high (paired interval at level 1 - `alpha`: `paired.change_interval` for accuracy,
    else BCa); p (exact McNemar for accuracy, paired t test for the loss, paired swaps for F1 and Matthews); p_by
    (Benjamini and Yekutieli over the interventions); least (see `least_changes`). An intervention that changes no
    sequence has p 1 and, but for accuracy, low = high = 0. Raises InputError for logits without the row "none", labels
    that are no class of the logits, an unknown metric and too few resamples.
    """
    names, *answers = _split(logits, labels)
    tables = []
    for metric in metrics:
        compared = Compared.of(metric, *answers)
        low, high = compared.interval(alpha, resamples, seed)
        p = compared.p(permutations, seed)
        columns = {"baseline": compared.baseline, "change": compared.change, "low": low, "high": high, "p": p}
        table = pd.DataFrame({"intervention": names, "metric": metric} | columns)
        tables.append(table.assign(p_by=adjust(p, "fdr_by"), least=least_changes(compared, alpha)))
    return pd.concat(tables, ignore_index=True)[COLUMNS]


class Compared(NamedTuple):
    """A metric with and without every intervention: what each answer adds to it."""

    metric: str
    base: Float[np.ndarray, "sequence column"]
    others: Float[np.ndarray, "variant sequence column"]

    @classmethod
    def of(
        cls, metric: str, base: Float[np.ndarray, "1 sequence class"], others: Logits, labels: Labels
    ) -> "Compared":
        """From logits without and with interventions; raises InputError for an unknown metric."""
        if metric not in METRICS:
            raise InputError(f"metric {metric!r} is unknown; use one of {', '.join(METRICS)}")
        columns = METRICS[metric].columns
        return cls(metric, columns(base, labels)[0], columns(others, labels))

    @property
    def baseline(self) -> float:
        """The metric without intervention."""
        return float(METRICS[self.metric].value(self.base.mean(axis=0)))

    @property
    def change(self) -> Float[np.ndarray, " variant"]:
        """The metric with each intervention minus that without."""
        return METRICS[self.metric].value(self.others.mean(axis=1)) - self.baseline

    @property
    def difference(self) -> Float[np.ndarray, "sequence variant column"]:
        """What each answer adds with an intervention minus without."""
        return np.swapaxes(self.others - self.base, 0, 1)

    def interval(
        self, alpha: float = 0.05, resamples: int = 999, seed: int = 0
    ) -> tuple[Float[np.ndarray, " variant"], Float[np.ndarray, " variant"]]:
        """Both ends of the paired interval of the change: in closed form for accuracy, else BCa.

        BCa gives the change itself where no sequence differs.
        """
        if self.metric == "accuracy":
            low, high = change_interval(*self.discordant(), len(self.base), alpha)
            return low, high

        def changes(counts: Int[np.ndarray, "*draw sequence"]) -> Float[np.ndarray, "variant *draw"]:
            before, after = self.drawn(counts)
            # BCa counts draws that equal the estimate: rounding must not make them differ.
            return np.moveaxis(np.round(after - before, 12), -1, 0)

        low, high = bca(changes, len(self.base), self.others.size, alpha, resamples, seed).confidence_interval
        constant = np.isnan(low) | np.isnan(high)
        return np.where(constant, self.change, low), np.where(constant, self.change, high)

    def drawn(self, counts: Shaped[np.ndarray, "*draw sequence"]) -> Float[np.ndarray, "2 *draw variant"]:
        """The metric without and with each intervention when every sequence counts as often as `counts` says."""
        value, (variants, n, columns) = METRICS[self.metric].value, self.others.shape
        weights = counts / counts.sum(axis=-1, keepdims=True)
        flat = np.swapaxes(self.others, 0, 1).reshape(n, -1)
        after = value((weights @ flat).reshape(*counts.shape[:-1], variants, columns))
        before = value(weights @ self.base)[..., None]
        return np.stack([np.broadcast_to(before, after.shape), after])

    @property
    def contributions(self) -> Float[np.ndarray, "sequence variant"]:
        """What each sequence adds to the change: its difference for means, its jackknife pseudo-value for ratios.

        Their mean and standard error are those of the change.
        """
        n, value = len(self.base), METRICS[self.metric].value

        def left_out(columns: Float[np.ndarray, "sequence variant column"]) -> np.ndarray:
            """The metric without each sequence."""
            return value((n * columns.mean(axis=0) - columns) / (n - 1))

        change_left_out = left_out(np.swapaxes(self.others, 0, 1)) - left_out(self.base[:, None])
        return n * self.change - (n - 1) * change_left_out

    def p(self, permutations: int = 9999, seed: int = 0) -> Float[np.ndarray, " variant"]:
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
        extreme = np.abs(null) >= np.abs(self.change) - ROUNDING
        return (1 + extreme.sum(axis=0)) / (1 + permutations)

    def discordant(self) -> tuple[Int[np.ndarray, " variant"], Int[np.ndarray, " variant"]]:
        """How many answers each intervention puts right, and how many wrong."""
        right = self.difference[..., 0] if self.metric == "accuracy" else self.difference[..., [0, 3]].sum(-1)
        return (right > 0.5).sum(axis=0), (right < -0.5).sum(axis=0)

    def swapped(self, permutations: int, seed: int = 0) -> Float[np.ndarray, "draw variant"]:
        """Changes when the answers with and without intervention are swapped in random sequences.

        The same sequences are swapped for all interventions, so that their dependence stays. This is the distribution
        of changes where an intervention does nothing but noise.
        """
        value, rng = METRICS[self.metric].value, np.random.default_rng(seed)
        n, variants, columns = self.difference.shape
        difference = self.difference.reshape(n, -1) / n
        before, after = self.base.mean(axis=0), self.others.mean(axis=1)
        parts = []
        for start in range(0, permutations, FLIPS_AT_ONCE):
            swaps = rng.integers(2, size=(min(FLIPS_AT_ONCE, permutations - start), n)).astype(np.float64)
            exchange = (swaps @ difference).reshape(len(swaps), variants, columns)
            parts.append(value(after - exchange) - value(before + exchange))
        return np.concatenate(parts)


def least_changes(compared: Compared, alpha: float = 0.05) -> Float[np.ndarray, " variant"]:
    """The least loss that the paired test at level `alpha` finds with power POWER in as many sequences.

    For accuracy it is the least loss that the exact McNemar test finds if as many answers are put right as are put
    right or wrong here, whichever are fewer. For F1 and Matthews it is the same loss of right answers, of either class
    in its share; for the loss (nats) that of the paired t test with the observed standard deviation; for a correlation
    the same with its pseudo-values.
    """
    n = len(compared.base)
    if compared.metric == PEARSON:
        return least_effect(n, alpha, POWER) * compared.contributions.std(axis=0, ddof=1)
    if compared.metric == LOSS:
        return least_effect(n, alpha, POWER) * compared.difference[..., 0].std(axis=0, ddof=1)
    rarer = np.minimum(*compared.discordant())
    losses = np.array([least_accuracy(int(count), n, alpha) for count in rarer])
    return losses if compared.metric == "accuracy" else losses * _per_right_answer(compared)


class Rises(NamedTuple):
    """How many removals raise the score, compared with swapped answers.

    `raised`: removals whose change is above 0; `raised_by_chance`: the 1 - alpha quantile of that number over swaps;
    `p_raised`: the share of swaps with at least as many. `largest` names the removal that stands out most from chance:
    its rise, divided by the standard deviation of its changes over swaps, is the largest. `rise` is its change, `low`
    and `high` are the ends of its simultaneous interval, `p` is its family-wise p. `beyond`: removals whose interval
    lies above 0. `highest_end` is the highest end of all intervals: if it is not above 0, no removal raises the score.
    """

    variants: int
    raised: int
    raised_by_chance: float
    p_raised: float
    beyond: int
    largest: str
    rise: float
    low: float
    high: float
    highest_end: float
    p: float


def rises(
    logits: xr.DataArray,
    labels: Labels,
    metric: str,
    alpha: float = 0.05,
    permutations: int = 9999,
    seed: int = 0,
) -> Rises:
    """Whether removals raise the score beyond chance, over all interventions together.

    A sign-flip null over sequences: baseline and intervention trade their answers. Rises of the loss are falls in
    nats. The quantile of the largest rise holds the family-wise error at `alpha` (Westfall and Young 1993). Raises
    InputError as `change_table` does.
    """
    names, *answers = _split(logits, labels)
    compared = Compared.of(metric, *answers)
    sign = -1 if metric == LOSS else 1
    change, null = sign * compared.change, sign * compared.swapped(permutations, seed)
    spread = null.std(axis=0)
    spread = np.where(spread > NEGLIGIBLE, spread, 0)  # a removal without effect stands out from nothing
    observed, largest = divided(change, spread), divided(null, spread).max(axis=1)
    reach = np.quantile(largest, 1 - alpha) * spread
    raised, best = int((change > NEGLIGIBLE).sum()), int(observed.argmax())
    by_chance = (null > NEGLIGIBLE).sum(axis=1)
    return Rises(
        variants=len(names),
        raised=raised,
        raised_by_chance=float(np.quantile(by_chance, 1 - alpha)),
        p_raised=_share(by_chance >= raised),
        beyond=int((change > reach + NEGLIGIBLE).sum()),
        largest=names[best],
        rise=float(change[best]),
        low=float(change[best] - reach[best]),
        high=float(change[best] + reach[best]),
        highest_end=float((change + reach).max()),
        p=_share(largest >= observed[best] - ROUNDING),
    )


def by_head(table: pd.DataFrame) -> pd.DataFrame:
    """The table with columns layer and head, read from intervention names that end in layer-head, as "2-8"."""
    places = table["intervention"].str.extract(r"(\d+)-(\d+)$").astype(int)
    return table.assign(layer=places[0], head=places[1])


def _split(
    logits: xr.DataArray, labels: Labels
) -> tuple[
    list[str], Float[np.ndarray, "1 sequence class"], Float[np.ndarray, "variant sequence class"], Labels
]:
    """The names of the interventions, the logits without and with them, and the labels, where all of these fit."""
    if BASELINE not in logits["intervention"].values:
        raise InputError(f"the logits have no row {BASELINE!r}: predict without intervention too")
    n, classes = logits.sizes["sequence"], logits.sizes["class"]
    if len(labels) != n:
        raise InputError(f"{len(labels)} labels for {n} sequences: give each sequence its label")
    numbers = classes == 1  # a regression
    if not numbers and (unknown := sorted({*labels.tolist()} - {*range(classes)})):
        raise InputError(
            f"label {unknown[0]!r} is unknown to a checkpoint of {classes} classes: take one that was fine-tuned "
            "on the task of the labels"
        )
    names = [name for name in logits["intervention"].values.tolist() if name != BASELINE]
    ordered = logits.transpose("intervention", "sequence", "class")
    base, others = (ordered.sel(intervention=rows).values for rows in ([BASELINE], names))
    return names, base, others, labels.astype(np.float64 if numbers else np.int64)


def _per_right_answer(compared: Compared) -> float:
    """How much the metric falls for each unit of accuracy if right answers of both classes turn wrong equally often."""
    value, cells, step = METRICS[compared.metric].value, compared.base.mean(axis=0), 1 / len(compared.base)
    wrong = np.array([[-1, 0, 1, 0], [0, 1, 0, -1]]) * step  # one more answer, of class 1, of class 0
    falls = (value(cells) - value(np.maximum(cells + wrong, 0))) / step
    right = cells[[0, 3]]
    return float(falls @ right / right.sum()) if right.sum() else float("nan")


def _share(extreme: Shaped[np.ndarray, " draw"]) -> float:
    """The p of a permutation test from which draws are at least as extreme as the sample."""
    return float((1 + extreme.sum()) / (1 + len(extreme)))
