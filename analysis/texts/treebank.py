"""CoNLL-U files: their sentences with text, words and trees, read once and checked line by line."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
# The other fields stay text.
FIELD_PARSERS = {name: DEFAULT_FIELD_PARSERS[name] for name in ("id", "xpos", "head", "misc")}
# The conllu library splits a line here. A form with two spaces in it would shift all later columns.
SEPARATOR = re.compile(r"\t| {2,}")
LEFT_OUT = {"-": "multiword tokens", ".": "empty nodes"}  # by the mark in their numbers


class Word(NamedTuple):
    """A syntactic word as its line gives it: `head` is 0 for ROOT, else from 1; `entity` is a field of MISC, or ""."""

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
    """A sentence of a CoNLL-U file: its text, its syntactic words with their character spans, and its comments.

    The text is the comment `# text`, or the tokens with the spaces that MISC asks for. Each word of `don't` = do + n't
    has its part of the span; words that are spelled otherwise share the span of their token. `left_out` has kind, line
    and entity of each line that is not in the tree.
    """

    text: str
    words: list[Word]
    spans: list[tuple[int, int]]
    comments: dict[str, str | None]
    left_out: list[tuple[str, int, str]]

    def parse(self) -> Parse:
        """The arcs and tags of the sentence."""
        located = [*zip(self.words, self.spans, strict=True)]
        arcs = [(word.relation, *span, *self.spans[word.head - 1]) for word, span in located if word.head]
        return Parse(arcs, [(word.upos, *span) for word, span in located])


class Treebank(NamedTuple):
    """The syntactic words and the sentences of CoNLL-U files, and the counts of their other lines.

    `words` has a row per syntactic word, in the order of the files: document, sentence (0-based, over all files), word
    (0-based position in its sentence), length (words of the sentence), and the fields of `Word`. `sentences` has a row
    per sentence: document, paragraph (0-based, in its file) and text. `left_out` counts multiword tokens (`3-4`) and
    empty nodes (`8.1`), which are not in trees.
    """

    words: pd.DataFrame
    sentences: pd.DataFrame
    left_out: dict[str, int]


def read_trees(files: Iterable[str | Path]) -> Treebank:
    """The words and sentences of CoNLL-U files.

    Raises InputError as `read_sentence` does, for an entity on a line that is left out, for two documents of one name
    in a file and for a file without words.
    """
    return trees_of({path: read_text(path) for path in map(expand, files)})


def trees_of(texts: Mapping[Path, str]) -> Treebank:
    """The words and sentences of texts in CoNLL-U by the paths that messages name; raises as `read_trees` does."""
    words, sentences, left_out = [], [], Counter(dict.fromkeys(LEFT_OUT.values(), 0))
    for path, text in texts.items():
        before = len(words)
        found = sentences_of(text, str(path))
        for (document, paragraph), sentence in zip(_documents(found, path), found, strict=True):
            for kind, line, entity in sentence.left_out:
                if entity:
                    raise InputError(
                        f"{path}, line {line}: an entity on one of the {kind}, which are left out: put it on a word"
                    )
                left_out[kind] += 1
            place, length = (document, len(sentences)), len(sentence.words)
            words += [(*place, position, length, *word) for position, word in enumerate(sentence.words)]
            sentences.append((document, paragraph, sentence.text))
        if len(words) == before:
            raise InputError(f"{path} holds no word: give a CoNLL-U file")
    columns = ["document", "sentence", "word", "length", *Word._fields]
    return Treebank(
        pd.DataFrame(words, columns=columns),
        pd.DataFrame(sentences, columns=["document", "paragraph", "text"]),
        dict(left_out),
    )


def _documents(sentences: Iterable[Sentence], path: Path) -> Iterator[tuple[str, int]]:
    """The document of each sentence, and the number of its paragraph in the file.

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


def sentences_of(text: str, place: str) -> list[Sentence]:
    """The sentences of a text in CoNLL-U that comes from `place`, divided by empty lines.

    Raises InputError as `read_sentence` does, and for a text without a sentence.
    """
    blocks = groupby(enumerate(text.split("\n"), 1), lambda numbered: bool(numbered[1].strip()))
    sentences = [read_sentence(lines, place) for filled, lines in blocks if filled]
    if not sentences:
        raise InputError(f"{place} holds no sentence: give a CoNLL-U file")
    return sentences


def read_sentence(lines: Iterable[tuple[int, str]], place: str) -> Sentence:
    """The sentence in these numbered lines of the file called `place`.

    Raises InputError naming the line for a line without ten columns, words that are not numbered 1, 2, 3 and on, a
    multiword token that does not precede all its words, a head that is missing or no word of the sentence, heads that
    form a cycle, and a token that is not in the text.
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
                    f"{where}: the multiword token {first}-{last} does not precede its words: move or renumber it"
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
    text = (comments.get("text") or spaced).strip()
    return Sentence(text, words, [*_spans(text, tokens, words, place)], comments, left_out)


def _fields(line: str, where: str) -> conllu.Token:
    """The fields of a line; raises InputError for another number of columns and for wrong numbers."""
    columns = len(SEPARATOR.split(line))
    if columns != len(DEFAULT_FIELDS):
        raise InputError(f"{where}: {columns} columns: CoNLL-U has 10, divided by one tab each")
    try:
        fields = parse_line(line, DEFAULT_FIELDS, FIELD_PARSERS)
    except conllu.exceptions.ParseException as error:
        raise InputError(f"{where}: {error} Correct the line") from error
    if fields["id"] is None:
        raise InputError(f"{where}: the word has no number: number it")
    return fields


def _spans(
    text: str, tokens: Iterable[Token], words: Sequence[Word], place: str
) -> Iterator[tuple[int, int]]:
    """The character span of each word in the text of its sentence."""
    end = 0
    for token in tokens:
        start = text.find(token.form, end)
        if start < 0:
            raise InputError(
                f"{place}, line {token.line}: {token.form!r} is not in its text: correct the # text line"
            )
        end = start + len(token.form)
        forms = [words[position].form for position in token.words]
        if "".join(forms) == token.form:
            yield from pairwise(accumulate(map(len, forms), initial=start))
        else:
            yield from [(start, end)] * len(forms)


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
            f"{place}, line {words[adrift[0]].line}: the heads from this word on form a cycle: correct the tree"
        )


def unrooted(heads: Int[np.ndarray, " word"]) -> Int[np.ndarray, " unrooted"]:
    """The words (0-based) whose chain of heads does not end at ROOT (0): those in and below a cycle."""
    ancestor = np.concatenate([[0], heads])
    for _ in range(len(ancestor).bit_length()):  # each step doubles the height climbed
        ancestor = ancestor[ancestor]
    return np.flatnonzero(ancestor[1:])


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


def parses_of(path: Path) -> dict[str, Parse]:
    """The parse of each text of a CoNLL-U file; raises InputError as `sentences_of` does."""
    return {sentence.text: sentence.parse() for sentence in sentences_of(read_text(path), str(path))}


def treebank_examples(treebank: str | Path, n: int | None = None, seed: int = 0) -> list[Example]:
    """The sentences of different texts of a CoNLL-U file, or a seeded sample of `n`, with gold relations and tags.

    Raises InputError for a file that is missing or is no CoNLL-U, and for a word without a part of speech.
    """
    path = expand(treebank)
    examples = [
        Example(f"{path.stem}-{row}", text, relations=tuple(parse.relations()), tags=tuple(parse.words()))
        for row, (text, parse) in sample([*enumerate(parses_of(path).items())], n, seed)
    ]
    require_tags({example.id: example.tags for example in examples}, path)
    return examples
