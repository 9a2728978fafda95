"""docs/tables.yaml, the dictionary of results, names the figures that notebooks save."""

from consistency import MEANINGS
from studies import saved

from analysis.study.profiles import notebook_names


def test_figures_are_those_that_notebooks_save():
    names = {name for notebook in notebook_names() for part in saved(notebook, "figure") for name in part}
    assert names == {*MEANINGS["figures"]}
    assert len(names - {"F0-training-*"}) <= 76  # git ignores the figures of training
