"""Results that take long to compute, each in a file named after everything that it depends on."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import xarray as xr

from analysis.files import replacing

# The environment variable with the file in which a run counts what it computes and what it finds in the cache.
COUNT = "STUDY_CACHE"


def record_use(computed: bool) -> None:
    """Counts for the provenance of a run that a result was computed, or that it was in the cache."""
    if path := os.environ.get(COUNT):
        with open(path, "a", encoding="utf-8") as file:
            file.write("computed\n" if computed else "cached\n")


def digest(key: Any) -> str:
    """A short name for anything that JSON can write; the order of the keys of a mapping makes no difference."""
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]


def cached(folder: Path, name: str, key: Any, make: Callable[[], xr.Dataset]) -> xr.Dataset:
    """The dataset in the file of `folder` that `name` and `key` stand for; if there is none, `make` computes it.

    `key` holds all that the dataset depends on. A damaged file is made again.
    """
    path = folder / f"{name}-{digest(key)}.nc"
    with suppress(OSError, ValueError, KeyError):  # missing or damaged
        dataset = xr.load_dataset(path, engine="h5netcdf")
        record_use(computed=False)
        return dataset
    record_use(computed=True)
    dataset = make()  # outside, so that its errors do not seem to come from reading
    with replacing(path) as temporary:
        temporary.write_bytes(dataset.to_netcdf(engine="h5netcdf"))
    return dataset


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder`; what killed runs left there is removed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for killed in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(killed)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as work:
        yield Path(work)
