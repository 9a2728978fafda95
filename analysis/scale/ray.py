"""All shards of a run on a Ray cluster: tasks on CPUs read and parse them, actors that hold the encoder score them.

Both stages run at the same time, joined by Ray Data: a row is a shard with its sequences. Ray repeats the task of a
worker that dies. The files are those of the loop (see `extract_corpus`). Needs the extra `ray`.
"""

import json
import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from tqdm import tqdm

from analysis.encoders.models import Encoder, load_encoder
from analysis.errors import InputError
from analysis.scale.cluster import Plan, cluster, in_one_line, plan
from analysis.scale.loop import (
    Settings,
    check_output,
    claim,
    identity,
    is_finished,
    parsed,
    remove_unfinished,
    shard_path,
    write_scores,
)
from analysis.texts.corpora import Corpus
from analysis.texts.examples import Example, Relation

RETRIES = 3  # of a task whose worker dies; after them the run ends
os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # for lack of memory; Ray's default has no limit
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors come back as exceptions or are tried again
try:
    import ray
    import ray.data
except ImportError as error:
    raise InputError("--engine ray needs Ray: pip install .[ray], or leave the engine out") from error

SHARD = pa.schema({"shard": pa.int64(), "examples": pa.large_list(pa.large_string()), "error": pa.string()})
DONE = pa.schema({"shard": pa.int64(), "error": pa.string()})


@dataclass(frozen=True)
class Job:
    """A run, for its workers: `model` holds the arguments of `load_encoder`, `folder` is the working folder."""

    corpus: Corpus
    output: Path
    model: tuple[str, str, str]
    settings: Settings
    run: Mapping[str, Any]
    budget: int
    folder: str

    def path(self, shard: int) -> Path:
        """The file of one shard."""
        return shard_path(self.output, shard, self.settings.shards)


def extract_shards(
    corpus: Corpus,
    output: Path,
    model: tuple[str, str, str],
    settings: Settings,
    budget: int = 2048,
    actors_per_gpu: int = 1,
    progress: bool = True,
) -> Path:
    """Writes all shards of a run that are not there yet; returns the output folder.

    `model` holds the arguments of `load_encoder`: name, device, precision. All rows are read before one is scored.
    The cluster is that of this process, else that of RAY_ADDRESS, else one that ends with the call. Raises InputError
    as `extract_shard` does, whichever process meets the error; only finished shards stay.
    """
    name, device, precision = model
    if device.startswith("cuda:"):
        raise InputError(f"device is {device}: give cuda, since every actor has a GPU of its own")
    if actors_per_gpu < 1:
        raise InputError(f"actors per GPU is {actors_per_gpu}: give 1 or more")
    run = identity(corpus, load_encoder(name, "cpu", precision), settings)  # this computer may have no GPU
    check_output(output, run)
    job = Job(corpus, output, model, settings, run, budget, os.getcwd())
    shards = [shard for shard in range(settings.shards) if not is_finished(job.path(shard))]
    if not shards:
        return output
    total = sum(1 for _ in tqdm(corpus.examples(), "reading", unit="sequence", disable=not progress))
    claim(output, run)
    sizes = {shard: len(range(shard, total, settings.shards)) for shard in shards}
    try:
        with cluster() as nodes:
            _score_all(job, sizes, plan(nodes, device, settings, len(shards), actors_per_gpu), progress)
    finally:
        for shard in shards:  # a process that was killed leaves its files
            remove_unfinished(job.path(shard))
            for attempt in _attempts(job, shard):
                attempt.unlink(missing_ok=True)
    return output


def _score_all(job: Job, sizes: Mapping[int, int], plan: Plan, progress: bool) -> None:
    """Scores the shards of these `sizes` (sequences); raises InputError for the first error of any process."""
    total = sum(sizes.values())
    try:
        with (
            tqdm(total=total, desc="attention", unit="sequence", disable=not progress) as bar,
            closing(_run(job, [*sizes], plan)) as rows,
        ):
            for row in rows:
                if row["error"]:
                    raise InputError(row["error"])
                bar.update(sizes[row["shard"]])
    except ray.exceptions.RayTaskError:  # a fault of this code
        raise
    except ray.exceptions.RayError as error:  # no node is left, a node lacks this package, or workers die
        of = job.settings.shards
        deadly = ", ".join(f"{shard}/{of}" for shard in sizes if len(_attempts(job, shard)) > RETRIES)
        where = f" at shard {deadly}, whose workers keep dying" if deadly else ""
        raise InputError(
            f"Ray ended the run{where}, see its logs: {in_one_line(error, 300)}: if workers die, give them more "
            "memory, smaller shards, or a smaller --budget"
        ) from error


