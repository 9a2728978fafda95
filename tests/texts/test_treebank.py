"""Words and trees of CoNLL-U files, and faults of such files that tests/test_inputs.py does not have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studies import error_of
from treebanks import conllu, write

from analysis.errors import InputError
from analysis.texts.chains import read_chains
from analysis.texts.dependencies import conllu_files, read_trees
from analysis.texts.examples import Example
from analysis.texts.passages import documents
from analysis.texts.syntax import parse
from analysis.texts.treebank import unrooted

# A multiword token, an empty node, comments and a second document; line numbers matter below.
MIXED = """\
# newdoc id = first
# text = don't they
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
2.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t0:root\t_
3\tthey\tthey\tPRON\tPRP\t_\t0\troot\t_\tEntity=(1)|SpaceAfter=No

# newdoc id = second
1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_

"""


def test_words_are_numbered_without_multiword_tokens_and_empty_nodes(tmp_path: Path):
    words, left_out = read_trees([write(tmp_path, MIXED)])
    assert left_out == {"multiword tokens": 1, "empty nodes": 1}
    assert words["form"].tolist() == ["do", "n't", "they", "Yes"]
    assert words["word"].tolist() == [0, 1, 2, 0]
    assert words["head"].tolist() == [3, 3, 0, 0]
    assert words["length"].tolist() == [3, 3, 3, 1]
    assert words["sentence"].tolist() == [0, 0, 0, 1]
    assert words["entity"].tolist() == ["", "", "(1)", ""]
    assert words["document"].tolist() == ["first"] * 3 + ["second"]


READERS = (
    lambda path: read_trees([path]),
    lambda path: read_chains([path]),
    lambda path: parse([Example("a", "don't they")], path),
    lambda path: [*documents(path, None, 0)],
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\tn't\t", "\tn  t\t", "line 1: 11 columns"),
        ("\t3\taux", "\t_\taux", "line 1: the head None is no word"),
        ("\t3\taux", "\tx\taux", "line 1: Failed parsing field 'head': 'x' is not a valid value"),
        ("\t3\taux", "\t1\taux", "line 1: the heads from word 1 on form a cycle"),
        ("2.1\tgo", "2-3\tn't they", "line 1: the multiword tokens do not fit"),
        ("3\tthey", "_\tthey", "line 1: the sentence has words that are not numbered"),
        ("3\tthey", "3x\tthey", "line 1: .*'3x' is not a valid ID"),
        ("= don't they", "= do not they", 'line 1: "don\'t" is not in its text'),
        ("= don't they", "= don't they go", "line 1: the # text goes on after the last word with ' go'"),
    ],
)
def test_broken_files_name_the_file_and_the_line_of_the_sentence(
    tmp_path: Path, old: str, new: str, message: str
):
    path = write(tmp_path, MIXED.replace(old, new, 1))
    for reader in READERS:
        with pytest.raises(InputError, match=f"trees.conllu, {message}"):
            reader(path)


def test_documents_of_a_file_have_different_names(tmp_path: Path):
    path = write(tmp_path, MIXED.replace("id = second", "id = first"))
    assert "trees.conllu: two documents are called 'first'" in error_of(read_trees, [path])


@pytest.mark.parametrize("reader", READERS)
def test_byte_order_mark_and_windows_lines_change_nothing(tmp_path: Path, reader: Callable[[Path], Any]):
    before = repr(reader(write(tmp_path, MIXED)))
    assert repr(reader(write(tmp_path, "\ufeff" + MIXED.replace("\n", "\r\n")))) == before


def test_unrooted_against_climbing():
    generator = np.random.default_rng(0)
    for _ in range(200):
        heads = generator.integers(0, 9, size=8)
        ends = np.arange(9)
        for _ in range(9):  # word 0 is ROOT
            ends = np.concatenate([[0], heads])[ends]
        assert unrooted(heads).tolist() == np.flatnonzero(ends[1:]).tolist()


def test_files_and_folders(tmp_path: Path, monkeypatch):
    cats = conllu(*["Cats NOUN NNS 2 nsubj (1)\nsleep VERB VBP 0 root"] * 2)
    first, second = (write(tmp_path, f"# newdoc id = {name}\n{cats}", f"{name}.conllu") for name in "ab")
    monkeypatch.setenv("TREES", str(tmp_path))
    assert conllu_files(["$TREES", str(first)], tmp_path, 2, "dev", 0) == [first, second, first]
    assert read_trees([first, second]).words["sentence"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [text.name for text in read_chains([first, second]).documents] == ["a", "b"]
    bundled = read_chains(conllu_files([], tmp_path / "new", 2, "dev", 0)).documents  # where no file is named
    assert [text.mentions.empty for text in bundled] == [False, False]
