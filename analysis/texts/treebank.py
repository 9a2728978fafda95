"""CoNLL-U files: their sentences with text, words and trees, read once and checked line by line."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import conllu
import numpy as np
import pandas as pd
from conllu.parser import DEFAULT_FIELD_PARSERS, DEFAULT_FIELDS, parse_comment_line, parse_line
from jaxtyping import Int

from analysis.errors import InputError
from analysis.files import expand, files_of, read_text, write_text
from analysis.texts.bundled import bundled_documents
from analysis.texts.examples import Example, Parse, require_tags
from analysis.texts.glue import sample

CONLLU = ".conllu"
FIELDS = {
    name: DEFAULT_FIELD_PARSERS[name] for name in ("id", "xpos", "head", "misc")
}  # other fields stay text
# The conllu library splits a line here. A form with two blanks in it would shift all later columns.
DIVISION = re.compile(r"\t| {2,}")
LEFT_OUT = {"-": "multiword tokens", ".": "empty nodes"}  # by the mark in their numbers


class Word(NamedTuple):
    """A syntactic word, as its line says: `head` is 0 for ROOT, else from 1; `entity` is a field of MISC, or ""."""

    form: str
    upos: str
    xpos: str
    relation: str
    head: int
    entity: str
    line: int


class Token(NamedTuple):
    """A token as written, and the positions (from 0) of the words in it: `don't` has two."""

    form: str
    words: range
    line: int


class Sentence(NamedTuple):
    """A sentence of a CoNLL-U file: its text, its syntactic words, its tokens as written and its comments.

    The text is the comment `# text`, or the tokens with the blanks that MISC asks for. `left_out` has kind, line and
    entity of each line that is not in the tree; `place` is the name of the file.
    """

    text: str
    words: list[Word]
    tokens: list[Token]
    comments: dict[str, str | None]
    left_out: list[tuple[str, int, str]]
    place: str

    def parse(self) -> Parse:
        """The arcs and tags of the sentence; raises InputError for a token that is not in its text.

        Each word of `don't` = do + n't has its part of the span. Words that are spelled otherwise share the span.
        """
        spans: list[tuple[int, int]] = []
        end = 0
        for token in self.tokens:
            start = self.text.find(token.form, end)
            if start < 0:
                raise InputError(
                    f"{self.place}, line {token.line}: {token.form!r} is not in its text: mend the # text line"
                )
            end = start + len(token.form)
            forms = [self.words[position].form for position in token.words]
            divided = "".join(forms) == token.form
            spans += (
                pairwise(accumulate(map(len, forms), initial=start))
                if divided
                else [(start, end)] * len(forms)
            )
        words = [*zip(self.words, spans, strict=True)]
        arcs = [(word.relation, *span, *spans[word.head - 1]) for word, span in words if word.head]
        return Parse(arcs, [(word.upos, *span) for word, span in words])


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


def read_sentences(path: str | Path) -> list[Sentence]:
    """The sentences of a CoNLL-U file; raises InputError as `read_sentence` does, and for a file without any."""
    path = expand(path)
    return sentences_of(read_text(path), str(path))


def sentences_of(text: str, place: str) -> list[Sentence]:
    """The sentences of a text in CoNLL-U that comes from `place`; empty lines part them."""
    blocks = groupby(enumerate(text.split("\n"), 1), lambda numbered: bool(numbered[1].strip()))
    sentences = [read_sentence(lines, place) for filled, lines in blocks if filled]
    if not sentences:
        raise InputError(f"{place} holds no sentence: give a CoNLL-U file")
    return sentences


def read_sentence(lines: Iterable[tuple[int, str]], place: str) -> Sentence:
    """The sentence in these numbered lines of the file called `place`.

    Raises InputError naming the line for a line without ten columns, words that are not numbered 1, 2, 3 and on, a
    multiword token that does not stand before all its words, a head that is missing or no word of the sentence, and
    heads that form a cycle.
    """
    words: list[Word] = []
    tokens: list[Token] = []
    comments: dict[str, str | None] = {}
    left_out: list[tuple[str, int, str]] = []
    spaced = ""
    covered = 0  # the number of the last word of a multiword token
    for number, line in lines:
        line, where = line.strip(), f"{place}, line {number}"
        if line.startswith("#"):
            comments.update(parse_comment_line(line))
            continue
        fields = _fields(line, where)
        identity, form, misc = fields["id"], fields["form"], fields["misc"] or {}
        entity, position = misc.get("Entity") or "", len(words) + 1
        if isinstance(identity, int):
            if identity != position:
                raise InputError(
                    f"{where}: the word is numbered {identity} where {position} follows: renumber it"
                )
            xpos, head = fields["xpos"] or "", fields["head"]
            words.append(Word(form, fields["upos"], xpos, fields["deprel"], head, entity, number))
            last = identity
        else:
            first, mark, last = identity
            left_out.append((LEFT_OUT[mark], number, entity))
            if mark == ".":
                continue
            if first != position or first <= covered:
                raise InputError(
                    f"{where}: the multiword token {first}-{last} does not stand before its words: move or renumber it"
                )
        if last > covered:
            tokens.append(Token(form, range(position - 1, last), number))
            spaced += form + ("" if misc.get("SpaceAfter") == "No" else " ")
            covered = last
    if covered > len(words):
        raise InputError(
            f"{place}, line {tokens[-1].line}: the multiword token {tokens[-1].form!r} goes up to word {covered}, the "
            f"sentence up to word {len(words)}: add the lines of its words"
        )
    _check_tree(words, place)
    text = comments.get("text") or spaced
    return Sentence(text.strip(), words, tokens, comments, left_out, place)


def _fields(line: str, where: str) -> conllu.Token:
    """The fields of a line; raises InputError for another number of columns and for wrong numbers."""
    columns = len(DIVISION.split(line))
    if columns != len(DEFAULT_FIELDS):
        raise InputError(f"{where}: {columns} columns: CoNLL-U has 10, divided by one tab each")
    try:
        fields = parse_line(line, DEFAULT_FIELDS, FIELDS)
    except conllu.exceptions.ParseException as error:
        raise InputError(f"{where}: {error} Mend the line") from error
    if fields["id"] is None:
        raise InputError(f"{where}: the word has no number: number it")
    return fields


def _check_tree(words: Sequence[Word], place: str) -> None:
    for number, word in enumerate(words, 1):
        if word.head is None or not 0 <= word.head <= len(words):
            raise InputError(
                f"{place}, line {word.line}: the head {word.head} is no word of the sentence, which has {len(words)}: "
                "give 0 or the number of a word"
            )
        if word.head == number:
            raise InputError(f"{place}, line {word.line}: the word is its own head: give 0 or another word")
    adrift = unrooted(np.array([word.head for word in words], dtype=int))
    if len(adrift):
        raise InputError(
            f"{place}, line {words[adrift[0]].line}: the heads from this word on form a cycle: mend the tree"
        )


def unrooted(heads: Int[np.ndarray, " word"]) -> Int[np.ndarray, " unrooted"]:
    """The words (0-based) whose chain of heads does not end at ROOT (0): those in and below a cycle."""
    ancestor = np.concatenate([[0], heads])
    for _ in range(len(ancestor).bit_length()):  # each step doubles the height climbed
        ancestor = ancestor[ancestor]
    return np.flatnonzero(ancestor[1:])


def read_treebank(path: str | Path) -> Treebank:
    """The words of a CoNLL-U file and the counts of the lines that are left out.

    Raises InputError as `read_sentence` does, for an entity on a line that is left out, for two documents of one name
    and for a file without words.
    """
    path = expand(path)
    sentences = read_sentences(path)
    counts: Counter[str] = Counter(dict.fromkeys(LEFT_OUT.values(), 0))
    rows = []
    for number, (document, sentence) in enumerate(zip(_documents(sentences, path), sentences, strict=True)):
        for kind, line, entity in sentence.left_out:
            if entity:
                raise InputError(
                    f"{path}, line {line}: an entity on one of the {kind}, which are left out: put it on a word"
                )
            counts[kind] += 1
        length = len(sentence.words)
        rows += [(document, number, position, length, *word) for position, word in enumerate(sentence.words)]
    if not rows:
        raise InputError(f"{path} holds no word: give a CoNLL-U file")
    columns = ["document", "sentence", "word", "length", *Word._fields]
    return Treebank(pd.DataFrame(rows, columns=columns), dict(counts))


def _documents(sentences: Iterable[Sentence], path: Path) -> Iterator[str]:
    """The document of each sentence."""
    names = [path.stem]
    for sentence in sentences:
        if "newdoc id" in sentence.comments or "newdoc" in sentence.comments:
            name = sentence.comments.get("newdoc id", f"{path.stem}, document {len(names)}")
            if name in names[1:]:
                raise InputError(f"{path}: two documents are called {name!r}: give each its own name")
            names.append(name)
        yield names[-1]


def conllu_files(names: Sequence[str], folder: Path, n: int, split: str, seed: int) -> list[Path]:
    """The files with these names, or in the folders of these names, or else a new file of `n` bundled documents.

    Raises InputError for a folder without .conllu files.
    """
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

    Raises InputError for a file that is missing or is no CoNLL-U, and for a word without a part of speech.
    """
    path = expand(treebank)
    parses = {sentence.text: sentence.parse() for sentence in read_sentences(path)}
    examples = [
        Example(f"{path.stem}-{row}", text, relations=tuple(parse.relations()), tags=tuple(parse.words()))
        for row, (text, parse) in sample([*enumerate(parses.items())], n, seed)
    ]
    require_tags({example.id: example.tags for example in examples}, path)
    return examples
