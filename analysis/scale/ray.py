"""All shards of a run on a Ray cluster: actors that hold the encoder take one shard after the other.

Ray Data hands out the shards and repeats one whose worker dies. The files are those of the loop (see `extract_corpus`).
Needs the extra `ray`.
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from analysis.encoders.models import load_encoder
from analysis.errors import InputError
from analysis.scale.loop import (
    Settings,
    check_output,
    claim,
    extract_shard,
    identity,
    is_finished,
    remove_unfinished,
    shard_path,
)
from analysis.texts.corpora import Corpus

THREADS = 4  # of an actor without a GPU
RETRIES = 3  # of a shard whose worker dies; after them the run ends
os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # for lack of memory; Ray's default has no limit
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # errors come back as exceptions or are tried again
try:
    import ray
    import ray.data
except ImportError as error:
    raise InputError("--engine ray needs Ray: pip install .[ray], or leave the engine out") from error


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
    paths = [shard_path(output, shard, settings.shards) for shard in range(settings.shards)]
    shards = [shard for shard, path in enumerate(paths) if not is_finished(path)]
    if not shards:
        return output
    total = sum(1 for _ in tqdm(corpus.examples(), "reading", unit="sequence", disable=not progress))
    claim(output, run)
    job = (os.getcwd(), corpus, output, model, settings, budget)
    try:
        with (
            cluster() as nodes,
            tqdm(total=len(shards), desc=f"{total:,} sequences", unit="shard", disable=not progress) as bar,
            closing(_scored(job, shards, _share(nodes, device, actors_per_gpu))) as rows,
        ):
            for row in rows:
                if row["error"]:
                    raise InputError(row["error"])
                bar.update()
    except ray.exceptions.RayTaskError:  # a fault of this code
        raise
    except ray.exceptions.RayError as error:  # no node is left, a node lacks this package, or workers die
        raise InputError(
            f"Ray ended the run, see its logs: {_in_one_line(error, 300)}: if workers die, give them more memory, "
            "smaller shards, or a smaller --budget"
        ) from error
    finally:
        for shard in shards:  # a process that was killed leaves its file
            remove_unfinished(paths[shard])
    return output


class Shards:
    """An actor: it loads the encoder once and scores the shards that Ray hands it."""

    def __init__(
        self, folder: str, corpus: Corpus, output: Path, model: tuple, settings: Settings, budget: int
    ):
        os.chdir(folder)
        if model[1] == "cpu":
            torch.set_num_threads(min(THREADS, os.cpu_count() or 1))
        encoder = load_encoder(*model)
        self.score = partial(extract_shard, corpus, output, encoder, settings, budget=budget, progress=False)

    def __call__(self, row: Mapping[str, int]) -> dict[str, Any]:
        """Writes one shard; gives its number and the line of an InputError."""
        try:
            self.score(shard=int(row["shard"]))
        except InputError as error:
            return {"shard": row["shard"], "error": f"{error} (on {socket.gethostname()})"}
        return {"shard": row["shard"], "error": ""}


def _scored(job: tuple, shards: Sequence[int], share: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The shards as they are finished, or their errors."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = ray.data.from_items([{"shard": shard} for shard in shards], override_num_blocks=len(shards))
    yield from rows.map(Shards, fn_constructor_args=job, max_task_retries=RETRIES, **share).iter_rows()


def _share(nodes: Sequence[Mapping[str, float]], device: str, actors_per_gpu: int) -> dict[str, Any]:
    """The part of a node that an actor takes, and the number of actors; raises InputError without a fitting node."""
    needed = "GPU" if device == "cuda" else "CPU"
    hosts = [node for node in nodes if node.get("CPU", 0) and node.get(needed, 0)]
    if not hosts:
        raise InputError(
            f"the cluster has no node with a {needed}: start Ray on one, or give another --device"
        )
    if device == "cuda":
        actors = [int(node["GPU"]) * actors_per_gpu for node in hosts]
        cpus = min(1.0, *(node["CPU"] / count for node, count in zip(hosts, actors, strict=True)))
    else:
        cpus = min(float(THREADS), *(node["CPU"] for node in hosts))
        actors = [int(node["CPU"] // cpus) for node in hosts]
    gpus = 1 / actors_per_gpu if device == "cuda" else 0
    return {"compute": ray.data.ActorPoolStrategy(size=sum(actors)), "num_cpus": cpus, "num_gpus": gpus}


@contextmanager
def cluster() -> Iterator[list[dict[str, float]]]:
    """The resources of each node of a running cluster; a cluster that starts here ends with the context.

    Raises InputError if the cluster of RAY_ADDRESS does not answer, or a local one does not start.
    """
    address = os.environ.get("RAY_ADDRESS")
    ours = not ray.is_initialized()
    if ours:
        quiet = {"include_dashboard": False} if address is None else {}
        try:
            if address:
                _reach(address)
            with _own_termination():
                ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **quiet)
        except Exception as error:  # of any type: a node that starts too slowly is a bare Exception
            where = f"RAY_ADDRESS is {address}" if address else "a local cluster"
            raise InputError(f"{where}: Ray does not start: {_in_one_line(error, 200)}") from error
    try:
        yield [node["Resources"] for node in ray.nodes() if node["Alive"]]
    finally:
        if ours:
            ray.shutdown()


def _reach(address: str) -> None:
    """Raises OSError if nothing listens at host:port; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


@contextmanager
def _own_termination() -> Iterator[None]:
    """Keeps the handler of SIGTERM; the one that Ray sets would abort the process."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)


def _in_one_line(error: Exception, length: int) -> str:
    """The beginning of an error's message, without line breaks."""
    return " ".join(str(error).split())[:length]
