"""Choosing an antecedent: rules and attention heads on hand-made documents, and heads on bundled ones."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from treebanks import conllu, write

from analysis.papers.clark2019.coreference import (
    AMONG,
    CANDIDATES,
    EVERYTHING,
    HELD_OUT,
    NOTHING,
    SAME_DATA,
    SYSTEMS,
    Texts,
    answers,
    antecedent_table,
    attended,
    attended_antecedents,
    choices,
    coreference_table,
    either_side,
    fit,
    held_out_systems,
    preceding,
)
from analysis.papers.clark2019.published import BOTH_HALVES
from analysis.scores.attachment import halves
from analysis.scores.words import word_maps
from analysis.texts.chains import Document, read_chains, truncated

# Mentions by row: 0 Ann (chain 1), 1 the cats (2), 2 a dog (3), 3 the cats (2), 4 her (1), 5 Ann (1), 6 it (3).
STORY = """
Ann  PROPN NNP 2 nsubj (1)
fed  VERB VBD 0 root
the  DET DT 4 det (2
cats NOUN NNS 2 obj 2)
and  CCONJ CC 7 cc
a    DET DT 7 det (3
dog  NOUN NN 4 conj 3)
;    PUNCT : 2 punct
the  DET DT 10 det (2
cats NOUN NNS 11 nsubj 2)
saw  VERB VBD 2 parataxis
her  PRON PRP 11 obj (1)
,    PUNCT , 15 punct
Ann  PROPN NNP 15 nsubj (1)
left VERB VBD 2 parataxis
it   PRON PRP 15 obj (3)
"""
ANAPHORS = [3, 4, 5, 6]


def read(folder: Path, *sentences: str) -> Document:
    """The one document of hand-made sentences."""
    (only,) = read_chains([write(folder, conllu(*sentences))]).documents
    return only


def test_candidates_sort_before_and_have_another_head(tmp_path: Path):
    """`Ann 's cat`: the mention `Ann` sorts before the whole, and `cat` alone has the head of the whole."""
    text = read(tmp_path, "Ann X NNP 3 nmod:poss (1)(2\n's X POS 1 case\ncat X NN 0 root (3)2)")
    assert text.mentions["string"].tolist() == ["ann", "ann 's cat", "cat"]
    assert preceding(text).tolist() == [[False] * 3, [True, False, False], [True, False, False]]
    assert either_side(text).tolist() == [[False, True, True], [True, False, False], [True, False, False]]


@pytest.mark.parametrize(
    ("system", "chosen"),
    [
        ("nearest", [2, 3, 4, 5]),
        ("nearest, either side", [4, 3, 4, 5]),
        ("head match", [1, NOTHING, 0, NOTHING]),
        ("head match, else nearest", [1, 3, 0, 5]),
        ("rule-based", [1, 2, 0, 5]),
    ],
)
def test_choices(tmp_path: Path, system: str, chosen: list[int]):
    assert choices(system, read(tmp_path, STORY))[ANAPHORS].tolist() == chosen


def test_the_string_sieve_comes_before_the_head_sieve(tmp_path: Path):
    text = read(
        tmp_path,
        "red ADJ JJ 2 amod (1\ncats NOUN NNS 0 root 1)\nblue ADJ JJ 4 amod (2\ncats NOUN NNS 2 dep 2)\n"
        "Red ADJ JJ 6 amod (1\nCats NOUN NNS 2 dep 1)",
    )
    assert choices("rule-based", text)[2] == 0
    assert choices("head match", text)[2] == 1


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        ("he PRON PRP", "him PRON PRP", True),
        ("he PRON PRP", "her PRON PRP", False),
        ("Ann PROPN NNP", "her PRON PRP", True),
        ("cats NOUN NNS", "it PRON PRP", False),
        ("cats NOUN NNS", "they PRON PRP", True),
        ("you PRON PRP", "yourselves PRON PRP", False),
        ("I PRON PRP", "we PRON PRP", False),
        ("I PRON PRP", "he PRON PRP", False),
    ],
)
def test_the_feature_sieve(tmp_path: Path, first: str, second: str, agree: bool):
    """A mention between the two is nearer but never agrees with the second: it is plural and first person."""
    text = read(tmp_path, f"{first} 0 root (1)\nours PRON PRP 1 dep (2)\n{second} 1 dep (1)")
    text.mentions.loc[1, "number"] = "another"
    assert choices("rule-based", text)[2] == (0 if agree else 1)


def test_answers_and_table(tmp_path: Path):
    right = answers([read(tmp_path, STORY)])
    assert right["kind"].tolist() == ["nominal", "pronoun", "proper", "pronoun"]
    assert right["start"].tolist() == [8, 11, 13, 15]
    assert right["nearest"].tolist() == [False, False, True, False]
    assert right["head match"].tolist() == [True, False, True, False]
    table = coreference_table(right).set_index("system")
    assert table.loc["head match"].to_dict() == {"all": 0.5, "pronoun": 0, "proper": 1, "nominal": 1, "n": 4}


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_a_planted_head_is_always_right(tmp_path: Path, candidates: str):
    text = read(tmp_path, STORY)
    attention = np.zeros((2, 3, len(text.words), len(text.words)), dtype=np.float32)
    for mention, antecedent in zip(ANAPHORS, (1, 0, 4, 2), strict=True):
        attention[1, 2, text.mentions["head"][mention], text.mentions["head"][antecedent]] = 0.9
    right = attended(attention, text, candidates)
    assert right.shape == (2, 3, 4)
    assert right[1, 2].all()


def test_readings_differ_in_the_words_they_look_at(tmp_path: Path):
    text = read(tmp_path, STORY)
    heads = text.mentions["head"].to_numpy()
    attention = np.zeros((len(text.words), len(text.words)))
    attention[heads, heads] = 0.5  # the mention itself: never looked at
    attention[heads, 10] = 0.4  # a verb
    attention[heads[3], heads[5]] = 0.3  # a later mention, which is no candidate
    attention[heads[3], heads[1]] = 0.2  # the antecedent
    assert not attended(attention, text, "all_words")[0]
    assert attended(attention, text, "preceding_mention_heads")[0]


# System: all, pronoun, proper, nominal; known of OntoGUM's 60 development and test documents.
TARGETS = {
    "nearest": [36.4, 42.0, 35.5, 15.5],
    "nearest, either side": [29.0, 33.8, 26.2, 13.4],
    "head match": [52.2, 49.7, 63.6, 49.5],
    "head match, else nearest": [70.3, 70.2, 79.4, 60.8],
    "rule-based": [76.9, 79.3, 79.4, 64.9],
}


def test_baselines_of_the_documents(data_dir: Path):
    documents = read_chains(sorted((data_dir / "ontogum").glob("*/*.conllu"))).documents
    right = answers([truncated(text) for text in documents])
    assert right["kind"].value_counts().to_dict() == {"pronoun": 376, "proper": 107, "nominal": 97}
    accuracies = coreference_table(right).set_index("system").drop(columns="n")
    assert (100 * accuracies).round(1).T.to_dict("list") == TARGETS


@pytest.fixture(scope="module")
def documents(bundled) -> list[Document]:
    return read_chains([bundled]).documents


@pytest.fixture(scope="module")
def texts(tiny, documents) -> Texts:
    return fit(tiny, documents)


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_batched_answers_against_one_map_at_a_time(tiny, documents, candidates: str):
    texts = fit(tiny, documents, limit=60)
    assert 50 < max(map(len, texts.pieces)) <= 60
    found = attended_antecedents(tiny, texts, candidates)
    expected = [
        attended(word_maps(tiny, pieces)[:, :, 1:-1, 1:-1], text, candidates)
        for text, pieces in zip(texts.documents, texts.pieces, strict=True)
    ]
    assert found.shape[0] == len(answers(texts.documents))
    assert (found == np.moveaxis(np.concatenate(expected, axis=-1), -1, 0)).all()


def table_of(texts: Texts, layer: int) -> pd.DataFrame:
    """The table if one head of a layer is always right and the others never are."""
    by_head = np.zeros((len(answers(texts.documents)), 3, 4), bool)
    by_head[:, layer, 1] = True
    return antecedent_table(texts, by_head, resamples=99).set_index(["scored_on", "system"])


def test_table(texts):
    table = table_of(texts, 2)
    best = table.loc[[(EVERYTHING, SAME_DATA), (BOTH_HALVES, HELD_OUT)]]
    assert (best[["layer", "head", "all"]] == [2, 1, 1]).all(axis=None)
    rules = coreference_table(answers(texts.documents)).set_index("system")
    shown = table.loc[EVERYTHING].drop(index=SAME_DATA)
    assert (shown[["all", "n"]] == rules[["all", "n"]]).all(axis=None)
    again = table.loc[BOTH_HALVES].drop(index=HELD_OUT)
    assert again[["all", "low", "n"]].equals(shown[["all", "low", "n"]])


def test_the_scored_half_has_no_say_in_the_choice(texts):
    """Head (0, 1) is right only in one half, head (1, 0) only in the other: each is chosen where it is right and
    scored where it is wrong."""
    ruled = answers(texts.documents)
    chooses = halves(ruled["document"], 5)
    by_head = np.zeros((len(ruled), 2, 2), bool)
    by_head[~chooses, 0, 1] = by_head[chooses, 1, 0] = True
    found = antecedent_table(texts, by_head, resamples=99, seed=5).set_index("system")
    assert found.loc[HELD_OUT, ["all", "n"]].tolist() == [0, len(ruled)]
    assert found.loc[SAME_DATA, "all"] == pytest.approx(max(chooses.mean(), 1 - chooses.mean()))


def test_systems_of_several_readings(texts):
    """The rules once, and every reading's own head."""
    tables = {name: table_of(texts, layer).reset_index() for layer, name in enumerate(CANDIDATES)}
    found = held_out_systems(tables)
    assert found["system"].tolist() == [*SYSTEMS, *(f"best head among {words}" for words in AMONG.values())]
    assert found["layer"].tolist()[-2:] == [0, 1]
