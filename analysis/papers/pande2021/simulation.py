"""Can the tests be trusted? How often each rule labels simulated heads with a known mean score."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW
from tqdm import tqdm

from analysis.errors import InputError
from analysis.statistics.resampling import Clusters, lower_bound
from analysis.statistics.significance import adjust, head_test, mean_above

LOGNORMAL = stats.lognorm(s=1.0)
NONZERO = 0.2  # share of exponential scores (mean 1) among the zero-inflated ones
HEADS = 144  # of a family: one role, task and state, 12 layers x 12 heads
CONTROL_SD = 0.5  # standard deviation of a control's scores; a head's own scores have 1
BLOCK = 250_000  # scores per draw: 2 MB, of which a test makes several copies; larger blocks are slower
T_RULES = {"t": "corrected", "t_published": "published"}
FAMILY_RULES = ("bootstrap_t", "t_by", "audited")
BY_ALONE = HEADS * float(np.sum(1 / np.arange(1, HEADS + 1)))  # BY's factor for the smallest p-value
# Divisors of the level of one test; 1,152 tests are 144 heads of 4 tasks and 2 states.
DIVISORS = {"no correction": 1.0, "BY, one head of 144": BY_ALONE, "Bonferroni, 1,152 tests": 1152.0}


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


# Every shape has exactly mean 0 and standard deviation 1. tau is 0 here, since all rules use only score - tau.
SHAPES = {shape.__name__: shape for shape in (symmetric, right_skewed, left_skewed, zero_inflated)}


class Limit(NamedTuple):
    """How small a resampled p-value can be, and what it becomes after BY over a family.

    `p`: the smallest possible value; `alone`: the adjusted value if one head of the family has it; `heads`: how many
    heads must share it to pass, None if all together do not; `resamples`: the draws that one head alone needs.
    """

    p: float
    alone: float
    heads: int | None
    resamples: int


def t_test_size(
    shape: str,
    n: int,
    runs: int,
    seed: int = 0,
    effects: Sequence[float | int] = (0.0,),
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Rejection rate of the one-sided t test: effect, rule, rate, low, high, runs; one row per effect and rule.

    `runs` independent data sets of `n` scores have a true mean of tau plus an effect (in standard deviations); all
    effects use the same draws. Rules: t (sample standard deviation) and t_published (population standard deviation).
    low, high: exact 95 % Monte-Carlo interval (Clopper-Pearson). Raises InputError for an unknown shape, and if `n` or
    `runs` is too small.
    """
    _check(shape, n, runs=runs)
    rng = _generator(seed, shape, n, stream=0)
    rejected = Counter()
    for columns in _blocks(runs, n):
        scores = SHAPES[shape](rng, (n, columns))
        lower = {rule: _lower_bound(scores, alpha, arithmetic) for rule, arithmetic in T_RULES.items()}
        for effect, rule in itertools.product(effects, T_RULES):
            rejected[effect, rule] += int((lower[rule] > -effect).sum())
    rows = [
        (effect, rule, count / runs, *proportion_confint(count, runs, method="beta"), runs)
        for (effect, rule), count in rejected.items()
    ]
    return pd.DataFrame(rows, columns=["effect", "rule", "rate", "low", "high", "runs"])


