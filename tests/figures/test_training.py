import pandas as pd

from analysis.figures.training import learnt


def test_whether_the_task_was_learnt():
    rows = pd.DataFrame(
        {
            "metric": "accuracy",
            "constant": 0.6,
            "bag_of_words": 0.7,
            "finetuned": [0.85, 0.9],
            "trained": [True, False],
        }
    )
    assert learnt(rows) == (
        "1 of 2 runs trained successfully. Fine-tuning reaches 0.850 to 0.900 (accuracy), a bag of words 0.700, the "
        "constant answer 0.600."
    )
