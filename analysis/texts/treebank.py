"""The syntactic words of a CoNLL-U file with their trees, checked line by line."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import conllu
import numpy as np
import pandas as pd
from conllu.parser import parse_id_value, parse_int_value
from jaxtyping import Int

from analysis.errors import InputError
from analysis.files import expand, files_of, read_text, write_text
from analysis.texts.bundled import bundled_documents
from analysis.texts.examples import Example
from analysis.texts.glue import sample
from analysis.texts.syntax import parse, read_conllu, sentence_text, tags

COLUMNS = "document sentence word length form upos xpos relation head entity line".split()
# The conllu library splits a line here. A form with two blanks in it would shift all later columns.
DIVISION = re.compile(r"\t| {2,}")
ID, HEAD = (conllu.parser.DEFAULT_FIELDS.index(field) for field in ("id", "head"))
LEFT_OUT = {"-": "multiword tokens", ".": "empty nodes"}


class Treebank(NamedTuple):
    """The syntactic words of a CoNLL-U file, and the counts of its other lines.

    `words` has a row per syntactic word, in the order of the file: document (the name after `# newdoc id`, or the
    number of a `# newdoc` without a name; the name of the file before the first), sentence (0-based, in the file),
    word (0-based position in its sentence), length (words of the sentence), form, upos, xpos, relation, head (0 is
    ROOT, else the 1-based position of the head, as in the file), entity (the field `Entity` of MISC, or "") and line
    (1-based, in the file). `left_out` counts multiword tokens (`3-4`) and empty nodes (`8.1`), which are not in trees.
    """

    words: pd.DataFrame
    left_out: dict[str, int]


def read_treebank(path: str | Path) -> Treebank:
    """The words of a CoNLL-U file and the counts of the lines that are left out.

    Raises InputError naming the line for a line without ten columns, words that are not numbered 1, 2, 3 and on, a head
    that is missing or no word of the sentence, heads that form a cycle, and an entity on a line that is left out.
    Raises InputError naming the file for two documents of one name and for a file that is not CoNLL-U.
    """
    path = expand(path)
    lines = _token_lines(path)
    left_out: Counter[str] = Counter(dict.fromkeys(LEFT_OUT.values(), 0))
    sentences = read_conllu(path)
    rows = []
    for number, (document, sentence) in enumerate(zip(_documents(sentences, path), sentences, strict=True)):
        numbered = [(next(lines), token) for token in sentence]
        words = [(line, token) for line, token in numbered if isinstance(token["id"], int)]
        left_out.update(_left_out(numbered, path))
        _check_tree(words, path)
        rows += [
            (document, number, position, len(words), *_columns(token), line)
            for position, (line, token) in enumerate(words)
        ]
    if not rows:
        raise InputError(f"{path} holds no word: give a CoNLL-U file")
    return Treebank(pd.DataFrame(rows, columns=COLUMNS), dict(left_out))


def _token_lines(path: Path) -> Iterator[int]:
    """The numbers (1-based) of the lines with a token; checks what the conllu library reports without a line."""
    lines = read_text(path).split("\n")
    tokens = [number for number, line in enumerate(lines, 1) if line.strip() and line.strip()[0] != "#"]
    for number in tokens:
        columns = DIVISION.split(lines[number - 1].strip())
        if len(columns) != len(conllu.parser.DEFAULT_FIELDS):
            raise InputError(
                f"{path}, line {number}: {len(columns)} columns: CoNLL-U has 10, divided by one tab each"
            )
        try:
            identity, _ = parse_id_value(columns[ID]), parse_int_value(columns[HEAD])
        except conllu.exceptions.ParseException as error:
            raise InputError(f"{path}, line {number}: {error} Mend the line") from error
        if identity is None:
            raise InputError(f"{path}, line {number}: the word has no number: number it")
    return iter(tokens)


def _documents(sentences: Iterable[conllu.TokenList], path: Path) -> Iterator[str]:
    """The document of each sentence."""
    names = [path.stem]
    for sentence in sentences:
        if "newdoc id" in sentence.metadata or "newdoc" in sentence.metadata:
            name = sentence.metadata.get("newdoc id", f"{path.stem}, document {len(names)}")
            if name in names[1:]:
                raise InputError(f"{path}: two documents are called {name!r}: give each its own name")
            names.append(name)
        yield names[-1]


def _left_out(numbered: Iterable[tuple[int, conllu.Token]], path: Path) -> Iterator[str]:
    for line, token in numbered:
        if not isinstance(token["id"], tuple):
            continue
        kind = LEFT_OUT[token["id"][1]]
        if _entity(token):
            raise InputError(
                f"{path}, line {line}: an entity on one of the {kind}, which are left out: put it on a word"
            )
        yield kind


def _columns(token: conllu.Token) -> tuple:
    return token["form"], token["upos"], token["xpos"] or "", token["deprel"], token["head"], _entity(token)


def _entity(token: conllu.Token) -> str:
    return (token["misc"] or {}).get("Entity") or ""


def _check_tree(words: list[tuple[int, conllu.Token]], path: Path) -> None:
    for position, (line, token) in enumerate(words, 1):
        if token["id"] != position:
            raise InputError(
                f"{path}, line {line}: the word is numbered {token['id']} where {position} follows: renumber it"
            )
        if token["head"] is None or not 0 <= token["head"] <= len(words):
            raise InputError(
                f"{path}, line {line}: the head {token['head']} is no word of the sentence, which has "
                f"{len(words)}: give 0 or the number of a word"
            )
    adrift = unrooted(np.array([token["head"] for _, token in words], dtype=int))
    if len(adrift):
        raise InputError(
            f"{path}, line {words[adrift[0]][0]}: the heads from this word on form a cycle: mend the tree"
        )


def unrooted(heads: Int[np.ndarray, " word"]) -> Int[np.ndarray, " unrooted"]:
    """The words (0-based) whose chain of heads does not end at ROOT (0): those in and below a cycle."""
    ancestor = np.concatenate([[0], heads])
    for _ in range(len(ancestor).bit_length()):  # each step doubles the height climbed
        ancestor = ancestor[ancestor]
    return np.flatnonzero(ancestor[1:])


def conllu_files(given: Sequence[str], folder: Path, n: int, split: str, seed: int) -> list[Path]:
    """The files that are `given`, by themselves or by their folders, or else a new file of `n` bundled documents.

    Raises InputError for a folder without .conllu files.
    """
    if not given:
        path = folder / f"bundled-{split}.conllu"
        write_text(path, bundled_documents(n, split, seed))
        return [path]
    files = []
    for path in map(expand, given):
        found = files_of(path, {".conllu"}, "*") if path.is_dir() else [path]
        if not found:
            raise InputError(f"{path} holds no .conllu file: name a CoNLL-U file or a folder of them")
        files += found
    return files


def read_trees(files: Sequence[Path]) -> Treebank:
    """The words of several files as those of one; the numbers of sentences go on from file to file."""
    parts, left_out, sentences = [], Counter(), 0
    for file in files:
        words, counts = read_treebank(file)
        parts.append(words.assign(sentence=words["sentence"] + sentences))
        left_out.update(counts)
        sentences += words["sentence"].max() + 1
    return Treebank(pd.concat(parts, ignore_index=True), dict(left_out))


def treebank_examples(treebank: str | Path, n: int | None = None, seed: int = 0) -> list[Example]:
    """The sentences of different texts of a CoNLL-U file, or a seeded sample of `n`, with gold relations and tags.

    Raises InputError for a file that is missing or is no CoNLL-U.
    """
    path = expand(treebank)
    texts = dict.fromkeys(sentence_text(sentence) for sentence in read_conllu(path))
    examples = sample([Example(f"{path.stem}-{row}", text) for row, text in enumerate(texts)], n, seed)
    gold, words = parse(examples, path), tags(examples, path)
    return [replace(example, relations=gold[example.id], tags=words[example.id]) for example in examples]
