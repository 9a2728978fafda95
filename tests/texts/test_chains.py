"""Mentions of documents from `Entity` brackets, their head words and features."""

from pathlib import Path

import pytest
from treebanks import conllu, write

from analysis.errors import InputError
from analysis.texts.chains import (
    Document,
    read_documents,
    truncated,
)

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


def read(folder: Path, *sentences: str) -> Document:
    """The one document of hand-made sentences."""
    (only,) = read_documents(write(folder, conllu(*sentences))).documents
    return only


def column(text: Document, name: str) -> dict[str, object]:
    """A feature of each mention by its string."""
    return dict(zip(text.mentions["string"], text.mentions[name], strict=True))


def mention_of(folder: Path, form: str, upos: str, xpos: str) -> dict[str, object]:
    """The features of a mention of one word."""
    return read(folder, f"{form} {upos} {xpos} 0 root (1)").mentions.iloc[0].to_dict()


def test_brackets_give_spans_and_chains(tmp_path: Path):
    text = read(tmp_path, *SENTENCES)
    rows = text.mentions[["start", "end", "chain"]].itertuples(index=False, name=None)
    assert list(rows) == [(0, 4, "1"), (3, 4, "2"), (6, 6, "3"), (7, 7, "1"), (9, 9, "3")]
    assert text.name == "trees"


def test_one_chain_nested_in_itself_closes_the_inner_mention_first(tmp_path: Path):
    text = read(tmp_path, "a X X 2 dep (1\nb X X 0 root (1\nc X X 2 dep 1)\nd X X 2 dep 1)")
    assert text.mentions[["start", "end"]].to_numpy().tolist() == [[0, 3], [1, 2]]


def test_head_words_have_their_head_outside(tmp_path: Path):
    assert column(read(tmp_path, *SENTENCES), "head") == {
        "the mother of young mary": 1, "young mary": 4, "cats": 6, "she": 7, "them": 9,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("form", "upos", "xpos", "kind"),
    [
        ("she", "PRON", "PRP", "pronoun"), ("her", "PRON", "PRP$", "pronoun"), ("who", "PRON", "WP", "pronoun"),
        ("whose", "PRON", "WP$", "pronoun"), ("which", "PRON", "WDT", "pronoun"),
        ("this", "PRON", "DT", "pronoun"), ("this", "DET", "DT", "nominal"), ("Mary", "PROPN", "NNP", "proper"),
        ("Alps", "NOUN", "NNPS", "proper"), ("New", "PROPN", "JJ", "proper"), ("cat", "NOUN", "NN", "nominal"),
        ("run", "VERB", "VB", "nominal"),
    ],
)  # fmt: skip
def test_kinds(tmp_path: Path, form: str, upos: str, xpos: str, kind: str):
    assert mention_of(tmp_path, form, upos, xpos)["kind"] == kind


@pytest.mark.parametrize(
    ("form", "xpos", "number", "gender", "person"),
    [
        ("They", "PRP", "plural", "any", 3), ("ourselves", "PRP", "plural", "any", 1),
        ("me", "PRP", "singular", "any", 1), ("you", "PRP", "any", "any", 2),
        ("your", "PRP$", "any", "any", 2), ("yourself", "PRP", "singular", "any", 2),
        ("Himself", "PRP", "singular", "masculine", 3), ("hers", "PRP", "singular", "feminine", 3),
        ("its", "PRP$", "singular", "neuter", 3), ("cats", "NNS", "plural", "any", 3),
        ("Alps", "NNPS", "plural", "any", 3), ("cat", "NN", "singular", "any", 3), ("those", "DT", "plural", "any", 3),
    ],
)  # fmt: skip
def test_features(tmp_path: Path, form: str, xpos: str, number: str, gender: str, person: int):
    features = mention_of(tmp_path, form, "PRON", xpos)
    assert [features[name] for name in ("number", "gender", "person")] == [number, gender, person]


def test_truncation_keeps_whole_mentions(tmp_path: Path):
    text = read(tmp_path, *SENTENCES)
    assert truncated(text, 4).mentions["string"].tolist() == []
    assert truncated(text, 7).mentions["string"].tolist() == [
        "the mother of young mary",
        "young mary",
        "cats",
    ]
    assert len(truncated(text, 7).words) == 7
    assert len(truncated(text).mentions) == 5


@pytest.mark.parametrize(
    ("entities", "message"),
    [
        (("(1", "_", "_"), r"line 1: '\(1' opens a mention that its sentence does not close"),
        (("_", "1)", "_"), r"line 2: '1\)' closes a mention that its sentence does not open"),
        (("(1", "2)", "1)"), r"line 2: '2\)' closes"),
        (("(1)", "_", "1)"), r"line 3: '1\)' closes"),
        (("(1", "(1", "1)"), r"line 1: '\(1' opens"),
        (("_", "1", "_"), r"line 2: Entity=1 is no row of brackets"),
        (("(1[1/2])", "_", "_"), r"line 1: Entity=\(1\[1/2\]\) is no row"),
        (("(1", "1", "_"), r"line 2: Entity=1 is no row"),
        (("(", "_", "_"), r"line 1: Entity=\( is no row"),
    ],
)
def test_unbalanced_brackets_name_file_and_line(tmp_path: Path, entities: tuple[str, ...], message: str):
    rows = [f"w X X {number} dep {entity}" for number, entity in enumerate(entities)]
    path = write(tmp_path, conllu("\n".join(row.removesuffix(" _") for row in rows)))
    with pytest.raises(InputError, match=message) as raised:
        read_documents(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
