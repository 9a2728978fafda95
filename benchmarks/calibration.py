"""Do the rules for labels keep their level, and how large an effect do they find?

    python benchmarks/calibration.py [--runs 40000] [--families 40]

Scores of heads whose true mean is the threshold plus an effect are drawn from five distributions, and labelled by the
rules of the study. One table goes to benchmarks/results/ (03_robustness and docs/method.md show it) and to the screen.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW
from tqdm import tqdm

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis.errors import InputError  # noqa: E402
from analysis.statistics.resampling import Clusters, lower_bound  # noqa: E402
from analysis.statistics.significance import Rule, adjust, head_test, mean_above  # noqa: E402
from benchmarks.timing import RESULTS  # noqa: E402

SIZES, EFFECTS = (
    (20, 100, 1000),
    (0.0, 0.5),
)  # sequences; true mean minus tau in standard deviations of the scores
MINIMUM = 20  # sequences that the corrected rule needs here: fewer than the study's 100, to show why 100
# The columns of the table: a rule, the effect of the heads, and whether any label of a family counts.
SHOWN = {
    "t test": ("t", 0.0),
    "corrected": ("corrected", 0.0),
    "controlled": ("controlled", 0.0),
    "any of 144, t test and BY": ("t_by_family", 0.0),
    "any of 144, corrected": ("corrected_family", 0.0),
    "power, t test": ("t", 0.5),
    "power, corrected": ("corrected", 0.5),
}
HEADS = 144  # of a family: one role of one task and state, 12 layers x 12 heads
CONTROL_SD = 0.5  # standard deviation of a control's scores; a head's own scores have 1
BLOCK = 250_000  # scores drawn at once: 2 MB, of which a test makes several copies
T_RULES = {"t": "corrected", "t_published": "published"}
FAMILY_RULES = ("bootstrap_t", "t_by", "corrected")
COLUMNS = ["effect", "rule", "rate", "low", "high", "runs"]
LOGNORMAL = stats.lognorm(s=1.0)
NONZERO = 0.2  # share of exponential scores (mean 1) among the zero-inflated ones
DROPS = 0.05  # share of sequences in which a head with rare drops scores low
NOISE = 0.02  # standard deviation of its other scores


def symmetric(rng: np.random.Generator, size: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Normal scores."""
    return rng.standard_normal(size)


