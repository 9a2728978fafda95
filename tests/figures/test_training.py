import pandas as pd
import pytest
from drawing import unnamed

from analysis.figures.training import learnt, training_curves


@pytest.fixture
def history() -> pd.DataFrame:
    rows = [
        (seed, epoch, measure, seed + epoch / 10)
        for seed in range(7)
        for epoch in (1.0, 2.0)
        for measure in ("training loss", "accuracy")
    ]
    return pd.DataFrame(rows, columns=["seed", "epoch", "measure", "value"])


def test_a_panel_per_measure_and_a_line_per_run(history):
    figure = training_curves(history)
    assert [axes.get_ylabel() for axes in figure.axes] == ["training loss", "accuracy"]
    for axes in figure.axes:
        drawn = [(line.get_label(), list(line.get_ydata())) for line in axes.lines]
        assert drawn == [(f"seed {seed}", [seed + 0.1, seed + 0.2]) for seed in range(7)]
    assert len({(line.get_color(), line.get_marker()) for line in figure.axes[0].lines[:5]}) == 5
    assert unnamed(figure) == []


def test_whether_the_task_was_learnt():
    rows = pd.DataFrame(
        {"metric": "accuracy", "constant": 0.6, "bag_of_words": 0.7, "finetuned": [0.85, 0.9], "dev": 400}
    )
    assert learnt(rows) == (
        "Fine-tuning reaches 0.850 to 0.900 (accuracy, 2 runs), a bag of words 0.700, the constant answer "
        "0.600. That is above both baselines by more than the margin of 0.050."
    )
    assert "not above both baselines by more than the margin of" in learnt(rows.assign(bag_of_words=0.84))
