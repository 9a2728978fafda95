from analysis.texts.examples import Example, clusters, shared_examples


def test_examples_that_share_a_text_form_a_cluster():
    """Directly, through a third, on either side, whatever the case."""
    texts = [("a", "b"), ("c", "d"), ("B", "c"), ("e", None), ("f", "e"), ("g", "h")]
    names = clusters([Example(str(i), *pair) for i, pair in enumerate(texts)])
    assert names == list("000335")


def test_dev_examples_that_stand_in_train_are_counted_in_either_order():
    train = [Example("t0", "a", "b"), Example("t1", "c"), Example("t2", "e", "e")]
    dev = [("B", "a"), ("a", "b"), ("a", "c"), ("c", None), ("b", None), ("e", "E"), ("e", None)]
    assert shared_examples(train, [Example(str(row), *texts) for row, texts in enumerate(dev)]) == 4
