import numpy as np
import pandas as pd
import pytest

from analysis.encoders.models import load_encoder
from analysis.errors import InputError
from analysis.papers.clark2019 import attachment as module
from analysis.papers.clark2019 import coreference
from analysis.papers.clark2019.attachment import best_heads, dependency_table
from analysis.scores import words as words_module
from analysis.scores.words import (
    ARC_DIRECTIONS,
    Attachment,
    attach,
    documents_of,
    halves,
    split_words,
    word_maps,
)
from analysis.statistics.layers import cross_fitted
from analysis.texts.chains import read_chains
from analysis.texts.dependencies import OFFSETS, arcs, fixed_offset

LAYERS, HEADS = 2, 3


def planted(words: pd.DataFrame, layer: int, direction: int, head: int) -> Attachment:
    rng = np.random.default_rng(0)
    predicted = rng.integers(1, 4, (len(words), LAYERS, 2, HEADS)).astype(np.int16)
    predicted[:, layer, direction, head] = words["head"]
    return Attachment(words, predicted, {})


def test_a_planted_head_is_found_and_always_right(words):
    attachment = planted(words, 1, 0, 2)
    scored = arcs(words, possessive=False)
    scored = scored[~scored["relation"].isin(["prep", "pobj"])]  # their heads are not those of the words
    table = dependency_table(attachment, scored, minimum=20, resamples=99)
    assert (table[["layer", "head", "accuracy"]] == [1, 2, 1]).all(axis=None)
    assert (table["direction"] == ARC_DIRECTIONS[0]).all()
    assert table["low"].isna().all()
    assert table["gain"].tolist() == pytest.approx((1 - table["offset_accuracy"]).tolist())
    assert table["gain"].between(table["gain_low"], table["gain_high"]).all()
    assert (best_heads(attachment, scored, 20)["accuracy"] == 1).all()
    least = (1 / np.arange(1, len(table) + 1)).sum() / 10_000  # of 9,999 flips, after Benjamini and Yekutieli
    assert table["p_adjusted"].between(least * (1 - 1e-9), 1).all()
    with pytest.raises(InputError, match="no relation has 100000 arcs"):
        dependency_table(attachment, scored, minimum=100000)


def test_predictions_against_one_sentence_at_a_time(tiny, words):
    some = words[words["sentence"] < 12]
    attachment = attach(tiny, some, budget=200, progress=False)
    assert attachment.words.equals(some)
    for number, sentence in some.groupby("sentence"):
        [pieces] = split_words(tiny.tokenizer, [sentence["form"].tolist()]).kept
        maps = word_maps(tiny, pieces)[:, :, 1:-1, 1:-1]
        for direction, attention in enumerate((maps, maps.swapaxes(2, 3))):
            without_itself = np.where(np.eye(len(sentence)), 0, attention)
            predicted = attachment.predicted[some["sentence"] == number, :, direction]
            assert (predicted == np.moveaxis(without_itself.argmax(-1) + 1, -1, 0)).all()


def test_the_scored_half_does_not_choose(words):
    """A head that is right in one half of the documents alone is chosen there and scored in the other half."""
    scored = arcs(words)
    documents = documents_of(words, scored)
    first_half = halves(documents, 0)
    assert documents.nunique() == 4
    assert {*documents[first_half]}.isdisjoint(documents[~first_half])
    alone = words.assign(document="one")  # halves of sentences
    assert documents_of(alone, scored).tolist() == scored["sentence"].tolist()
    attachment = planted(words, 1, 0, 2)
    held_out = ~words["sentence"].isin(scored["sentence"][first_half]).to_numpy()
    attachment.predicted[held_out] = -2  # no head is right there, so the first head is chosen
    table = dependency_table(attachment, scored, minimum=20, resamples=99).set_index("relation")
    first = words_module.right(attachment, scored)[:, 0, 0, 0] & first_half
    for relation, accuracy in table["accuracy"].items():
        assert accuracy == pytest.approx(first[scored["relation"] == relation].mean())
    assert table.loc["det", ["layer", "head"]].tolist() == [1, 2]  # the best of all sentences
    offsets = sorted(OFFSETS, reverse=True)
    guesses = np.stack([fixed_offset(scored, offset) == scored["head"] for offset in offsets], axis=1)
    for relation, accuracy in table["offset_accuracy"].items():
        rows = (scored["relation"] == relation).to_numpy()
        assert accuracy == cross_fitted(guesses[rows], first_half[rows]).mean()


