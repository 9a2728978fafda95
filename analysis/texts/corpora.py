"""Corpora of any size as a stream of examples in constant memory: text, JSONL, Parquet and CoNLL-U files.

A row is a line of text (.txt), an object on a line (.jsonl), a row of a table (.parquet) or a sentence with its gold
relations (.conllu). Empty lines are no rows. Only one row of a file, or a batch of a table, is in memory at a time.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from analysis.errors import InputError
from analysis.files import expand, files_of, suffix
from analysis.texts.examples import Example, Relation, check_text
from analysis.texts.treebank import CONLLU, read_sentence

LONGEST = 2**20  # bytes of a line, which is in memory as a whole
BATCH = 1024  # rows of a table that are in memory together
GOLD, PARQUET = CONLLU, ".parquet"
Content = tuple[Sequence[Any], tuple[Relation, ...] | None]  # texts, not yet checked, and gold relations


class Format(NamedTuple):
    """How to divide a kind of file into rows, each with its line or row number, and how to decode a row.

    `decode` gets a row, its place (file and line) and the columns.
    """

    rows: Callable[[Path, Sequence[str]], Iterator[tuple[int, Any]]]
    decode: Callable[[Any, str, Sequence[str]], Content]
    unit: str = "line"


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
        other shards are skipped without decoding. Raises InputError for a shard out of range and, while it reads, for
        a row that cannot be read or has no text.
        """
        if not 0 <= shard < shards:
            raise InputError(f"shard is {shard}/{shards}: the shards of {shards} are 0 to {shards - 1}")
        return map(self._example, islice(self._rows(), shard, None, shards))

    def _rows(self) -> Iterator[tuple[str, int, int, Any]]:
        """File name, number, line and undecoded content of every row."""
        for name, path in self.files.items():
            try:
                for number, (line, row) in enumerate(FORMATS[suffix(path)].rows(path, self.columns)):
                    yield name, number, line, row
            except OSError as error:  # pyarrow's errors have several lines
                reason = error.strerror or " ".join(str(error).split())
                raise InputError(f"{path} cannot be read: {reason}: correct the path or the file") from error

    def _example(self, numbered: tuple[str, int, int, Any]) -> Example:
        name, number, line, row = numbered
        kind = FORMATS[suffix(self.files[name])]
        place = f"{self.files[name]}, {kind.unit} {line}"
        texts, relations = kind.decode(row, place, self.columns)
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise InputError(f"{place}: a text is missing or empty: fill it in or remove the row")
        for text in texts:
            check_text(text, place)
        return Example(f"{name}-{number}", *(text.strip() for text in texts), relations=relations)


def open_corpus(path: str | Path, columns: Sequence[str] = ("text",)) -> Corpus:
    """The corpus of one file, or of all text, JSONL, Parquet and CoNLL-U files of a folder, by their names.

    Hidden files and folders, such as `.ipynb_checkpoints`, are not read. `columns` names the one or two texts of a row
    of JSONL or Parquet. Raises InputError for files that are missing, unreadable, empty, of another kind or lack a
    column, and for a wrong first row; the other rows are checked as they are read.
    """
    if len(columns) not in (1, 2):
        raise InputError(f"columns is {' '.join(columns)}: name one column, or two for pairs of texts")
    root = expand(path)
    files = {root.name: root}
    if root.is_dir():
        files = {file.relative_to(root).as_posix(): file for file in files_of(root, FORMATS)}
    if not files:
        raise InputError(f"{root} holds no file that ends in {', '.join(FORMATS)}: name another folder")
    for name, file in files.items():
        if suffix(file) not in FORMATS:
            raise InputError(f"{file}: the kind {file.suffix!r} is unknown: give {', '.join(FORMATS)}")
        if next(Corpus({name: file}, tuple(columns)).examples(), None) is None:
            raise InputError(f"{file} is empty: give a file with rows, or remove it")
    return Corpus(files, tuple(columns))


def chunks(examples: Iterator[Example], size: int) -> Iterator[list[Example]]:
    """The examples in lists of `size`, the last one shorter."""
    return iter(lambda: list(islice(examples, size)), [])


def _lines(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        if file.read(len(BOM_UTF8)) != BOM_UTF8:
            file.seek(0)
        yield from enumerate(iter(partial(file.readline, LONGEST + 1), b""), start=1)


def _filled_lines(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, bytes]]:
    return ((number, line) for number, line in _lines(path, columns) if line.strip())


def _text(row: bytes, place: str) -> str:
    if len(row) > LONGEST:
        raise InputError(f"{place}: longer than {LONGEST} bytes: give one text a line")
    if b"\0" in row:
        raise InputError(f"{place}: binary: give text in UTF-8")
    try:
        return row.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{place}: not UTF-8, or cut short: save the file in UTF-8") from None


def _line_content(row: bytes, place: str, columns: Sequence[str]) -> Content:
    return [_text(row, place)], None


def _json_content(row: bytes, place: str, columns: Sequence[str]) -> Content:
    text = _text(row, place)
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{place}: not JSON, or cut short: give one object a line") from None
    if not isinstance(entry, dict):
        raise InputError(f"{place}: not a JSON object: give one object a line")
    return [entry.get(column) for column in columns], None


def _parquet_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[Any]]]:
    """The cells of each row, which are decoded later."""
    import pyarrow.lib
    import pyarrow.parquet

    number = 0
    try:
        file = pyarrow.parquet.ParquetFile(path)
        for column in columns:
            if column not in (names := file.schema_arrow.names):
                raise InputError(f"{path} has no column {column!r}: it has {', '.join(names)}")
        for batch in file.iter_batches(BATCH, columns=[*columns]):
            for cells in zip(*(batch.column(column) for column in columns), strict=True):
                yield number, cells
                number += 1
    except pyarrow.lib.ArrowException as error:
        raise InputError(
            f"{path} is no Parquet file, or damaged after row {number}: write it again"
        ) from error


def _parquet_content(row: Sequence[Any], place: str, columns: Sequence[str]) -> Content:
    try:
        return [cell.as_py() for cell in row], None
    except UnicodeDecodeError:
        raise InputError(f"{place}: not UTF-8: write the file again") from None


def _conllu_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, tuple[Path, list]]]:
    """The lines of each sentence, which ends with an empty line; without one at its end, the file was cut."""
    sentence: list[tuple[int, bytes]] = []
    for filled, lines in groupby(_lines(path, columns), lambda numbered: bool(numbered[1].strip())):
        if filled:
            sentence = [*lines]
        elif sentence:
            yield sentence[0][0], (path, sentence)
            sentence = []
    if sentence:
        raise InputError(
            f"{path}, line {sentence[0][0]}: the last sentence is cut short: end it with an empty line"
        )


def _conllu_content(row: tuple[Path, list], place: str, columns: Sequence[str]) -> Content:
    path, lines = row
    decoded = ((number, _text(line, f"{path}, line {number}")) for number, line in lines)
    sentence = read_sentence(decoded, str(path))
    return [sentence.text], tuple(sentence.parse().relations())


FORMATS = {
    ".txt": Format(_filled_lines, _line_content),
    ".jsonl": Format(_filled_lines, _json_content),
    PARQUET: Format(_parquet_rows, _parquet_content, "row"),
    GOLD: Format(_conllu_rows, _conllu_content),
}