def family_size(
    shape: str,
    n: int,
    families: int,
    seed: int = 0,
    effects: Sequence[float | int] = (0.0,),
    alpha: float = 0.05,
    resamples: int = 999,
    minimum: int = 20,
    controlled: bool = False,
) -> pd.DataFrame:
    """Label rate of the rules that use a whole family: columns as in `t_test_size`.

    Each of `families` has 144 independent heads with one shape and one effect; in this case BY has most power. Rules:
    bootstrap_t (its lower bound is above tau), t_by (the BY-adjusted p of the t test is below `alpha`), audited
    (bootstrap_t, the BY-adjusted p of `mean_above` is below `alpha`, and n is at least `minimum`). At effect 0 each
    rule also has a row with the suffix _family: any false label in a family. The rule uses the bound because one bound
    serves all effects; it agrees with the bootstrap-t p-value. low, high: 95 % interval over families, since heads of a
    family share their resamples, and at least as wide as that of independent heads.

    If `controlled`, the only rule is controlled: the audited rule on the difference between a head's score and its
    control's, which has the same shape and half the standard deviation. They vary independently, which is the least
    favourable pairing; effects are in standard deviations of the difference. Raises InputError as `t_test_size` does.
    """
    _check(shape, n, families=families)
    rng = _generator(seed, shape, n, stream=2 if controlled else 1)
    draw = partial(_paired, SHAPES[shape]) if controlled else SHAPES[shape]
    labels = np.stack(
        [
            _family(draw(rng, (n, HEADS)), effects, alpha, resamples, minimum, int(draws))
            for draws in rng.integers(2**32, size=families)
        ]
    )
    names = (
        {"controlled": FAMILY_RULES.index("audited")}
        if controlled
        else {rule: j for j, rule in enumerate(FAMILY_RULES)}
    )
    rows = []
    for (i, effect), (rule, j) in itertools.product(enumerate(effects), names.items()):
        found = labels[:, i, j]
        rows.append((effect, rule, found.mean(), *_interval(found), found.size))
        if effect == 0:
            families_hit = found.any(axis=1)
            interval = proportion_confint(families_hit.sum(), families, method="beta")
            rows.append((effect, f"{rule}_family", families_hit.mean(), *interval, families))
    return pd.DataFrame(rows, columns=["effect", "rule", "rate", "low", "high", "runs"])


def _paired(
    shape: Callable[..., np.ndarray], rng: np.random.Generator, size: tuple[int, ...]
) -> Float[np.ndarray, "..."]:
    """Differences between a head's score and its control's score, with mean 0 and standard deviation 1."""
    head, control = shape(rng, size), CONTROL_SD * shape(rng, size)
    return (head - control) / np.hypot(1, CONTROL_SD)


def size_table(
    sizes: Sequence[int] = (20, 100, 1000),
    effects: Sequence[float | int] = (0.0, 0.2, 0.5),
    runs: int = 20_000,
    families: int = 14,
    alpha: float = 0.05,
    resamples: int = 999,
    minimum: int = 20,
    seed: int = 0,
    shapes: Sequence[str] = tuple(SHAPES),
) -> pd.DataFrame:
    """Size (effect 0) and power of every rule: shape, n, effect, rule, rate, low, high, runs.

    The rules are those of `t_test_size` and `family_size`, on separate draws. Every shape and n has
    its own random stream, so that a row does not depend on the other rows. Raises InputError as those functions do.
    """
    for shape, n in itertools.product(shapes, sizes):
        _check(shape, n, runs=runs, families=families)
    tables = []
    for shape, n in tqdm([*itertools.product(shapes, sizes)], desc="simulate", unit="size"):
        single = t_test_size(shape, n, runs, seed, effects, alpha)
        options = (families, seed, effects, alpha, resamples, minimum)
        families_of = [family_size(shape, n, *options, controlled=each) for each in (False, True)]
        both = pd.concat([single, *families_of]).sort_values("effect", kind="stable")
        tables.append(both.assign(shape=shape, n=n))
    table = pd.concat(tables, ignore_index=True)
    return table[["shape", "n", "effect", "rule", "rate", "low", "high", "runs"]]


def least_sequences(sizes: pd.DataFrame, allowed: float = 0.1, rule: str = "audited_family") -> int | None:
    """The least simulated n from which on `rule` errs in at most a share `allowed` of the samples, whatever the shape.

    `sizes` as `size_table` gives it. The rate is that of true means of exactly tau. None if the largest n is too small.
    """
    null = sizes[(sizes["effect"] == 0) & (sizes["rule"] == rule)]
    worst = null.groupby("n")["rate"].max().sort_index(ascending=False)
    enough = worst.index[(worst <= allowed).cummin()]
    return int(enough.min()) if len(enough) else None


