"""An earlier simulation of the tests with other code, compared with ours.

REFERENCE holds its rates (November 2026, scipy 1.17.1, rounded to 0.1 %): the t test on 40,000 data sets, the
bootstrap-t on 1,500.
"""

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

REFERENCE = pd.DataFrame(
    [
        ("symmetric", 20, "t", 0.050, 40_000),
        ("symmetric", 20, "t_published", 0.055, 40_000),
        ("symmetric", 100, "t", 0.049, 40_000),
        ("symmetric", 1000, "t", 0.051, 40_000),
        ("right_skewed", 20, "t", 0.008, 40_000),
        ("right_skewed", 20, "t_published", 0.009, 40_000),
        ("right_skewed", 100, "t", 0.017, 40_000),
        ("right_skewed", 1000, "t", 0.034, 40_000),
        ("left_skewed", 20, "t", 0.172, 40_000),
        ("left_skewed", 20, "t_published", 0.178, 40_000),
        ("left_skewed", 100, "t", 0.112, 40_000),
        ("left_skewed", 1000, "t", 0.072, 40_000),
        ("zero_inflated", 20, "t", 0.005, 40_000),
        ("zero_inflated", 20, "t_published", 0.007, 40_000),
        ("zero_inflated", 100, "t", 0.018, 40_000),
        ("zero_inflated", 1000, "t", 0.036, 40_000),
        ("right_skewed", 20, "bootstrap_t", 0.029, 1_500),
        ("right_skewed", 100, "bootstrap_t", 0.044, 1_500),
        ("left_skewed", 20, "bootstrap_t", 0.105, 1_500),
        ("left_skewed", 100, "bootstrap_t", 0.073, 1_500),
    ],
    columns=["shape", "n", "rule", "reference", "reference_runs"],
)
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
