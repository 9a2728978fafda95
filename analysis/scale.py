"""Roles of heads on a corpus of any size: `python -m analysis.scale CORPUS OUTPUT` (pip install .[ray]).

Ray Data reads the texts, scores them and writes a row of scores for each to OUTPUT/scores/*.parquet. Its checkpoints
let a stopped run resume. A second pass over the scores makes OUTPUT/roles.csv, the role table of all texts.
"""

import argparse
import hashlib
import json
import logging
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import xarray as xr

from analysis.encoders.models import PRECISIONS, load_encoder
from analysis.errors import InputError, exit_status
from analysis.files import expand, replacing, suffix, write_text
from analysis.roles import DIMENSIONS
from analysis.scores.extraction import extract
from analysis.scores.sieves import resolve
from analysis.statistics.moments import merge, moments, moments_table
from analysis.statistics.roles import PUBLISHED_ROLES
from analysis.texts.examples import UNIVERSAL, Example, check_text
from analysis.texts.folders import files_of
from analysis.texts.syntax import parse, parser_name

try:
    import ray
    import ray.data
except ImportError:
    sys.exit("error: analysis.scale needs Ray: pip install .[ray]")

FORMATS = (".parquet", ".jsonl", ".txt")
STRINGS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
BLOCK = 256  # texts that are scored and saved together
SPARE = 2  # CPUs for reading and for the filter of finished texts: a resumed run would wait for them for ever


