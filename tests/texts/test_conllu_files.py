"""Given files, folders of them, and bundled documents by default."""

from pathlib import Path

from treebanks import conllu, write

from analysis.texts.chains import read_chains
from analysis.texts.treebank import conllu_files, read_trees

CATS = "Cats NOUN NNS 2 nsubj (1)\nsleep VERB VBP 0 root"


def test_bundled_documents_stand_in(tmp_path: Path):
    (path,) = conllu_files([], tmp_path / "new", 2, "dev", 0)
    first = path.read_bytes()
    assert len(read_chains([path]).documents) == 2
    assert conllu_files([], tmp_path / "new", 2, "dev", 0) == [path]
    assert path.read_bytes() == first


def test_files_and_folders(tmp_path: Path, monkeypatch):
    one, two = (
        write(tmp_path, "# newdoc id = " + name + "\n" + conllu(CATS, CATS), f"{name}.conllu")
        for name in "ab"
    )
    monkeypatch.setenv("TREES", str(tmp_path))
    files = conllu_files(["$TREES", str(one)], tmp_path, 2, "dev", 0)
    assert files == [one, two, one]
    trees = read_trees([one, two])
    assert trees.words["sentence"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert trees.left_out == {"multiword tokens": 0, "empty nodes": 0}
    assert [text.name for text in read_chains([one, two]).documents] == ["a", "b"]
    assert read_chains([one, two]).left_out["duplicate mentions"] == 0