def resampling_limit(resamples: int = 999, alpha: float = 0.05) -> Limit:
    """How small a resampled p-value can be after BY over a family of 144 heads: see `Limit`."""
    smallest = 1 / (1 + resamples)
    best = [
        adjust(np.repeat([smallest, 1.0], [heads, HEADS - heads]), "fdr_by")[0]
        for heads in range(1, HEADS + 1)
    ]
    passing = np.flatnonzero(np.array(best) < alpha)
    heads = int(passing[0]) + 1 if len(passing) else None
    return Limit(smallest, float(best[0]), heads, int(BY_ALONE / alpha))


def _lower_bound(
    scores: Float[np.ndarray, "n column"], alpha: float, arithmetic: str
) -> Float[np.ndarray, "column"]:
    """One-sided lower bound of the mean. It is above tau exactly if the head test rejects tau; one serves all tau."""
    test = head_test(scores, 0.0, arithmetic)
    bound = test.mean - stats.t.isf(alpha, len(scores) - 1) * test.sd / np.sqrt(len(scores))
    return np.where(np.isnan(test.p), np.nan, bound)


def _family(
    scores: Float[np.ndarray, "n head"],
    effects: Sequence[float | int],
    alpha: float,
    resamples: int,
    minimum: int,
    seed: int,
) -> Bool[np.ndarray, "effect rule head"]:
    """Which heads of one family get a label from the rules in FAMILY_RULES, with scores shifted up by each effect."""
    sums, n = Clusters.of(scores), len(scores)
    lower, (mean, error, _) = lower_bound(sums, alpha, resamples, seed), sums.of_scores()
    labels = []
    for effect in effects:
        above = lower > -effect
        by_t = adjust(head_test(scores, -effect).p, "fdr_by") < alpha
        skewed = adjust(mean_above(mean + effect, error, sums.skewness(), n), "fdr_by") < alpha
        labels.append([above, by_t, above & skewed & (n >= minimum)])
    return np.array(labels)


def _interval(labels: Bool[np.ndarray, "family head"]) -> tuple[float, float]:
    """95 % interval of a label rate: the t interval over families, widened to that of independent heads."""
    within = proportion_confint(labels.sum(), labels.size, method="beta")
    between = DescrStatsW(labels.mean(axis=1)).tconfint_mean()
    return max(0.0, min(within[0], between[0])), min(1.0, max(within[1], between[1]))


def _blocks(runs: int, n: int) -> Iterator[int]:
    """How many data sets of `n` scores to draw at once, until there are `runs`."""
    most = max(1, BLOCK // n)
    yield from (min(most, runs - start) for start in range(0, runs, most))


def _generator(seed: int, shape: str, n: int, stream: int) -> np.random.Generator:
    """A separate random stream for every shape, n and simulation."""
    return np.random.default_rng([seed, [*SHAPES].index(shape), n, stream])


def _check(shape: str, n: int, runs: int = 1, families: int = 2) -> None:
    if shape not in SHAPES:
        raise InputError(f"shape {shape!r} is unknown; use one of {', '.join(SHAPES)}")
    if n < 2:
        raise InputError(f"n is {n}; a t test needs at least 2 sequences")
    if runs < 1:
        raise InputError(f"runs is {runs}; draw at least 1 data set, better 20,000")
    if families < 2:
        raise InputError(f"families is {families}; an interval over families needs at least 2")


REFERENCE = pd.read_csv(
    Path(__file__).with_name("reference_rates.csv")
)  # of an earlier simulation by other code
ROUNDING = 0.0005  # largest rounding error of the rates in REFERENCE


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of REFERENCE next to ours: shape, n, rule, reference, reference_runs, rate, difference, allowed, agrees.

    `allowed` is the joint Monte-Carlo error (half a 95 % interval of the difference) plus the rounding of the
    reference. Sizes that are not in `table` are left out.
    """
    ours = table[table["effect"] == 0]
    both = REFERENCE.merge(ours[["shape", "n", "rule", "rate", "low", "high"]])
    counts, runs = both["reference"] * both["reference_runs"], both["reference_runs"]
    low, high = proportion_confint(counts, runs, method="beta")
    half_widths = (both.pop("high") - both.pop("low")) / 2, (high - low) / 2
    both["difference"] = both["rate"] - both["reference"]
    both["allowed"] = np.hypot(*half_widths) + ROUNDING
    both["agrees"] = both["difference"].abs() <= both["allowed"]
    return both
