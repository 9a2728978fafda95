"""Ray Data as the engine of the loop: actors with the encoder in memory take one shard after the other.

Ray repeats a shard whose worker dies. The files are those of the loop. Needs the extra `ray`.
"""

import logging
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from analysis.encoders.models import load_encoder
from analysis.errors import InputError
from analysis.scale.loop import Score

Model = tuple[str, str, str]  # the arguments of `load_encoder`: name, device, precision
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


def on_cluster(model: Model, actors_per_gpu: int, score: Score, shards: Sequence[int]) -> Iterator[int]:
    """Writes the shards on a cluster; yields the number of sequences of each.

    The cluster is that of this process, else that of RAY_ADDRESS, else one that ends with the run. Raises InputError as
    `score` does, whichever process meets the error; finished shards stay.
    """
    try:
        with cluster() as nodes:
            actors = _actors(nodes, model[1], actors_per_gpu)
            items = [{"shard": shard} for shard in shards]
            rows = ray.data.from_items(items, override_num_blocks=len(items))
            arguments = os.getcwd(), model, score
            scored = rows.map(Shards, fn_constructor_args=arguments, max_task_retries=RETRIES, **actors)
            for row in scored.iter_rows():
                if row["error"]:
                    raise InputError(row["error"])
                yield row["sequences"]
    except ray.exceptions.RayTaskError:  # a fault of this code
        raise
    except ray.exceptions.RayError as error:  # no node is left, a node lacks this package, or workers die
        raise InputError(
            f"Ray ended the run, see its logs: {_first_line(error)}: if workers die, give them more memory, "
            "smaller shards, or a smaller --budget"
        ) from error


class Shards:
    """An actor: it loads the encoder once and scores the shards that Ray gives it."""

    def __init__(self, folder: str, model: Model, score: Score):
        os.chdir(folder)
        if model[1] == "cpu":
            torch.set_num_threads(min(THREADS, os.cpu_count() or 1))
        self.score = partial(score, load_encoder(*model))

    def __call__(self, row: Mapping[str, int]) -> dict[str, Any]:
        """Writes one shard; returns the number of its sequences and the line of an InputError."""
        try:
            return {"sequences": sum(self.score(int(row["shard"]))), "error": ""}
        except InputError as error:
            return {"sequences": 0, "error": f"{error} (on {socket.gethostname()})"}


def _actors(nodes: Sequence[Mapping[str, float]], device: str, actors_per_gpu: int) -> dict[str, Any]:
    """The number of actors and the part of a node that each takes; raises InputError without a fitting node."""
    kind = "GPU" if device == "cuda" else "CPU"
    numbers = [node[kind] for node in nodes if node.get(kind)]
    if not numbers:
        raise InputError(f"the cluster has no node with a {kind}: start Ray on one, or give another --device")
    if kind == "GPU":
        size, shares = int(sum(numbers) * actors_per_gpu), {"num_cpus": 0, "num_gpus": 1 / actors_per_gpu}
    else:
        cpus = min(THREADS, *numbers)
        size, shares = sum(int(number // cpus) for number in numbers), {"num_cpus": cpus}
    return {"compute": ray.data.ActorPoolStrategy(size=size), **shares}


@contextmanager
def cluster() -> Iterator[list[dict[str, float]]]:
    """The resources of each node of a running cluster; a cluster that starts here ends with the context.

    Raises InputError if the cluster of RAY_ADDRESS does not answer, or a local one does not start.
    """
    address = os.environ.get("RAY_ADDRESS")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    is_new = not ray.is_initialized()
    if is_new:
        try:
            options = {} if address else {"include_dashboard": False}
            ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # of any type: a node that starts too slowly is a bare Exception
            place = f"RAY_ADDRESS is {address}" if address else "a local cluster"
            raise InputError(f"{place}: Ray does not start: {_first_line(error)}") from error
    try:
        yield [node["Resources"] for node in ray.nodes() if node["Alive"]]
    finally:
        if is_new:
            ray.shutdown()


def _first_line(error: Exception) -> str:
    """The beginning of an error's message, without line breaks."""
    return " ".join(str(error).split())[:300]
