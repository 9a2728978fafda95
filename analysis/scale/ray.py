"""All shards of a run on a Ray cluster: tasks on CPUs read and parse them, actors that hold the encoder score them.

Both stages run at the same time, joined by Ray Data: a row is a shard with its sequences. A shard whose task or actor
dies is done again. The files are those of the loop (see `extract_corpus`). Needs the extra `ray`.
"""

import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import torch
from tqdm import tqdm

from analysis.encoders.models import Encoder, load_encoder
from analysis.errors import InputError
from analysis.scale.attempts import Attempts
from analysis.scale.loop import (
    Settings,
    check_output,
    claim,
    identity,
    parsed,
    remove_unfinished,
    shard_path,
    write_scores,
)
from analysis.scale.shards import read_provenance
from analysis.texts.corpora import Corpus
from analysis.texts.examples import Example, Relation

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors come back as exceptions or are tried again
try:
    import ray
    import ray.data
except ImportError as error:
    raise InputError("--engine ray needs Ray: pip install .[ray], or leave the engine out") from error

ATTEMPTS = 4  # a shard that as many processes died of is not tried again
THREADS = 4  # of an actor without a GPU
# What of its CPUs a node gives to actors; the rest reads, where spaCy parses about as long as a small encoder scores.
SHARES = {"reading": 0.75, "parsing": 0.5}
SPAN = pa.list_(pa.int32(), 2)
RELATION = pa.struct({"label": pa.string(), "text": pa.int8(), "dependent": SPAN, "head": SPAN})
EXAMPLE = pa.struct(
    {"id": pa.string(), "texts": pa.list_(pa.large_string()), "relations": pa.large_list(RELATION)}
)
SHARD = pa.schema({"shard": pa.int64(), "examples": pa.large_list(EXAMPLE), "error": pa.string()})
DONE = pa.schema({"shard": pa.int64(), "error": pa.string()})


@dataclass(frozen=True)
class Job:
    """What the workers know of a run: `model` is what `load_encoder` takes, `folder` where paths start."""

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


class Plan(NamedTuple):
    """How many actors score, and what one actor and one reading task take of their node."""

    actors: int
    actor_cpus: float
    actor_gpus: float
    reader_cpus: float


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

    `model` is what `load_encoder` takes: name, device, precision. All rows are read once before the first is scored.
    The cluster is that of this process, else that of RAY_ADDRESS, else one that ends with the call. Raises InputError
    as `extract_shard` does, whichever process meets the error; shards that are finished stay, and nothing else.
    """
    name, device, precision = model
    if device.startswith("cuda:"):
        raise InputError(f"device is {device}: give cuda, since every actor has a GPU of its own")
    if actors_per_gpu < 1:
        raise InputError(f"actors per GPU is {actors_per_gpu}: give 1 or more")
    run = identity(corpus, load_encoder(name, "cpu", precision), settings)  # where it starts may have no GPU
    check_output(output, run)
    job = Job(corpus, output, model, settings, run, budget, os.getcwd())
    paths = {shard: job.path(shard) for shard in range(settings.shards)}
    for path in filter(Path.exists, paths.values()):
        read_provenance(path)
    unfinished = [shard for shard, path in paths.items() if not path.exists()]
    if not unfinished:
        return output
    total = sum(1 for _ in tqdm(corpus.examples(), "reading", unit="sequence", disable=not progress))
    claim(output, run)
    sizes = {shard: len(range(shard, total, settings.shards)) for shard in unfinished}
    try:
        with (
            cluster() as nodes,
            tqdm(total=sum(sizes.values()), desc="attention", unit="sequence", disable=not progress) as bar,
            closing(
                _run(job, unfinished, plan(nodes, device, settings, len(unfinished), actors_per_gpu))
            ) as rows,
        ):
            for row in rows:
                if row["error"]:
                    raise InputError(row["error"])
                bar.update(sizes[row["shard"]])
    except ray.exceptions.RayTaskError:  # a fault of this code
        raise
    except ray.exceptions.RayError as error:  # of the cluster: no node is left, or lacks this package
        raise InputError(f"Ray ended the run, see its logs: {' '.join(str(error).split())[:300]}") from error
    finally:
        for shard in unfinished:  # processes that were ended had no time to tidy up
            remove_unfinished(paths[shard])
    return output


@contextmanager
def cluster() -> Iterator[list[dict[str, float]]]:
    """A running cluster, as the resources of its nodes; one that was started here ends with the context.

    Raises InputError where that of RAY_ADDRESS does not answer.
    """
    address = os.environ.get("RAY_ADDRESS")
    ours = not ray.is_initialized()
    if ours:
        quiet = {"include_dashboard": False} if address is None else {}
        try:
            if address:
                _reach(address)
            with _silent(), _own_termination():
                ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **quiet)
        except (OSError, RuntimeError, ValueError) as error:
            where = f"RAY_ADDRESS is {address}" if address else "a local cluster"
            raise InputError(f"{where}: Ray does not start: {' '.join(str(error).split())[:200]}") from error
    try:
        yield [node["Resources"] for node in ray.nodes() if node["Alive"]]
    finally:
        if ours:
            ray.shutdown()


def _reach(address: str) -> None:
    """Raises OSError where nothing listens at host:port, which Ray tries for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def _own_termination() -> Iterator[None]:
    """SIGTERM goes on to end the command as it did before; Ray would abort the process."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)


@contextmanager
def _silent() -> Iterator[None]:
    """Nothing that C++ code prints is seen."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def plan(
    nodes: Sequence[Mapping[str, float]],
    device: str,
    settings: Settings,
    shards: int,
    actors_per_gpu: int = 1,
) -> Plan:
    """A plan that always leaves CPUs to reading, without which actors would wait for ever.

    With GPUs, `actors_per_gpu` actors on each; else actors of up to THREADS CPUs. However actors are packed, a node
    keeps CPUs for a reading task, since together they take no more than their share of every node. Raises InputError
    where a GPU lacks.
    """
    share = SHARES["reading" if settings.parser in (None, "gold") else "parsing"]
    needed = int(device == "cuda")
    nodes = [node for node in nodes if node.get("CPU", 0) > 0]
    hosts = [node for node in nodes if node.get("GPU", 0) >= needed]
    if not hosts:
        raise InputError(
            "the cluster has no node with a GPU and a CPU: give --device cpu, or start Ray on such a node"
        )
    if needed:
        places = [int(node["GPU"]) * actors_per_gpu for node in hosts]
        cpus = min(1.0, *(node["CPU"] * share / count for node, count in zip(hosts, places, strict=True)))
    else:
        cpus = min(float(THREADS), *(node["CPU"] * share for node in hosts))
        places = [math.floor(node["CPU"] * share / cpus + 1e-6) for node in hosts]
    reader = min(1.0, *(node["CPU"] * (1 - share) for node in nodes))
    if reader == cpus:  # Ray Data runs stages of equal needs in one process, one after the other
        reader *= 0.9
    return Plan(min(sum(places), shards), cpus, needed / actors_per_gpu, reader)


