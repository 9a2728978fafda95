from pathlib import Path

import pytest
from treebanks import read_document

from analysis.texts.chains import truncated

# Nested mentions of one chain and of two, a mention of one word, brackets that close and open on one word.
SENTENCES = (
    """
    The     DET   DT  2 det        (1
    mother  NOUN  NN  6 nsubj
    of      ADP   IN  5 case
    young   ADJ   JJ  5 amod       (2
    Mary    PROPN NNP 2 nmod       2)1)
    saw     VERB  VBD 0 root
    cats    NOUN  NNS 6 obj        (3)
    """,
    """
    She     PRON  PRP 2 nsubj      (1)
    fed     VERB  VBD 0 root
    them    PRON  PRP 2 obj        (3)
    """,
)


def test_brackets_give_spans_chains_and_head_words(tmp_path: Path):
    """The head of a head word is outside its mention."""
    mentions = read_document(tmp_path, *SENTENCES).mentions
    assert mentions[["string", "start", "end", "chain", "head"]].to_numpy().tolist() == [
        ["the mother of young mary", 0, 4, "1", 1], ["young mary", 3, 4, "2", 4], ["cats", 6, 6, "3", 6],
        ["she", 7, 7, "1", 7], ["them", 9, 9, "3", 9],
    ]  # fmt: skip


def test_one_chain_nested_in_itself_closes_the_inner_mention_first(tmp_path: Path):
    text = read_document(tmp_path, "a X X 2 dep (1\nb X X 0 root (1\nc X X 2 dep 1)\nd X X 2 dep 1)")
    assert text.mentions[["start", "end"]].to_numpy().tolist() == [[0, 3], [1, 2]]


@pytest.mark.parametrize(
    ("word", "features"),
    [
        ("hers PRON PRP$", ["pronoun", "singular", "feminine", 3]),
        ("They PRON PRP", ["pronoun", "plural", "any", 3]),
        ("ourselves PRON PRP", ["pronoun", "plural", "any", 1]),
        ("you PRON PRP", ["pronoun", "any", "any", 2]),
        ("yourself PRON PRP", ["pronoun", "singular", "any", 2]),
        ("Himself PRON PRP", ["pronoun", "singular", "masculine", 3]),
        ("its PRON PRP$", ["pronoun", "singular", "neuter", 3]),
        ("whose PRON WP$", ["pronoun", "singular", "any", 3]),
        ("those PRON DT", ["pronoun", "plural", "any", 3]),
        ("this DET DT", ["nominal", "singular", "any", 3]),
        ("Alps NOUN NNPS", ["proper", "plural", "any", 3]),
        ("New PROPN JJ", ["proper", "singular", "any", 3]),
        ("cats NOUN NNS", ["nominal", "plural", "any", 3]),
        ("run VERB VB", ["nominal", "singular", "any", 3]),
    ],
)
def test_kind_and_features_of_a_word(tmp_path: Path, word: str, features: list):
    mention = read_document(tmp_path, f"{word} 0 root (1)").mentions.iloc[0]
    assert mention[["kind", "number", "gender", "person"]].tolist() == features


def test_truncation_keeps_whole_mentions(tmp_path: Path):
    text = read_document(tmp_path, *SENTENCES)
    assert truncated(text, 4).mentions.empty
    assert truncated(text, 5).mentions["end"].tolist() == [4, 4]
    assert len(truncated(text, 5).words) == 5
