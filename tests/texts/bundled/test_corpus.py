"""The generated corpus: deterministic, balanced, with complete gold trees, and not solvable from words alone."""

import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from analysis.errors import InputError
from analysis.texts.bundled import corpus
from analysis.texts.bundled.corpus import DRAFTS, generate, labelled_drafts
from analysis.texts.bundled.lexicon import read

TASKS = tuple(DRAFTS)
PAIR_TASKS = ("mrpc", "qqp", "qnli")


@cache
def drawn(task, split):
    """Drafts shared by the tests: 500 to train on, 150 of another split."""
    return [*labelled_drafts(task, {"train": 500, "dev": 150, "test": 40}[split], 0, split)]


@cache
def examples(task, split):
    """The examples of `drawn`."""
    return [corpus.example(str(index), draft) for index, draft in enumerate(drawn(task, split))]


def texts(examples):
    return {"\n".join(sorted(text.lower() for text in example.texts)) for example in examples}


def sentences(task, n=100):
    return [sentence for draft in drawn(task, "train")[:n] for sentence in draft.sentences]


def test_same_arguments_same_examples_in_any_process():
    code = "from analysis.texts.bundled import generate\n"
    code += f"for task in {TASKS}: print(repr(generate(task, 6, 3, 'dev')))"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == [repr(generate(task, 6, 3, "dev")) for task in TASKS]


@pytest.mark.parametrize("task", TASKS)
def test_seeds_differ(task):
    assert generate(task, 5, 0) != generate(task, 5, 1)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("n", [0, 1, 20, 21])
def test_labels_are_balanced(task, n):
    labels = [example.label for example in generate(task, n, 0)]
    assert len(labels) == n
    assert abs(labels.count(0) - labels.count(1)) == n % 2


@pytest.mark.parametrize("task", TASKS)
def test_splits_share_no_texts_and_hold_no_duplicates(task):
    found = {split: drawn(task, split) for split in ("train", "dev", "test")}
    distinct = {split: texts(examples(task, split)) for split in found}
    assert all(len(distinct[split]) == len(found[split]) for split in found)
    assert not distinct["train"] & distinct["dev"]
    assert not distinct["train"] & distinct["test"]
    assert not distinct["dev"] & distinct["test"]


def test_ids_and_texts():
    examples = generate("mrpc", 8, 0)
    assert [example.id[:-9] for example in examples] == [f"mrpc-train-{index:04d}" for index in range(8)]
    assert all(example.text_b for example in examples)
    assert all(example.text_b is None for example in generate("sst-2", 8, 0))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("cola", 3, 0), "cola"), (("mrpc", 3, 0, "all"), "all"), (("mrpc", -1, 0), "-1")],
)
def test_wrong_arguments_are_named(arguments, named):
    with pytest.raises(InputError, match=named) as error:
        generate(*arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("task", TASKS)
def test_trees_have_one_root_and_no_cycle(task):
    for sentence in sentences(task):
        heads = {index: word.head for index, word in enumerate(sentence.words, start=1)}
        assert sum(head == 0 for head in heads.values()) == 1
        assert sum(word.label == "root" for word in sentence.words) == 1
        for start in heads:
            path, position = set(), start
            while position:
                assert position not in path, sentence.text
                path.add(position)
                position = heads[position]


@pytest.mark.parametrize("task", TASKS)
def test_spans_spell_the_words_and_cover_the_text(task):
    for sentence in sentences(task):
        assert [sentence.text[slice(*word.span)] for word in sentence.words] == [
            word.form for word in sentence.words
        ]
        covered = "".join(word.form for word in sentence.words)
        assert covered == sentence.text.replace(" ", "")
        assert sentence.text[0] == sentence.text[0].upper()
        assert "  " not in sentence.text


@pytest.mark.parametrize("task", TASKS)
def test_every_word_but_the_root_has_one_relation(task):
    for draft, example in zip(drawn(task, "dev"), examples(task, "dev"), strict=True):
        for side, sentence in enumerate(draft.sentences):
            dependents = [relation.dependent for relation in example.relations if relation.text == side]
            assert sorted(dependents) == [word.span for word in sentence.words if word.head]


@pytest.mark.parametrize("task", TASKS)
def test_the_papers_relations_are_frequent(task):
    found = examples(task, "train")[:200]
    for label in ("nsubj", "dobj", "amod", "advmod"):
        share = np.mean([any(relation.label == label for relation in example.relations) for example in found])
        assert share >= 0.6, label
    assert not any(relation.label == "obj" for example in found for relation in example.relations)


@pytest.mark.parametrize("task", TASKS)
def test_part_of_speech_suits_the_relation(task):
    allowed = {
        "amod": {"ADJ"},
        "det": {"DET"},
        "aux": {"AUX"},
        "cop": {"AUX"},
        "punct": {"PUNCT"},
        "case": {"ADP", "PART", "VERB"},
        "cc": {"CCONJ"},
        "mark": {"SCONJ", "PART"},
        "nummod": {"NUM"},
        "advmod": {"ADV", "PART", "ADJ"},
        "nsubj": {"NOUN", "PROPN", "PRON"},
        "nmod:poss": {"PRON", "PROPN"},
    }
    for sentence in sentences(task):
        for word in sentence.words:
            assert word.upos in allowed.get(word.label, {word.upos}), (word, sentence.text)


def test_lengths_are_spread():
    for task in TASKS:
        lengths = [len(sentence.words) for sentence in sentences(task, 200)]
        assert min(lengths) >= 6
        assert max(lengths) <= 41
        assert np.percentile(lengths, 90) - np.percentile(lengths, 10) >= 8


def test_over_1500_lemmas_are_reached():
    words = (word for task in TASKS for sentence in sentences(task, 500) for word in sentence.words)
    assert len({word.lemma for word in words if word.upos != "PROPN"}) > 1500


def test_over_60_frames():
    frames = read("frames")
    meanings = [*frames["events"], *frames["activities"]]
    wordings = [*frames["clauses"]["plain"], *frames["clauses"]["fronted"], *frames["reports"]]
    wordings += [
        frame
        for kind in ("questions", "intents", "reviews")
        for listed in frames[kind].values()
        for frame in listed
    ]
    assert len(set(wordings)) == len(wordings)
    assert len(wordings) > 60
    assert len(meanings) > 60


def words_by_side(example):
    return " ".join(
        f"{side}_{word}" for side, text in enumerate(example.texts) for word in text.lower().split()
    )


def overlap(example):
    first, second = (set(text.lower().rstrip(".?").split()) for text in example.texts)
    return [
        len(first & second) / len(first | second),
        len(first) - len(second),
        abs(len(first) - len(second)),
    ]


def accuracy(task, vectorise):
    train, dev = examples(task, "train"), examples(task, "dev")
    model = LogisticRegression(max_iter=1000).fit(vectorise(train), [example.label for example in train])
    return model.score(vectorise(dev), [example.label for example in dev])


@pytest.mark.parametrize(
    ("task", "ceiling"), [("mrpc", 0.75), ("qqp", 0.75), ("qnli", 0.75), ("sst-2", 0.85)]
)
def test_labels_cannot_be_read_off_words(task, ceiling):
    counts = CountVectorizer(token_pattern=r"\S+").fit(map(words_by_side, examples(task, "train")))
    assert accuracy(task, lambda examples: counts.transform(map(words_by_side, examples))) < ceiling


@pytest.mark.parametrize("task", PAIR_TASKS)
def test_labels_cannot_be_read_off_overlap(task):
    assert accuracy(task, lambda examples: np.array([overlap(example) for example in examples])) < 0.75
