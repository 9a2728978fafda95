import pandas as pd

from analysis.figures.training import learnt, training_curves


def test_how_many_runs_trained_and_their_course():
    rows = pd.DataFrame({"finetuned": [0.85, 0.9], "trained": [True, False]})
    rows = rows.assign(metric="accuracy", constant=0.6, bag_of_words=0.7)
    assert learnt(rows) == (
        "1 of 2 runs trained successfully. Fine-tuning reaches 0.850 to 0.900 (accuracy), a bag of words 0.700, the "
        "constant answer 0.600."
    )
    history = pd.DataFrame({"seed": [0, 0, 1, 1], "epoch": [1, 2] * 2, "value": [0.6, 0.8, 0.5, 0.7]})
    [panel] = training_curves(history.assign(measure="accuracy")).axes
    assert [line.get_xydata().tolist() for line in panel.lines] == [
        [[1, 0.6], [2, 0.8]],
        [[1, 0.5], [2, 0.7]],
    ]
