"""Examples hold one or two texts."""

from analysis.examples import Example, Relation


def test_texts_of_a_single_text_and_of_a_pair():
    assert Example("1", "One .").texts == ("One .",)
    assert Example("2", "One .", "Two .").texts == ("One .", "Two .")


def test_relations_name_their_text_and_spans():
    relation = Relation("nsubj", 1, (0, 3), (4, 8))
    assert Example("3", "One .", "Two come .", relations=(relation,)).texts[relation.text][4:8] == "come"
