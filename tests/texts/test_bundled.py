"""The bundled texts: splits share no example, and the cue is planted as often as its parameters say."""

import pytest

from analysis.papers.niven2019.arguments import bundled_arguments
from analysis.texts.glue import toy_examples
from analysis.texts.tasks import TOY_TASKS


@pytest.mark.parametrize("task", TOY_TASKS)
def test_splits_share_no_example_and_labels_are_balanced(task):
    splits = {split: toy_examples(task, None, split=split) for split in ("train", "dev", "test")}
    texts = ["\n".join(example.texts) for examples in splits.values() for example in examples]
    assert len(texts) == len(set(texts))
    for examples in splits.values():
        assert sum(example.label for example in examples) == len(examples) // 2
        assert len({example.id for example in examples}) == len(examples)


def test_productivity_and_coverage_of_the_planted_cue():
    table = bundled_arguments(100, 1, "dev", productivity=0.7, coverage=0.6)
    has_cue = table[["warrant0", "warrant1"]].apply(lambda side: side.str.contains(r"\bnot\b|n't|cannot"))
    applicable = has_cue.sum(axis=1) == 1
    right = has_cue.to_numpy()[range(100), table["correctLabelW0orW1"]]
    assert (applicable.sum(), right[applicable].sum()) == (60, 42)
    assert table["correctLabelW0orW1"].sum() == 50
    # Splits share claims, reasons and warrants, but no whole argument.
    texts = ["claim", "reason", "warrant0", "warrant1"]
    others = bundled_arguments(100, 1, "train")[texts].itertuples(index=False, name=None)
    assert not {frozenset(row) for row in table[texts].to_numpy()} & set(map(frozenset, others))