def _attempts(job: Job, shard: int) -> list[Path]:
    """The files that workers of a shard left when they died (see `_result`)."""
    return [*job.output.glob(f".attempt-{shard}-*")]


def _run(job: Job, shards: Sequence[int], plan: Plan) -> Iterator[dict[str, Any]]:
    """The shards as they are finished, or their errors."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    blocks = ray.data.from_items([{"shard": shard} for shard in shards], override_num_blocks=len(shards))
    read = blocks.map_batches(
        read_shard,
        batch_size=1,
        batch_format="pyarrow",
        fn_args=(job,),
        num_cpus=plan.reader_cpus,
        max_retries=RETRIES,
    )
    scored = read.map_batches(
        Scorer,
        batch_size=1,
        batch_format="pyarrow",
        fn_constructor_args=(job, max(1, round(plan.actor_cpus))),
        compute=ray.data.ActorPoolStrategy(size=plan.actors),
        num_cpus=plan.actor_cpus,
        num_gpus=plan.actor_gpus,
        max_task_retries=RETRIES,
    )
    yield from scored.iter_rows()


def read_shard(batch: pa.Table, job: Job) -> pa.Table:
    """A shard's number and its examples with their relations, or the error of reading and parsing them."""
    shard = batch["shard"][0].as_py()

    def read() -> list[str]:
        parts = parsed(job.corpus.examples(shard, job.settings.shards), job.settings.parser)
        return [
            encoded(example if relations is None else replace(example, relations=relations[example.id]))
            for examples, relations in parts
            for example in examples
        ]

    examples, error = _result(job, shard, read)
    return pa.Table.from_pylist([{"shard": shard, "examples": examples, "error": error}], SHARD)


class Scorer:
    """Scores shards and writes their files; loads its encoder once, with the first shard."""

    def __init__(self, job: Job, threads: int):
        torch.set_num_threads(threads)
        self.job = job

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of the job; raises InputError if this node has other weights under its name."""
        encoder = load_encoder(*self.job.model)
        if encoder.digest != self.job.run["weights_sha256"]:
            raise InputError(
                f"encoder {encoder.name} has other weights on {socket.gethostname()}: copy it there"
            )
        return encoder

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Writes one shard; gives its number and the error, if any."""
        shard, error = batch["shard"][0].as_py(), batch["error"][0].as_py()
        if error is None:
            rows = batch["examples"][0]
            _, error = _result(self.job, shard, lambda: self._score(shard, rows))
        return pa.Table.from_pylist([{"shard": shard, "error": error}], DONE)

    def _score(self, shard: int, rows: pa.LargeListScalar) -> None:
        job = self.job
        if job.path(shard).exists():  # written before, by a node that was lost
            return
        examples = (decoded(row.as_py()) for row in rows)
        parts = parsed(examples, job.settings.parser and "gold")
        write_scores(
            job.path(shard), parts, self.encoder, job.settings, {**job.run, "shard": shard}, job.budget
        )


def _result(job: Job, shard: int, work: Callable[[], Any]) -> tuple[Any, str | None]:
    """What the work on a shard returns in the folder of the job, or the line of its InputError.

    While it works, a file in the output folder marks the attempt. A process that dies leaves this file.
    """
    try:
        os.chdir(job.folder)
        handle, attempt = tempfile.mkstemp(dir=job.output, prefix=f".attempt-{shard}-")
        os.close(handle)
    except OSError:
        lost = job.output if Path(job.folder).is_dir() else job.folder
        where = f"{lost} is not on {socket.gethostname()}, or cannot be written there"
        return None, f"{where}: give all nodes the same folders"
    try:
        return work(), None
    except InputError as error:
        return None, str(error)
    finally:
        Path(attempt).unlink(missing_ok=True)


def encoded(example: Example) -> str:
    """An example as JSON: its id, texts and relations."""
    return json.dumps([example.id, example.texts, example.relations])


def decoded(text: str) -> Example:
    """The example of a JSON text."""
    name, texts, found = json.loads(text)
    if found is None:
        return Example(name, *texts)
    relations = (
        Relation(label, text, tuple(dependent), tuple(head)) for label, text, dependent, head in found
    )
    return Example(name, *texts, relations=tuple(relations))
