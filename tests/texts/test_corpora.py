"""Corpora come as the same examples from every kind of file, whole or in shards; bad files end in one line."""

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.errors import InputError
from analysis.texts.corpora import open_corpus
from analysis.texts.syntax import parse

TEXTS = ["A dog barks .", "Ärger, naïve!", "Stop"]
SENTENCE = """# text = Dogs chase cats
1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tchase\tchase\tVERB\t_\t_\t0\troot\t_\t_
3\tcats\tcat\tNOUN\t_\t_\t2\tobj\t_\t_

"""


def write(path: Path, content: str | bytes | pa.Table) -> Path:
    """A file with this content; a table is written in small row groups."""
    path.parent.mkdir(exist_ok=True)
    if isinstance(content, pa.Table):
        pq.write_table(content, path, row_group_size=2)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def texts(path: Path, **options) -> list[tuple[str, ...]]:
    """The texts of all examples."""
    return [example.texts for example in open_corpus(path, **options).examples()]


def test_all_kinds_of_files_give_the_same_texts(tmp_path: Path):
    lines = write(tmp_path / "a.txt", "\ufeff\r\n" + "\r\n \r\n".join(f" {text} " for text in TEXTS))
    pairs = [(text, text.upper()) for text in TEXTS]
    rows = [{"text": text, "answer": answer, "id": 7} for text, answer in pairs]
    objects = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    table = write(tmp_path / "a.parquet", pa.Table.from_pylist(rows))
    for path in (lines, objects, table):
        assert texts(path) == [(text,) for text in TEXTS]
        assert [example.id for example in open_corpus(path).examples(1, 2)] == [f"{path.name}-1"]
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
        assert example.relations == parse([example], path)[example.id]
        assert [relation.label for relation in example.relations] == ["nsubj", "dobj"]


def test_shards_divide_the_examples_of_a_folder_and_keep_their_ids(tmp_path: Path):
    """Hidden files and folders are skipped, and suffixes may be capital."""
    write(tmp_path / "b.txt", "one\ntwo\nthree\n")
    write(tmp_path / "more" / "B.TXT", "four\n")
    for hidden in (".git/a.txt", "._b.txt"):
        write(tmp_path / hidden, "hidden")
    write(tmp_path / "rows.parquet", pa.table({"text": [f"row {number}" for number in range(5)]}))
    write(tmp_path / "README.md", "not read")
    corpus = open_corpus(tmp_path)
    assert corpus.sizes["more/B.TXT"] == 5
    whole = list(corpus.examples())
    names = ["b.txt-0", "b.txt-1", "b.txt-2", "more/B.TXT-0", "rows.parquet-0"]
    assert [example.id for example in whole[:5]] == names
    for shards in (4, 20):
        parts = [list(corpus.examples(shard, shards)) for shard in range(shards)]
        assert sorted(chain(*parts), key=lambda part: part.id) == sorted(whole, key=lambda part: part.id)
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"x" * 9000 + b"\n" + b"\0" * 20, "line 2: binary"),
        ("a.txt", "one\nzwölf".encode("latin-1"), "line 2: half of a surrogate pair.* in UTF-8"),
        ("a.jsonl", '{"text": "one"}\n\n[]\n', "line 3: not a JSON object"),
        ("a.conllu", SENTENCE + SENTENCE[:85], "line 6: 8 columns: CoNLL-U has 10"),
        ("a.parquet", pa.table({"text": pa.array([b"one", b"tw\xff"]).view(pa.string())}), "damaged after row 0"),
    ],
)  # fmt: skip
def test_a_bad_file_ends_in_one_line_that_names_it(
    tmp_path: Path, name: str, content: str | bytes | pa.Table, message: str
):
    path = write(tmp_path / name, content)
    with pytest.raises(InputError, match=f"{name}.*{message}"):
        list(open_corpus(path).examples())
