import pytest

from analysis.figures.words import counted, finding, in_words, listed, signed


@pytest.mark.parametrize(
    ("names", "text"), [([], "none"), (["a"], "a"), ("ab", "a and b"), ([1, "b", "c"], "1, b and c")]
)
def test_lists_read_as_in_a_sentence(names, text):
    assert listed(names) == text


def test_numbers_in_words_and_with_their_noun():
    assert [in_words(number) for number in (0, 3, 10, 11, 1200)] == ["none", "three", "ten", "11", "1,200"]
    assert [counted(number, "head") for number in (0, 1, 2, 1200)] == [
        "no heads", "1 head", "2 heads", "1,200 heads"
    ]  # fmt: skip
    assert (signed(1.25), signed(-0.24), signed(0)) == ("+1.2", "−0.2", "+0.0")


def test_a_finding_is_shown_as_markdown():
    assert finding("Layer 3 changes.")._repr_markdown_() == "**Finding.** Layer 3 changes."
