"""The CoNLL-U files that trees and coreference chains come from: those given, or documents of the bundled corpus."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from .corpus import generate_documents
from .errors import InputError
from .mentions import Corpus, read_documents
from .store import expand, write_text
from .treebank import Treebank, read_treebank


def conllu_files(given: Sequence[str], folder: Path, n: int, split: str, seed: int) -> list[Path]:
    """The files given, those of given folders in order of their names, or a new one of `n` bundled documents.

    Raises InputError for a folder without .conllu files.
    """
    if not given:
        path = folder / f"bundled-{split}.conllu"
        write_text(path, generate_documents(n, split, seed))
        return [path]
    return [file for name in given for file in _files(expand(name))]


def _files(path: Path) -> list[Path]:
    files = sorted(path.glob("*.conllu")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path} holds no .conllu file: name a CoNLL-U file or a folder of them")
    return files


def read_trees(files: Sequence[Path]) -> Treebank:
    """The words of several files as those of one, their sentences numbered on, and the sums of what is left out."""
    parts, left_out = [], pd.Series(dtype=int)
    for file in files:
        words, counts = read_treebank(file)
        parts.append(
            words.assign(sentence=words["sentence"] + sum(part["sentence"].max() + 1 for part in parts))
        )
        left_out = left_out.add(pd.Series(counts), fill_value=0)
    return Treebank(pd.concat(parts, ignore_index=True), left_out.astype(int).to_dict())


def read_chains(files: Sequence[Path]) -> Corpus:
    """The documents of several files with their mentions, and the sums of what is left out."""
    found = [read_documents(file) for file in files]
    left_out = pd.DataFrame([each.left_out for each in found]).sum()
    return Corpus([text for each in found for text in each.documents], left_out.astype(int).to_dict())
