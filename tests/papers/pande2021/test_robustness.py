"""Sentences say what the numbers are: other numbers, another sentence."""

import numpy as np
import pandas as pd

from analysis.papers.pande2021 import robustness


def test_runs_and_their_agreement():
    counts = pd.DataFrame({"task": "mrpc", "role": ["cls"] * 3 + ["sep"] * 2, "seed": [0, 1, np.nan, 0, 1],
                           "published": [60, 66, 1, 2, 2]})  # fmt: skip
    assert robustness.spread_of_runs(counts) == (
        "Over 2 fine-tuning runs the number of heads with a role differs by 3 (median over tasks and roles), and most "
        "for cls in mrpc: from 60 to 66 heads."
    )
    agreement = pd.DataFrame({"between_runs": [0.9, 0.7], "with_pretrained": [0.5, 0.7], "always": [3, 4],
                              "ever": [5, 6]})  # fmt: skip
    assert "share 80% of the heads" in robustness.shared_by_runs(agreement)
    assert "encoder 60%. 7 labels stand in every run, 11 in" in robustness.shared_by_runs(agreement)


def test_choices():
    sweep = pd.DataFrame(
        {"role": ["cls", "sep"] * 2, "tau": [3.0, 3.0, 3.5, 3.5], "jaccard": [1, 1, 0.9, 0.2]}
    )
    assert "heads of sep most (Jaccard index down to 0.20) and those of cls least (0.90)" in (
        robustness.threshold_choice(sweep, 3)
    )
    stability = pd.DataFrame(
        {
            "role": ["cls", "sep", "sep"],
            "size": [20, 20, 50],
            "agreement": [1, 0.8, 1],
            "jaccard": [0.9, 0.3, 1],
        }
    )
    assert robustness.small_samples(stability).startswith("20 sequences give 90% of the heads")
    assert "share only 60%" in robustness.small_samples(stability)
    assert "sep is least stable (30%)" in robustness.small_samples(stability)


def test_labelled_controls():
    controls = pd.DataFrame(
        {
            "control": ["fine-tuned"] * 2 + ["shuffled"] * 2,
            "role": ["cls", "local"] * 2,
            "published": [6, 5, 6, 0],
        }
    )
    assert robustness.labelled_controls(controls) == (
        "A control has at least as many labels as the encoder for cls (shuffled: 6 heads, fine-tuned: 6): "
        "these labels prove nothing alone."
    )
    assert robustness.labelled_controls(controls.assign(published=[6, 5, 1, 0])).startswith("No control")


def test_simulations():
    rates = pd.DataFrame(
        [("normal", 20, 0.0, "t", 0.05), ("left_skewed", 100, 0.0, "t", 0.17), ("normal", 20, 0.0, "audited", 0.01),
         ("normal", 20, 0.5, "t", 0.9), ("normal", 20, 0.0, "audited_family", 0.8)],
        columns=["shape", "n", "effect", "rule", "rate"],
    )  # fmt: skip
    assert (
        "up to 17.0% of the heads wrongly (left-skewed scores, n = 100); the audited rule at most 1.0%"
        in (robustness.false_labels(rates, 0.05))
    )
    power = pd.DataFrame({"effect": [0.2, 0.2, 0.5], "correction": ["none", "BY", "BY"], "n": [156, 1555, 9]})
    assert "needs 156 sequences (none) and 1,555 sequences (BY)" in robustness.needed_sequences(power)
