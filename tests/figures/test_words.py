import pandas as pd

from analysis.figures.words import finding, learnt


def test_how_many_runs_trained_and_their_scores():
    rows = pd.DataFrame({"finetuned": [0.85, 0.9], "trained": [True, False], "metric": "accuracy"})
    text = learnt(rows.assign(constant=0.6, bag_of_words=0.7))
    assert text.startswith("1 of 2 runs trained successfully. Fine-tuning reaches 0.850 to 0.900 (accuracy)")
    assert text.endswith("a bag of words 0.700, the constant answer 0.600.")


def test_a_finding_has_a_space_before_the_percent_sign():
    assert finding("47% of 5 %").data == "**Finding.** 47 % of 5 %"
