"""Corpora of any size as a stream of examples: text, JSONL, Parquet and CoNLL-U files.

A row is a line of text (.txt), an object on a line (.jsonl), a row of a table (.parquet) or a sentence with its gold
relations (.conllu). Empty lines are no rows. Only one row of a file, or a batch of a table, is in memory at a time.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, starmap
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from analysis.files import expand, files_of, suffix
from analysis.texts.examples import Example, check_text
from analysis.texts.treebank import CONLLU, blocks, read_sentence

GOLD, TEXT, OBJECTS, TABLE = CONLLU, ".txt", ".jsonl", ".parquet"
KINDS = (TEXT, OBJECTS, TABLE, GOLD)
BATCH = 1024  # rows of a table that are in memory together


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus by their names, in order, and the columns with the one or two texts of a row."""

    files: Mapping[str, Path]
    columns: tuple[str, ...] = ("text",)

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of every file, by its name."""
        return {name: path.stat().st_size for name, path in self.files.items()}

    @property
    def gold(self) -> bool:
        """Whether every file has gold relations."""
        return all(suffix(path) == GOLD for path in self.files.values())

    def examples(self, shard: int = 0, shards: int = 1) -> Iterator[Example]:
        """Every `shards`-th example from number `shard` (0-based) on, over all files in order.

        The id of an example is the name of its file and its row (0-based), which do not depend on the shard. Rows of
        other shards are not decoded. Raises InputError as it reads a row that is broken or has no text.
        """
        if not 0 <= shard < shards:
            raise InputError(f"shard is {shard}/{shards}: the shards of {shards} are 0 to {shards - 1}")
        return starmap(self._example, islice(self._rows(), shard, None, shards))

    def _rows(self) -> Iterator[tuple[str, int, int, Any]]:
        """File name, number, line and undecoded content of every row."""
        for name, path in self.files.items():
            try:
                for number, (line, row) in enumerate(_rows_of(path, self.columns)):
                    yield name, number, line, row
            except OSError as error:  # pyarrow's errors have several lines
                reason = error.strerror or " ".join(str(error).split())
                raise InputError(f"{path} cannot be read: {reason}: correct the path or the file") from error

    def _example(self, name: str, number: int, line: int, row: Any) -> Example:
        path, kind = self.files[name], suffix(self.files[name])
        place = f"{path}, {'row' if kind == TABLE else 'line'} {line}"
        texts, relations = [row], None
        if kind == GOLD:
            sentence = read_sentence(row, place)
            texts, relations = [sentence.text], tuple(sentence.parse.relations())
        elif kind != TEXT:
            fields = row if kind == TABLE else _json_object(row, place)
            texts = [fields.get(column) for column in self.columns]
        for text in texts:
            if not isinstance(text, str) or not text.strip():
                raise InputError(f"{place}: a text is missing or empty: fill it in or remove the row")
            if "\0" in text:
                raise InputError(f"{place}: binary: give text in UTF-8")
            check_text(text, place)
        return Example(f"{name}-{number}", *(text.strip() for text in texts), relations=relations)


def open_corpus(path: str | Path, columns: Sequence[str] = ("text",)) -> Corpus:
    """The corpus of one file, or of all text, JSONL, Parquet and CoNLL-U files of a folder, by their names.

    `columns` names the one or two texts of a row of JSONL or Parquet. Raises InputError for a file that cannot be read
    or is empty, and for a wrong first row; the other rows are checked as they are read.
    """
    if len(columns) not in (1, 2):
        raise InputError(f"columns is {' '.join(columns)}: name one column, or two for pairs of texts")
    root = expand(path)
    files = {root.name: root}
    if root.is_dir():
        files = {file.relative_to(root).as_posix(): file for file in files_of(root, KINDS)}
    if not files:
        raise InputError(f"{root} holds no file that ends in {', '.join(KINDS)}: name another folder")
    for name, file in files.items():
        if suffix(file) not in KINDS:
            raise InputError(f"{file}: the kind {file.suffix!r} is unknown: give {', '.join(KINDS)}")
        if next(Corpus({name: file}, tuple(columns)).examples(), None) is None:
            raise InputError(f"{file} is empty: give a file with rows, or remove it")
    return Corpus(files, tuple(columns))


def chunks(examples: Iterator[Example], size: int) -> Iterator[list[Example]]:
    """The examples in lists of `size`, the last one shorter."""
    return iter(lambda: list(islice(examples, size)), [])


def _rows_of(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """The line of each row in a file (in a table its number), and its content before it is decoded."""
    if suffix(path) == TABLE:
        yield from _table_rows(path, columns)
        return
    # Bytes that are not UTF-8 become halves of surrogate pairs, which `check_text` refuses.
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
        yield from blocks(file) if suffix(path) == GOLD else lines


def _table_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    import pyarrow.parquet

    number = 0
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            if missing := [column for column in columns if column not in file.schema_arrow.names]:
                names = ", ".join(file.schema_arrow.names)
                raise InputError(f"{path} has no column {missing[0]!r}: it has {names}")
            for batch in file.iter_batches(BATCH, columns=[*columns]):
                for row in batch.to_pylist():
                    yield number, row
                    number += 1
    except (pyarrow.lib.ArrowException, UnicodeDecodeError) as error:
        reason = f"is no Parquet file, or damaged after row {number}"
        raise InputError(f"{path} {reason}: write it again") from error


def _json_object(line: str, place: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except ValueError:
        raise InputError(f"{place}: not JSON, or cut short: give one object a line") from None
    if not isinstance(fields, dict):
        raise InputError(f"{place}: not a JSON object: give one object a line")
    return fields
