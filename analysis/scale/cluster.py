"""A running Ray cluster, and how actors and reading tasks share its CPUs and GPUs."""

import logging
import math
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from analysis.errors import InputError
from analysis.scale.loop import Settings

THREADS = 4  # of an actor without a GPU
# The share of a node's CPUs that actors take. Tasks read with the rest; to parse takes about as long as to score with
# a small encoder.
SHARES = {"reading": 0.75, "parsing": 0.5}


class Plan(NamedTuple):
    """The number of actors, and the share of a node for one actor and for one reading task."""

    actors: int
    actor_cpus: float
    actor_gpus: float
    reader_cpus: float


@contextmanager
def cluster() -> Iterator[list[dict[str, float]]]:
    """The resources of each node of a running cluster; a cluster that starts here ends with the context.

    Raises InputError if the cluster of RAY_ADDRESS does not answer, or a local one does not start.
    """
    import ray  # after the settings of the module that calls this

    address = os.environ.get("RAY_ADDRESS")
    ours = not ray.is_initialized()
    if ours:
        quiet = {"include_dashboard": False} if address is None else {}
        try:
            if address:
                _reach(address)
            with _silent(), _own_termination():
                ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **quiet)
        except Exception as error:  # of any type: a node that starts too slowly is a bare Exception
            where = f"RAY_ADDRESS is {address}" if address else "a local cluster"
            raise InputError(f"{where}: Ray does not start: {in_one_line(error, 200)}") from error
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


@contextmanager
def _silent() -> Iterator[None]:
    """Hides what C++ code prints."""
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
    """A plan that always leaves CPUs for reading; without input, actors would wait for ever.

    With GPUs there are `actors_per_gpu` actors on each, else actors of up to THREADS CPUs. Actors take no more than
    their share of every node, so that a reading task fits on it too. Raises InputError if no node has a GPU.
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


def in_one_line(error: Exception, length: int) -> str:
    """The beginning of an error's message, without line breaks."""
    return " ".join(str(error).split())[:length]