def right_skewed(rng: np.random.Generator, size: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Lognormal scores whose logarithm has standard deviation 1 (skewness 6.2)."""
    return (rng.lognormal(0.0, 1.0, size) - LOGNORMAL.mean()) / LOGNORMAL.std()


def left_skewed(rng: np.random.Generator, size: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """The right-skewed scores reflected, like those of heads close to their ceiling."""
    return -right_skewed(rng, size)


def zero_inflated(rng: np.random.Generator, size: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Four of five scores equal the lowest value; the others are exponential."""
    scores = rng.exponential(size=size) * (rng.random(size) < NONZERO)
    return (scores - NONZERO) / np.sqrt(2 * NONZERO - NONZERO**2)


def rare_drops(rng: np.random.Generator, size: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Nearly equal scores, but for one sequence in twenty, which scores far lower."""
    level = np.where(rng.random(size) < DROPS, -np.sqrt((1 - DROPS) / DROPS), np.sqrt(DROPS / (1 - DROPS)))
    return (level + NOISE * rng.standard_normal(size)) / np.hypot(1, NOISE)


# Every shape has mean 0 and standard deviation 1. The threshold is 0 here, whatever the rule says: all use score - tau.
SHAPES = {
    shape.__name__: shape for shape in (symmetric, right_skewed, left_skewed, zero_inflated, rare_drops)
}


def size_table(
    sizes: Sequence[int], effects: Sequence[float | int], runs: int, families: int, rule: Rule
) -> pd.DataFrame:
    """Size (effect 0) and power of every rule: shape, n, then COLUMNS.

    The rules are those of `t_test_size` and `family_size`, on separate draws. Every shape and n has its own random
    stream, so that a row does not depend on the other rows.
    """
    if min(*sizes, families) < 2:
        raise InputError(f"n is {min(sizes)}, families {families}: give at least 2 sequences and 2 families")
    tables = []
    for shape, n in tqdm([*product(SHAPES, sizes)], desc="simulate", unit="size"):
        parts = [
            t_test_size(shape, n, runs, rule, effects),
            family_size(shape, n, families, rule, effects),
            family_size(shape, n, families, rule, effects, controlled=True),
        ]
        tables.append(pd.concat(parts).sort_values("effect", kind="stable").assign(shape=shape, n=n))
    return pd.concat(tables, ignore_index=True)[["shape", "n", *COLUMNS]]


def t_test_size(
    shape: str, n: int, runs: int, rule: Rule, effects: Sequence[float | int] = (0.0,)
) -> pd.DataFrame:
    """Rejection rate of the one-sided t test: effect, rule, rate, low, high, runs; one row per effect and rule.

    `runs` independent samples of `n` scores have a true mean of tau plus an effect (in standard deviations); all
    effects use the same draws. Rules: t (sample standard deviation) and t_published (population standard deviation).
    low, high: exact 95 % Monte Carlo interval (Clopper-Pearson).
    """
    rng = _generator(rule.seed, shape, n, stream=0)
    rejections = dict.fromkeys(product(effects, T_RULES), 0)
    at_once = max(1, BLOCK // n)
    for start in range(0, runs, at_once):
        scores = SHAPES[shape](rng, (n, min(at_once, runs - start)))
        for effect, name in rejections:
            test = head_test(scores, -effect, T_RULES[name])
            rejections[effect, name] += int((test.p < rule.alpha).sum())
    rows = [
        (effect, name, count / runs, *proportion_confint(count, runs, method="beta"), runs)
        for (effect, name), count in rejections.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def family_size(
    shape: str,
    n: int,
    families: int,
    rule: Rule,
    effects: Sequence[float | int] = (0.0,),
    controlled: bool = False,
) -> pd.DataFrame:
    """Label rate of the rules that use a whole family: columns as in `t_test_size`.

    Each of `families` has 144 independent heads with one shape and one effect, where BY has most power. Rules:
    bootstrap_t (its lower bound is above tau), t_by (the BY-corrected p of the t test is below `alpha`), corrected
    (both bootstrap_t and the BY-corrected p of `mean_above`, and n at least `minimum`). At effect 0 each rule also has
    a row with the suffix _family: any false label in a family. low, high: 95 % interval over families, since heads of a
    family share their resamples, and at least as wide as that of independent heads.

    If `controlled`, the only rule is controlled: the corrected rule on the difference between a head's score and its
    control's, which has the same shape and half the standard deviation. They vary independently, the least favourable
    pairing; effects are in standard deviations of the difference.
    """
    rng = _generator(rule.seed, shape, n, stream=2 if controlled else 1)
    draw = partial(_paired, SHAPES[shape]) if controlled else SHAPES[shape]
    rules = [replace(rule, seed=int(seed)) for seed in rng.integers(2**32, size=families)]
    labels = np.stack([family_labels(draw(rng, (n, HEADS)), effects, one) for one in rules])
    names = {"corrected": "controlled"} if controlled else dict(zip(FAMILY_RULES, FAMILY_RULES, strict=True))
    rows = []
    for (number, effect), (label, name) in product(enumerate(effects), names.items()):
        by_family = labels[:, number, FAMILY_RULES.index(label)]
        rows.append((effect, name, by_family.mean(), *_interval(by_family), by_family.size))
        if effect == 0:
            false = by_family.any(axis=1)
            interval = proportion_confint(false.sum(), families, method="beta")
            rows.append((effect, f"{name}_family", false.mean(), *interval, families))
    return pd.DataFrame(rows, columns=COLUMNS)


def family_labels(
    scores: Float[np.ndarray, "n head"], effects: Sequence[float | int], rule: Rule
) -> Bool[np.ndarray, "effect rule head"]:
    """Which heads of one family get a label from the rules in FAMILY_RULES, with scores shifted up by each effect."""
    sums = Clusters.of(scores)
    # One bound serves all effects; it agrees with the p-value of the bootstrap-t.
    lower = lower_bound(sums, rule.alpha, rule.resamples, rule.seed)
    labels = []
    for effect in effects:
        above = lower > -effect
        by_t = adjust(head_test(scores, -effect).p, "fdr_by") < rule.alpha
        by_skewness = adjust(mean_above(sums, -effect), "fdr_by") < rule.alpha
        labels.append([above, by_t, above & by_skewness & (len(scores) >= rule.minimum)])
    return np.array(labels)


def _paired(
    shape: Callable[..., np.ndarray], rng: np.random.Generator, size: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    """Differences between a head's score and its control's score, with mean 0 and standard deviation 1."""
    head, control = shape(rng, size), CONTROL_SD * shape(rng, size)
    return (head - control) / np.hypot(1, CONTROL_SD)


def _interval(labels: Bool[np.ndarray, "family head"]) -> tuple[float, float]:
    """95 % interval of a label rate: the t interval over families, widened to that of independent heads."""
    within = proportion_confint(labels.sum(), labels.size, method="beta")
    between = DescrStatsW(labels.mean(axis=1)).tconfint_mean()
    return max(0.0, min(within[0], between[0])), min(1.0, max(within[1], between[1]))


def _generator(seed: int, shape: str, n: int, stream: int) -> np.random.Generator:
    """A separate random stream for every shape, n and simulation."""
    return np.random.default_rng([seed, [*SHAPES].index(shape), n, stream])


def summary(rates: pd.DataFrame) -> pd.DataFrame:
    """A row for each shape and number of sequences, with the proportions of labelled heads or families of SHOWN."""
    wide = rates.pivot_table(index=["shape", "n"], columns=["rule", "effect"], values="rate", sort=False)
    return wide[[*SHOWN.values()]].set_axis([*SHOWN], axis=1).reset_index()


def main() -> None:
    """Simulates, prints the table and writes it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=40_000)
    parser.add_argument("--families", type=int, default=40)
    options = parser.parse_args()
    table = summary(size_table(SIZES, EFFECTS, options.runs, options.families, Rule(minimum=MINIMUM)))
    table.to_csv(RESULTS / "calibration.csv", index=False, float_format="%.4g", lineterminator="\n")
    text = table.to_markdown(index=False, floatfmt=".2g")
    (RESULTS / "calibration.md").write_text(f"{text}\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