def read_rows(file: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a file: the columns, and the ids if it has any; a line of a .txt file is a text.

    Raises InputError for a line that is no JSON object, and for a column that is missing or holds no strings.
    """
    if suffix(file) == ".parquet":
        yield from read_parquet(file, columns)
        return
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if suffix(file) == ".txt":
                yield {columns[0]: line.strip()}
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"line {number} of {file} is no JSON: {first_line(error)}: correct it"
                ) from error
            if not isinstance(row, dict):
                raise InputError(
                    f'line {number} of {file} is no JSON object: write {{"{columns[0]}": "..."}}'
                )
            check_columns(columns, row, f"line {number} of {file}")
            yield row


def read_parquet(file: Path, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file; `texts_with_ids` checks their values, and this the type of whole columns."""
    source = pyarrow.dataset.dataset(file, format="parquet")
    check_columns(columns, source.schema.names, str(file))
    for name in columns:
        kind = source.schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not any(is_kind(kind) for is_kind in STRINGS):
            raise InputError(f"{file}: column {name!r} holds {kind}: make it a column of strings")
    names = [name for name in ("id", *columns) if name in source.schema.names]
    for batch in source.to_batches(columns=names):
        yield from batch.to_pylist()


def check_columns(columns: Sequence[str], names: Collection[str], place: str) -> None:
    """Raises InputError for a column that a file or a row lacks."""
    if missing := [name for name in columns if name not in names]:
        raise InputError(f"{place} has no column {missing[0]!r}: name others with --columns")


def texts_with_ids(name: str, file: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """The texts of a file that the corpus calls `name`; without an id, a text gets this name and its row (from 0).

    Raises InputError for a text that is missing, empty or no string, and for an id that is no string or whole number.
    """
    for number, row in enumerate(read_rows(file, columns)):
        place = f"{name}, row {number}"
        texts = {column: "" if row[column] is None else row[column] for column in columns}
        for text in texts.values():
            check_text(text, place)
        if not all(map(str.strip, texts.values())):
            raise InputError(f"{place}: a text is missing or empty: fill it in or remove the row")
        identifier = place if row.get("id") is None else row["id"]
        if type(identifier) not in (str, int):
            raise InputError(f"{place}: the id is {identifier!r}: give a string or a whole number")
        check_text(str(identifier), place)
        yield {"id": str(identifier)} | texts


def save_with_ids(files: Mapping[str, Path], columns: Sequence[str], folder: Path) -> None:
    """Writes the texts of files, by their names in the corpus, with ids as Parquet: Ray resumes by ids that it reads.

    What an earlier start left in the folder goes. Raises InputError for a file that cannot be read or holds no text,
    for an empty text, and for an id that two texts have.
    """
    for stale in folder.glob("[0-9][0-9][0-9][0-9][0-9].parquet"):
        stale.unlink()
    schema = pa.schema([(name, pa.string()) for name in ("id", *columns)])
    for number, (name, file) in enumerate(files.items()):
        texts = texts_with_ids(name, file, columns)
        try:
            copy = folder / f"{number:05d}.parquet"
            with replacing(copy) as path, pyarrow.parquet.ParquetWriter(path, schema) as writer:
                while batch := [*islice(texts, 2**14)]:
                    writer.write_table(pa.Table.from_pylist(batch, schema))
        except InputError:
            raise
        except (OSError, ValueError, pa.ArrowException) as error:
            raise InputError(f"{file} cannot be read: {first_line(error)}: correct the file") from error
    ids = pyarrow.dataset.dataset(folder).to_table(columns=["id"])["id"].value_counts()
    if double := [row["values"] for row in ids.to_pylist() if row["counts"] > 1]:
        raise InputError(f"two texts have the id {double[0]!r}: give every text an id of its own")
    if not len(ids):
        raise InputError(f"{next(iter(files.values()))} holds no text: give a file with texts")


class Scorer:
    """An actor: it loads the encoder once, and gives the scores of the texts that Ray hands it."""

    def __init__(self, model: Sequence[str], parser: str | None, roles: Sequence[str], **options: Any):
        self.encoder, self.parser, self.roles, self.options = load_encoder(*model), parser, roles, options

    def __call__(self, table: pa.Table) -> pa.Table:
        """The ids and the scores (role, layer, head; flattened) of a block of texts."""
        examples = [
            Example(*row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
        ]
        for example in examples:
            for text in example.texts:
                check_text(text, example.id)
        relations = parse(examples, self.parser) if self.parser else {example.id: () for example in examples}
        scores = extract(self.encoder, examples, relations, self.roles, progress=False, **self.options)
        values = scores.transpose(*DIMENSIONS).values.astype(np.float32)
        rows = pa.FixedSizeListArray.from_arrays(values.ravel(), values[0].size)
        return pa.table({"id": table["id"], "scores": rows})


def save_scores(output: Path, device: str, **scorer: Any) -> None:
    """Writes the scores that OUTPUT/scores lacks, on the cluster of RAY_ADDRESS or on this machine."""
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # the progress bars stay
    ray.init(
        os.environ.get("RAY_ADDRESS", "local"), log_to_driver=False, ignore_reinit_error=True,
        **({} if "RAY_ADDRESS" in os.environ else {"num_cpus": os.cpu_count() + SPARE, "include_dashboard": False}),
    )  # fmt: skip
    ray.data.DataContext.get_current().checkpoint_config = ray.data.checkpoint.CheckpointConfig(
        id_column="id", checkpoint_path=str(output / "checkpoint"), delete_checkpoint_on_success=False
    )
    kind = "GPU" if device == "cuda" else "CPU"
    actors = int(ray.cluster_resources().get(kind, 0)) - SPARE * (kind == "CPU")
    if actors < 1:
        raise InputError(f"the cluster has no {kind} to spare: start Ray with more, or give another --device")
    texts = ray.data.read_parquet(str(output / "texts")).repartition(target_num_rows_per_block=BLOCK)
    scores = texts.map_batches(
        Scorer, fn_constructor_kwargs=scorer, batch_format="pyarrow", batch_size=BLOCK, max_restarts=-1,
        max_task_retries=3, compute=ray.data.ActorPoolStrategy(size=actors), **{f"num_{kind.lower()}s": 1},
    )  # fmt: skip
    scores.write_parquet(str(output / "scores"))


def scores_table(output: Path, run: dict[str, Any]) -> pd.DataFrame:
    """The columns of `published_table` for all texts, from their scores, one file in memory at a time.

    Raises InputError if a file is damaged, and if a text has no scores or several, since a file was deleted or added.
    """
    names = {"role": run["roles"], "layer": range(run["layers"]), "head": range(run["heads"])}
    shape = [-1, *map(len, names.values())]
    counts = [pyarrow.dataset.dataset(output / "texts").count_rows(), 0]

    def parts() -> Iterator[xr.DataArray]:
        for path in sorted((output / "scores").glob("*.parquet")):
            table = pyarrow.parquet.read_table(path)
            counts[1] += len(table)
            yield xr.DataArray(
                table["scores"].combine_chunks().flatten().to_numpy().reshape(shape), names, DIMENSIONS
            )

    try:
        result = reduce(merge, map(moments, parts()))
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"the scores in {output} are damaged: {first_line(error)}: delete it, and run again"
        ) from error
    if counts[0] != counts[1]:
        raise InputError(
            f"{output} has the scores of {counts[1]} of {counts[0]} texts: delete it, and run again"
        )
    return moments_table(result)


def first_line(error: Exception) -> str:
    """The beginning of a library's message, without line breaks and the paths that it repeats."""
    words = [word for word in str(error).split() if not word.strip("'\".,:").startswith("/")]
    return " ".join(words)[:160]


def file_digest(file: Path) -> str:
    """The SHA-256 of a file's content."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def run(options: argparse.Namespace) -> None:
    """Scores the corpus and writes the role table; raises InputError for wrong input, also an output of another run."""
    corpus, output = expand(options.corpus), expand(options.output).absolute()  # as Ray needs it
    paths = files_of(corpus, FORMATS) if corpus.is_dir() else [corpus]
    files = {
        path.relative_to(corpus if corpus.is_dir() else corpus.parent).as_posix(): path for path in paths
    }
    if not files or {*map(suffix, files)} - {*FORMATS} or not all(path.is_file() for path in paths):
        raise InputError(
            f"{corpus} is no corpus: give a file that ends in {', '.join(FORMATS)}, or a folder of them"
        )
    places = corpus.resolve(), output.resolve()
    if places[0].is_relative_to(places[1]) or places[1].is_relative_to(places[0]):
        raise InputError(f"{output} and {corpus} lie in one another: name a folder outside of the corpus")
    if len(options.columns) > 2:
        raise InputError(
            f"columns is {' '.join(options.columns)}: name one column, or two for pairs of texts"
        )
    resolve(options.roles, {*UNIVERSAL}, "corrected")  # raises for an unknown role
    encoder = load_encoder(options.encoder, options.device, options.precision)
    settings = {name: getattr(options, name) for name in ("columns", "roles", "max_tokens")}
    settings["parser"] = options.parser and parser_name(
        options.parser
    )  # raises for one that cannot be loaded
    contents = {name: file_digest(file) for name, file in files.items()}
    weights = {name: value for name, value in encoder.provenance.items() if name != "device"}
    shape = {"layers": encoder.layers, "heads": encoder.heads}
    this_run = json.loads(json.dumps(settings | {"files": contents} | weights | shape))
    record, is_same = output / "run.json", False
    with suppress(OSError, ValueError):  # missing or damaged
        is_same = json.loads(record.read_text(encoding="utf-8")) == this_run
    if not is_same and any(output.glob("scores/*")):
        raise InputError(f"{record} is of another run: name another folder")
    if not is_same:
        (output / "texts").mkdir(parents=True, exist_ok=True)
        save_with_ids(files, options.columns, output / "texts")
        write_text(record, json.dumps(this_run, indent=1) + "\n")
    model = options.encoder, options.device, options.precision
    scorer = {"model": model, "parser": options.parser, "roles": options.roles}
    try:
        save_scores(output, options.device, max_tokens=options.max_tokens, budget=options.budget, **scorer)
    except ray.exceptions.RayError as error:
        raise InputError(f"Ray ended the run: {first_line(error)}") from error
    write_text(output / "roles.csv", scores_table(output, this_run).to_csv(index=False, lineterminator="\n"))
    print(output / "roles.csv")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m analysis.scale", description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("corpus", help="a .parquet, .jsonl or .txt file, or a folder of them")
    add("output", help="a folder of this run alone")
    add("--encoder", default="minilm", help="minilm, mpnet, tiny, a checkpoint folder or a Hub id")
    add("--columns", nargs="+", default=["text"], help="the columns with the one or two texts of a row")
    add("--parser", help="a spaCy pipeline; without one, grammatical roles cannot be tested")
    add("--roles", nargs="+", default=[*PUBLISHED_ROLES], help="default: the published ones")
    add("--max-tokens", type=int, default=128)
    add("--device", default="cpu", help="cpu, or cuda: one actor on each GPU")
    add("--precision", default="float32", choices=PRECISIONS)
    add("--budget", type=int, default=2048, help="padded tokens of a batch")
    options = parser.parse_args(arguments)
    return exit_status(lambda: run(options))


if __name__ == "__main__":
    sys.exit(main())