def _run(job: Job, shards: Sequence[int], plan: Plan) -> Iterator[dict[str, Any]]:
    """The shards as they are finished, or their errors."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    attempts = ray.remote(Attempts).options(num_cpus=0, max_restarts=-1).remote()
    blocks = ray.data.from_items([{"shard": shard} for shard in shards], override_num_blocks=len(shards))
    read = blocks.map_batches(
        read_shard,
        batch_size=1,
        batch_format="pyarrow",
        fn_args=(job, attempts),
        num_cpus=plan.reader_cpus,
    )
    scored = read.map_batches(
        Scorer,
        batch_size=1,
        batch_format="pyarrow",
        fn_constructor_args=(job, attempts, max(1, round(plan.actor_cpus))),
        compute=ray.data.ActorPoolStrategy(size=plan.actors),
        num_cpus=plan.actor_cpus,
        num_gpus=plan.actor_gpus,
    )
    yield from scored.iter_rows()


def read_shard(batch: pa.Table, job: Job, attempts: Any) -> pa.Table:
    """A shard's number, examples and their relations, or the error that reading and parsing them raised."""
    shard = batch["shard"][0].as_py()

    def read() -> list[dict]:
        parts = parsed(job.corpus.examples(shard, job.settings.shards), job.settings.parser)
        return [
            encoded(example if relations is None else replace(example, relations=relations[example.id]))
            for examples, relations in parts
            for example in examples
        ]

    examples, error = _attempt("read", shard, job, attempts, read)
    return pa.Table.from_pylist([{"shard": shard, "examples": examples, "error": error}], SHARD)


class Scorer:
    """Scores shards and writes their files; its encoder is loaded once, with the first of them."""

    def __init__(self, job: Job, attempts: Any, threads: int):
        torch.set_num_threads(threads)
        self.job, self.attempts = job, attempts

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of the job; raises InputError where this node has another under that name."""
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
            _, error = _attempt("score", shard, self.job, self.attempts, lambda: self._score(shard, rows))
        return pa.Table.from_pylist([{"shard": shard, "error": error}], DONE)

    def _score(self, shard: int, rows: pa.LargeListScalar) -> None:
        job = self.job
        if job.path(shard).exists():  # its answer was lost with a node
            return
        parts = parsed(map(decoded, rows), job.settings.parser and "gold")
        write_scores(
            job.path(shard), parts, self.encoder, job.settings, {**job.run, "shard": shard}, job.budget
        )


def _attempt(
    stage: str, shard: int, job: Job, attempts: Any, work: Callable[[], Any]
) -> tuple[Any, str | None]:
    """The result of the work, or the line of its InputError."""
    if ray.get(attempts.begin.remote(stage, shard)) > ATTEMPTS:
        died = f"{ATTEMPTS} processes died of the attempt to {stage} shard {shard}/{job.settings.shards}"
        return None, f"{died}: give them more memory, smaller shards, or a smaller --budget"
    try:
        os.chdir(job.folder)
    except OSError:
        return None, f"{job.folder} is not on {socket.gethostname()}: give all nodes the same folders"
    try:
        return work(), None
    except InputError as error:
        return None, str(error)


def encoded(example: Example) -> dict[str, Any]:
    """An example as Arrow takes it, without its class."""
    relations = example.relations
    relations = None if relations is None else [relation._asdict() for relation in relations]
    return {"id": example.id, "texts": example.texts, "relations": relations}


def decoded(row: pa.StructScalar) -> Example:
    """The example again."""
    found = row.as_py()
    relations = None
    if found["relations"] is not None:
        relations = tuple(
            Relation(each["label"], each["text"], tuple(each["dependent"]), tuple(each["head"]))
            for each in found["relations"]
        )
    return Example(found["id"], *found["texts"], relations=relations)
