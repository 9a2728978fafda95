"""How far a label can be trusted: size and power of each rule, other thresholds, fewer sequences, and controls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import torch
import xarray as xr
from jaxtyping import Bool, Float
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import DescrStatsW
from torch import Tensor
from tqdm import tqdm

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.scores.maps import Source
from analysis.statistics.controls import controlled_table
from analysis.statistics.resampling import Clusters, lower_bound
from analysis.statistics.roles import HEAD
from analysis.statistics.significance import (
    DEFAULT_RULE,
    Rule,
    adjust,
    head_test,
    mean_above,
    published_table,
)

# --- size and power: simulated heads whose mean score is known --------------------------------------------

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
# Divisors of the level of one test: no correction; BY for the smallest p-value of a family; Bonferroni for 144 heads of
# 4 tasks and 2 states.
DIVISORS = {
    "no correction": 1.0,
    "BY, one head of 144": HEADS * float(np.sum(1 / np.arange(1, HEADS + 1))),
    "Bonferroni, 1,152 tests": 1152.0,
}


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
    """The table `calibration` (docs/tables.yaml): size (effect 0) and power of every rule.

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


def _labels(scores: xr.DataArray, rule: Rule) -> pd.DataFrame:
    """Published labels: a row per role, with a column per head; NaN where a head cannot be tested."""
    table = published_table(scores, rule)
    return table.pivot(index="role", columns=HEAD, values="assigned").astype("Float64").loc[
        [*dict.fromkeys(table["role"])]
    ]  # fmt: skip


def _compared(labels: pd.DataFrame, default: pd.DataFrame) -> pd.DataFrame:
    """Labels of each role compared with the default ones; roles without a testable head by default are left out."""
    default = default[default.notna().any(axis=1)]
    first, second = (table.reindex(default.index).fillna(0) > 0 for table in (labels, default))
    both, either = (first & second).sum(axis=1), (first | second).sum(axis=1)
    columns = {
        "testable": default.notna().sum(axis=1),
        "heads": first.sum(axis=1),
        "heads_full": second.sum(axis=1),
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

    return Source(f"offset {step:+d}", read)


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
