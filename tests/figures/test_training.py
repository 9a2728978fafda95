import pandas as pd

from analysis.figures.training import learnt


def test_whether_the_task_was_learnt():
    rows = pd.DataFrame(
        {"metric": "accuracy", "constant": 0.6, "bag_of_words": 0.7, "finetuned": [0.85, 0.9], "dev": 400}
    )
    assert learnt(rows) == (
        "Fine-tuning reaches 0.850 to 0.900 (accuracy, 2 runs), a bag of words 0.700, the constant answer "
        "0.600. That is above both baselines by more than the margin of 0.050."
    )
    assert "not above both baselines by more than the margin of" in learnt(rows.assign(bag_of_words=0.84))
