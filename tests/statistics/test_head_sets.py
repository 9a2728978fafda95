from studies import error_of

from analysis.statistics.head_sets import random_sets


def test_random_sets_are_any_other_sets_of_as_many_heads_in_every_layer():
    heads = [(2, 3), (0, 1), (2, 0)]
    samples = random_sets(heads, 12, 200)
    assert len(samples) == len(set(samples)) == 200
    assert all([layer for layer, _ in item] == [0, 2, 2] for item in samples)
    assert (0, 1) in {item[0] for item in samples}  # they may hold some of the heads, but not all
    assert tuple(sorted(heads)) not in random_sets(heads, 4, 99)
    assert len(random_sets(heads, 4, 99)) == 4 * 6 - 1
    assert samples != random_sets(heads, 12, 200, seed=1)
    assert random_sets([(0, head) for head in range(9)], 12, 5) == random_sets([], 12, 5) == []
    assert error_of(random_sets, heads, 1, 1) == "a set names 2 heads of one layer: a layer has 1"