def test_cross_fitting_against_a_loop():
    rng = np.random.default_rng(1)
    correct, on_other_map = rng.random((2, 60, 2, 3, 2)) < 0.4
    first_half = rng.random(60) < 0.5
    result, elsewhere = cross_fitted(correct, first_half), cross_fitted(correct, first_half, on_other_map)
    assert (cross_fitted(correct) == cross_fitted(correct, np.arange(60) % 2 == 0)).all()
    for number in range(60):
        other = correct[first_half != first_half[number]].mean(axis=0)
        best = max(np.ndindex(*other.shape), key=lambda place: (other[place], [-index for index in place]))
        assert result[number] == correct[(number, *best)]
        assert elsewhere[number] == on_other_map[(number, *best)]


def test_first_hit_and_first_miss_of_each_relation(tiny, words, monkeypatch):
    monkeypatch.setattr(module, "LENGTHS", (4, 14))
    scored, attachment = arcs(words), attach(tiny, words, progress=False)
    table = dependency_table(attachment, scored, minimum=20, resamples=99).head(3)
    forms = words.groupby("sentence")["form"].agg(list)
    maps = {
        number: word_maps(tiny, split_words(tiny.tokenizer, [sentence]).kept[0])[..., 1:-1, 1:-1]
        for number, sentence in forms.items()
    }
    examples = iter(module.head_examples(tiny, attachment, scored, table))
    for row in table.itertuples():
        rows = scored[(scored["relation"] == row.relation) & (scored["head"] > 0)]
        step, first = (1 if row.direction == ARC_DIRECTIONS[0] else -1), {}
        for arc in rows[rows["length"].between(4, 14)].itertuples():
            others = maps[arc.sentence][row.layer, row.head] * (1 - np.eye(arc.length))
            by_word = others if step == 1 else others.T
            first.setdefault(bool(by_word[arc.word].argmax() == arc.head - 1), (arc, by_word))
        for hit, (arc, by_word) in sorted(first.items(), reverse=True):
            example = next(examples)
            outcome, arrow = "hit" if hit else "miss", module.ARROWS[row.direction]
            assert example.title == f"{row.relation} {row.layer}-{row.head}: {outcome}\n{arrow}"
            assert example.forms == ["[CLS]", *forms[arc.sentence], "[SEP]"]
            assert example.arc == (arc.word + 1, arc.head)[::step]
            np.testing.assert_allclose(example.attention.sum(1), 1, rtol=1e-5)
            between_words = example.attention[1:-1, 1:-1] * (1 - np.eye(arc.length))
            np.testing.assert_allclose(between_words if step == 1 else between_words.T, by_word, rtol=1e-5)
    assert next(examples, None) is None


def test_a_hit_and_a_miss_of_each_head_for_antecedents(bundled, monkeypatch):
    monkeypatch.setattr(module, "DISTANCES", (1, 30))
    encoder = load_encoder("minilm")  # heads with random weights hit nothing
    texts = coreference.beginnings(encoder, read_chains([bundled]).documents)
    examples = module.coreference_examples(encoder, texts, 2, 9)
    titles = [example.title.splitlines()[0] for example in examples]
    assert titles == ["coreference 2-9: hit", "coreference 2-9: miss"]
    for example in examples:
        mention, antecedent = example.arc
        assert 0 <= antecedent < mention < len(example.forms) <= 35
        if "hit" in example.title:  # no word of the excerpt but the mention itself gets more
            others = np.delete(example.attention[mention], [0, mention, len(example.forms) - 1])
            assert example.attention[mention, antecedent] >= others.max()


def test_linguistic_heads_beat_the_offset_or_find_antecedents():
    dependencies = pd.DataFrame({
        "relation": ["obj", "det", "amod", "case"], "layer": [0, 0, 1, 1], "head": [1, 1, 0, 0],
        "gain": [0.3, 0.2, -0.1, 0.1], "p_adjusted": [0.01, 0.01, 0.01, 0.5],
    })  # fmt: skip
    readings = pd.DataFrame({"layer": [2], "head": [3]}, dtype="Int64")
    expected = [[0, 1, "obj, det"], [2, 3, "coreference"]]
    assert module.linguistic_heads(dependencies, readings).to_numpy().tolist() == expected
