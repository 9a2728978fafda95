"""The bundled corpus: splits share nothing, samples nest, the cue is where it is asked for."""

import pytest

from analysis.texts.bundled import SPLITS, bundled_arguments, toy_examples
from analysis.texts.tasks import TOY_TASKS


@pytest.mark.parametrize("task", TOY_TASKS)
def test_splits_share_no_text_and_labels_are_balanced(task):
    splits = {split: toy_examples(task, None, split=split) for split in SPLITS}
    texts = [text for examples in splits.values() for text in {"\n".join(each.texts) for each in examples}]
    assert len(texts) == len(set(texts)) == sum(map(len, splits.values()))
    for examples in splits.values():
        assert sum(each.label for each in examples) == len(examples) // 2
        assert len({each.id for each in examples}) == len(examples)


def test_a_larger_sample_contains_the_smaller_and_keeps_the_order():
    small, large = (toy_examples("toy-sst-2", n, seed=3) for n in (20, 50))
    assert {each.id for each in small} < {each.id for each in large}
    assert [each.id for each in large] == sorted(each.id for each in large)
    assert small != toy_examples("toy-sst-2", 20, seed=4)


def test_the_cue_is_planted_as_often_as_asked():
    table = bundled_arguments(100, 1, "dev", productivity=0.7, coverage=0.6)
    has = table[["warrant0", "warrant1"]].apply(lambda side: side.str.contains(r"\bnot\b|n't|cannot"))
    one = has.sum(axis=1) == 1
    assert one.sum() == 60
    right = has.to_numpy()[range(100), table["correctLabelW0orW1"]]
    assert right[one].sum() == 42
    assert table["correctLabelW0orW1"].sum() == 50
    assert not set(table["claim"] + table["reason"]) & set(
        (other := bundled_arguments(100, 1, "train"))["claim"] + other["reason"] + other["warrant0"]
    )
