"""Treebanks: the words of CoNLL-U files, by document, paragraph and sentence."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from analysis.errors import InputError
from analysis.files import expand, files_of, write_text
from analysis.texts.bundled import bundled_documents
from analysis.texts.sentences import CONLLU, LEFT_OUT, Sentence, Word, read_sentences


class Treebank(NamedTuple):
    """The words of CoNLL-U files, and how many multiword tokens and empty nodes were left out, with their entities.

    `words` has a row per syntactic word: document, sentence (0-based, over all files), word (0-based, in its sentence),
    length (words of the sentence), and the fields of `Word`.
    """

    words: pd.DataFrame
    left_out: dict[str, int]


def read_trees(files: Iterable[str | Path]) -> Treebank:
    """The words of CoNLL-U files."""
    rows, number, left_out = [], 0, Counter(dict.fromkeys(LEFT_OUT.values(), 0))
    for path in map(expand, files):
        sentences = read_sentences(path)
        for sentence, (document, _) in zip(sentences, paragraphs(sentences, path), strict=True):
            length = len(sentence.words)
            rows += [(document, number, index, length, *word) for index, word in enumerate(sentence.words)]
            left_out.update(sentence.left_out)
            number += 1
    columns = ["document", "sentence", "word", "length", *Word._fields]
    return Treebank(pd.DataFrame(rows, columns=columns), dict(left_out))


def paragraphs(sentences: Iterable[Sentence], path: Path) -> Iterator[tuple[str, int]]:
    """The document of each sentence, and the number of its paragraph in the file (0-based).

    `# newpar` begins a paragraph, `# newdoc` a document; `# newdoc id` names one. Before the first it is the file.
    """
    names, paragraph = [path.stem], 0
    for sentence in sentences:
        begins = {key.split()[0] for key in sentence.comments}
        if "newdoc" in begins:
            name = sentence.comments.get("newdoc id") or f"{path.stem}, document {len(names)}"
            if name in names[1:]:
                raise InputError(f"{path}: two documents are called {name!r}: give each its own name")
            names.append(name)
        paragraph += bool(begins & {"newdoc", "newpar"})
        yield names[-1], paragraph


def conllu_files(names: Sequence[str], folder: Path, n: int, split: str, seed: int) -> list[Path]:
    """The CoNLL-U files with these names or in these folders; without names, a new file of bundled documents."""
    if not names:
        path = folder / f"bundled-{split}{CONLLU}"
        write_text(path, bundled_documents(n, split, seed))
        return [path]
    files = []
    for path in map(expand, names):
        members = files_of(path, {CONLLU}, "*") if path.is_dir() else [path]
        if not members:
            raise InputError(f"{path} holds no .conllu file: name a CoNLL-U file or a folder of them")
        files += members
    return files
