from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from treebanks import conllu, write

from analysis.texts import dependencies
from analysis.texts.dependencies import SYMMETRIC, arcs, offset_table, read_trees, right_branching, uas

# `to` before a verb, two adpositions on one noun, one after its noun, possessors with and without a mark, subtypes.
BOOK = """
Mary     PROPN NNP 3 nmod:poss
's       PART  POS 1 case
book     NOUN  NN  4 nsubj
came     VERB  VBD 0 root
out      ADP   IN  8 case
of       ADP   IN  8 case
my       PRON  PRP$ 8 nmod:poss
bag      NOUN  NN  4 obl
to       PART  TO  10 mark
stay     VERB  VB  4 advcl
"""
AGO = """
two    NUM  CD  2 nummod
years  NOUN NNS 4 obl
ago    ADP  IN  2 case
left   VERB VBD 0 root
because SCONJ IN 6 mark
asked  VERB VBN 4 advcl
not    PART RB  6 advmod:emph
.      PUNCT .  4 punct
"""
ENDS = """
Mary   PROPN NNP 3 nmod:poss
's     PART  POS 1 case
James  PROPN NNP 0 root
’      PART  POS 3 case
"""

# Relation, n, accuracy of the best offset, offset: the baselines that are known of the English Web Treebank's
# development sentences.
TARGETS = [
    ("all", 25147, 29.1, 1), ("all but punct", 22086, 31.4, 1), ("prep", 1867, 62.2, -1),
    ("pobj", 1867, 39.7, -1), ("case", 1888, 39.8, 1), ("det", 1817, 59.6, 1),
    ("compound+flat", 1179, 62.8, 1), ("compound", 898, 82.5, 1), ("nsubj", 1958, 36.5, 1),
    ("amod", 1326, 74.7, 1), ("obj", 1211, 35.8, -2), ("advmod", 1353, 45.8, 1), ("aux", 1105, 62.1, 1),
    ("nmod:poss", 391, 67.8, 1), ("aux:pass", 162, 82.7, 1), ("ccomp", 200, 25.0, -3), ("mark", 401, 26.4, 2),
    ("compound:prt", 74, 74.3, -1), ("xcomp", 381, 56.2, -2), ("conj", 916, 26.6, -2),
    ("nummod", 159, 68.6, 1), ("cop", 627, 35.2, 1),
]  # fmt: skip


def words_of(folder: Path, *sentences: str) -> pd.DataFrame:
    return read_trees([write(folder, conllu(*sentences))]).words


def pairs(scored: pd.DataFrame, relation: str) -> list[tuple[int, int, int]]:
    """Sentence, word (from 0) and head (from 1) of the arcs of a relation."""
    rows = scored[scored["relation"] == relation]
    return sorted(rows[["sentence", "word", "head"]].itertuples(index=False, name=None))


def test_every_word_has_an_arc_and_prepositions_are_rebuilt_from_the_first_adposition(tmp_path: Path):
    words = words_of(tmp_path, BOOK, AGO)
    scored = arcs(words)
    assert pairs(scored, "all") == words[["sentence", "word", "head"]].apply(tuple, axis=1).tolist()
    assert pairs(scored, "all but punct") == pairs(scored, "all")[:-1]
    assert pairs(scored, "pobj") == [(0, 7, 5), (1, 1, 3)]  # bag -> out, years -> ago
    assert pairs(scored, "prep") == [(0, 4, 4), (1, 2, 4)]  # out -> came, ago -> left
    assert pairs(scored, "case") == [(0, 4, 8), (0, 5, 8), (1, 2, 2)]


def test_the_possessive_mark_answers_for_the_possessor(tmp_path: Path):
    words = words_of(tmp_path, BOOK, ENDS)
    assert pairs(arcs(words), "nmod:poss") == [(0, 1, 3), (0, 6, 8), (1, 1, 3)]
    assert pairs(arcs(words, possessive=False), "nmod:poss") == [(0, 0, 3), (0, 6, 8), (1, 0, 3)]
    assert pairs(arcs(words), "possessive") == [(0, 1, 1), (1, 1, 1), (1, 3, 3)]


def test_subtypes_count_for_advmod_only(tmp_path: Path):
    words = words_of(tmp_path, AGO.replace("obl", "nsubj:pass").replace("nummod", "det:predet"))
    scored = arcs(words)
    assert pairs(scored, "advmod") == [(0, 6, 6)]
    assert pairs(scored, "nsubj") == []
    assert pairs(scored, "nsubj:pass") == [(0, 1, 4)]
    assert pairs(scored, "det+det:predet") == [(0, 0, 2)]


def test_offset_table_against_a_loop(tmp_path: Path):
    scored = arcs(words_of(tmp_path, BOOK, AGO, ENDS))
    table = offset_table(scored, SYMMETRIC)
    assert table["offset"].drop_duplicates().tolist() == list(SYMMETRIC)
    for row in table.itertuples():
        rows = list(scored[scored["relation"] == row.relation].itertuples())
        right = [min(max(arc.word + row.offset + 1, 0), arc.length) == arc.head for arc in rows]
        assert row.n == len(rows)
        assert row.accuracy == pytest.approx(np.mean(right))


def test_right_branching_is_offset_one(tmp_path: Path):
    words = words_of(tmp_path, BOOK, AGO)
    table = offset_table(arcs(words), [1]).set_index("relation")["accuracy"]
    assert uas(right_branching(words), words, punctuation=True) == pytest.approx(table["all"])
    assert uas(right_branching(words), words) == pytest.approx(table["all but punct"])
    assert uas(words["head"].to_numpy(), words) == 1


def test_baselines_of_the_treebank(data_dir: Path):
    words = read_trees([data_dir / "ud_english_ewt" / "en_ewt-ud-dev.conllu"]).words
    best = dependencies.best_offsets(offset_table(arcs(words))).set_index("relation")
    best["accuracy"] = (100 * best["accuracy"]).round(1)
    ours = best.loc[[name for name, *_ in TARGETS], ["n", "accuracy", "offset"]]
    assert [*ours.itertuples(name=None)] == TARGETS
    unmarked = dependencies.best_offsets(offset_table(arcs(words, possessive=False))).set_index("relation")
    assert round(100 * unmarked.loc["nmod:poss", "accuracy"], 1) == 58.1
    assert round(100 * uas(right_branching(words), words), 1) == 31.4
    assert round(100 * uas(right_branching(words), words, punctuation=True), 1) == 29.1
