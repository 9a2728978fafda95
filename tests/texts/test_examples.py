"""Examples hold one or two texts; those that share a text form clusters."""

from analysis.texts.examples import Example, as_sequences, clusters, shared_examples


def test_examples_that_share_a_text_form_a_cluster():
    """Directly, through a third, on either side, whatever the case."""
    texts = [("a", "b"), ("c", "d"), ("B", "c"), ("e", None), ("f", "e"), ("g", "h")]
    names = clusters([Example(str(i), *pair) for i, pair in enumerate(texts)])
    assert names == list("000335")


def test_choices_are_sequences_with_the_shared_text_before_each():
    example = Example("q", "It rains .", label=1, choices=("Go .", "Stay .", "Sing ."))
    expected = [Example(f"q#{i}", "It rains .", text) for i, text in enumerate(("Go .", "Stay .", "Sing ."))]
    assert as_sequences([Example("a", "One .", "Two .", 1), example]) == [
        Example("a", "One .", "Two .", 1),
        *expected,
    ]
    assert example.texts == ("It rains .", "Go .", "Stay .", "Sing .")
    assert as_sequences([Example("w", "", choices=("Go .", "Stay ."))])[1] == Example("w#1", "Stay .")


def test_dev_examples_that_stand_in_train_are_counted_in_either_order():
    train = [Example("t0", "a", "b"), Example("t1", "c"), Example("t2", "e", "e")]
    dev = [("B", "a"), ("a", "b"), ("a", "c"), ("c", None), ("b", None), ("e", "E"), ("e", None)]
    assert shared_examples(train, [Example(str(row), *texts) for row, texts in enumerate(dev)]) == 4
