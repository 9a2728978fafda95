from analysis.texts.examples import Example, clusters


def test_examples_that_share_a_text_form_a_cluster():
    """Directly, through a third, on either side, whatever the case."""
    texts = [("a", "b"), ("c", "d"), ("B", "c"), ("e", None), ("f", "e"), ("g", "h")]
    names = clusters([Example(str(i), *pair) for i, pair in enumerate(texts)])
    assert names == list("000335")
