import numpy as np
import pandas as pd
import pytest

from analysis.errors import InputError
from analysis.papers.pascual2021.roles import dependency_survival
from analysis.scores.words import Attachment
from analysis.texts.dependencies import conllu_files, read_trees


@pytest.fixture(scope="module")
def words(tmp_path_factory) -> pd.DataFrame:
    return read_trees(conllu_files([], tmp_path_factory.mktemp("trees"), 6, "dev", 0)).words


def planted(words: pd.DataFrame, right_head: int, seed: int) -> Attachment:
    """Predictions of 2 layers x 3 heads: those of head (1, right_head) are right nine times in ten, others never."""
    predicted = np.full((len(words), 2, 2, 3), -1, np.int16)
    is_right = np.random.default_rng(seed).random(len(words)) < 0.9
    predicted[is_right, 1, 0, right_head] = words["head"].to_numpy()[is_right]
    return Attachment(words, predicted, {})


def test_the_same_head_and_the_best_head(words):
    attachments = {"attention": planted(words, 1, 0), "attribution": planted(words, 2, 1)}
    table = dependency_survival(attachments, minimum=10, resamples=99).set_index("relation")
    row = table.loc["all but punct"]
    assert (row["layer"], row["head"], row["direction"]) == (1, 1, "dependent to head")
    assert row["attribution_same_head"] == 0
    assert row["attention"] == pytest.approx(0.9, abs=0.07)
    assert row["attribution"] == pytest.approx(0.9, abs=0.07)
    assert row["change"] == pytest.approx(-row["attention"])
    assert row["change_high"] < 0
    with pytest.raises(InputError, match="no relation has 100000 arcs"):
        dependency_survival(attachments, minimum=100000)
