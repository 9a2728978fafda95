"""Corpora come as the same examples from every kind of file, whole or in shards; bad files end in one line."""

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.errors import InputError
from analysis.texts.corpora import open_corpus
from analysis.texts.examples import Relation
from analysis.texts.syntax import parse

TEXTS = ["A dog barks .", "Ärger, naïve!", "Stop"]
SENTENCE = """# text = Dogs chase cats
1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tchase\tchase\tVERB\t_\t_\t0\troot\t_\t_
3\tcats\tcat\tNOUN\t_\t_\t2\tobj\t_\t_

"""
PARQUET = "rows.parquet"


def write_parquet(path: Path, rows: dict) -> Path:
    """A Parquet file of small row groups."""
    pq.write_table(pa.table(rows), path, row_group_size=2)
    return path


def write(path: Path, content: str | bytes) -> Path:
    """A file with this content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(path: Path, **options) -> list[tuple[str, ...]]:
    """The texts of all examples."""
    return [example.texts for example in open_corpus(path, **options).examples()]


def test_all_kinds_of_files_give_the_same_texts(tmp_path: Path):
    lines = write(tmp_path / "a.txt", "\ufeff" + "\r\n".join(f" {text} " for text in TEXTS))
    pairs = [(text, text.upper()) for text in TEXTS]
    rows = [{"text": text, "answer": answer, "id": 7} for text, answer in pairs]
    objects = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    table = write_parquet(tmp_path / "a.parquet", {name: [row[name] for row in rows] for name in rows[0]})
    for path in (lines, objects, table):
        assert texts(path) == [(text,) for text in TEXTS]
    for path in (objects, table):
        assert texts(path, columns=["text", "answer"]) == pairs
    with pytest.raises(InputError, match="a.parquet has no column 'reply': it has text, answer, id"):
        texts(table, columns=["text", "reply"])


def test_conllu_brings_the_relations_that_a_parse_of_the_file_finds(tmp_path: Path):
    path = write(tmp_path / "a.conllu", "\n" + SENTENCE + "\n" + SENTENCE.replace("\n", "\r\n"))
    examples = list(open_corpus(path).examples())
    assert [example.id for example in examples] == ["a.conllu-0", "a.conllu-1"]
    for example in examples:
        assert example.text_a == "Dogs chase cats"
        assert example.relations == (
            Relation("nsubj", 0, (0, 4), (5, 10)),
            Relation("dobj", 0, (11, 15), (5, 10)),
        )
        assert example.relations == parse([example], path)[example.id]


def test_shards_part_the_examples_of_a_folder_with_the_same_ids(tmp_path: Path):
    (tmp_path / "more").mkdir()
    write(tmp_path / "b.txt", "one\ntwo\nthree\n")
    write(tmp_path / "more" / "b.txt", "four\n")
    write_parquet(tmp_path / PARQUET, {"text": [f"row {number}" for number in range(5)]})
    write(tmp_path / "README.md", "not read")
    corpus = open_corpus(tmp_path)
    assert corpus.sizes["more/b.txt"] == 5
    whole = list(corpus.examples())
    assert [example.id for example in whole[:5]] == [
        "b.txt-0",
        "b.txt-1",
        "b.txt-2",
        "more/b.txt-0",
        f"{PARQUET}-0",
    ]
    for shards in (2, 4, 20):
        found = [list(corpus.examples(shard, shards)) for shard in range(shards)]
        assert sorted(chain(*found), key=lambda one: one.id) == sorted(whole, key=lambda one: one.id)
        sizes = [len(part) for part in found]
        assert max(sizes) - min(sizes) <= 1


def test_hidden_folders_are_skipped_and_suffixes_may_be_capital(tmp_path: Path):
    for name in (".ipynb_checkpoints", ".git", "NOTES"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "A.TXT", name)
    write(tmp_path / "._b.txt", "\0\5")
    write(tmp_path / "b.Conllu", SENTENCE)
    write(tmp_path / "c.JSONL", '{"text": "one"}')
    assert texts(tmp_path) == [("NOTES",), ("Dogs chase cats",), ("one",)]
    assert open_corpus(tmp_path / "b.Conllu").gold


@pytest.mark.parametrize(
    ("name", "rows"), [("a.txt", ("one", "two", "three")), ("a.jsonl", ('{"text": "one"}', "7", "[]"))]
)
def test_empty_lines_are_no_rows_and_count_as_lines(tmp_path: Path, name: str, rows: tuple[str, ...]):
    path = write(tmp_path / name, "\ufeff\r\n" + "\n \r\n".join(rows) + "\n\n")
    if name == "a.txt":
        assert [example.id for example in open_corpus(path).examples(1, 2)] == ["a.txt-1"]
        assert texts(path) == [(row,) for row in rows]
    else:
        with pytest.raises(InputError, match="a.jsonl, line 4: not a JSON object"):
            texts(path)


def test_parquet_that_is_not_utf_8_is_damaged(tmp_path: Path):
    column = pa.array([b"one", b"tw\xff"]).view(pa.string())
    with pytest.raises(InputError, match="rows.parquet is no Parquet file, or damaged"):
        texts(write_parquet(tmp_path / PARQUET, {"text": column}))


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", b"x" * 9000 + b"\n" + b"\0" * 20, "line 2: binary"),
        (
            "a.txt",
            "one\nzwölf".encode("latin-1"),
            "line 2: half of a surrogate pair, .*: write the whole .* in UTF-8",
        ),
        ("a.jsonl", '{"text": "one"}\n{"sentence": "two"}\n', "line 2: a text is missing"),
        ("a.conllu", SENTENCE + SENTENCE[:85], "line 6: 8 columns: CoNLL-U has 10"),
        ("a.conllu", SENTENCE.replace("2\tobj", "9\tobj"), "line 1: the head 9 is no word"),
        ("a.conllu", "\n\n", "is empty"),
    ],
)
def test_a_bad_file_ends_in_one_line_that_names_it(
    tmp_path: Path, name: str, content: str | bytes, says: str
):
    path = write(tmp_path / name, content)
    with pytest.raises(InputError, match=f"{name}.*{says}"):
        list(open_corpus(path).examples())
