"""Brings the data of the study into one folder: GLUE, treebanks, arguments, frames, running text, a parser."""

import argparse
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from tqdm import tqdm

from analysis.errors import InputError, exit_status, unwritable
from analysis.files import ROOT, data_folder, write_text
from analysis.texts.glue import hub_table
from analysis.texts.tasks import GLUE_TASKS, Task

SOURCES = ROOT / "data" / "sources.yaml"
TIMEOUT = 30  # seconds without an answer
REMEDY = "run make data again: it downloads what is not there yet"


def bring(sources: Path = SOURCES, folder: Path | None = None) -> None:
    """Downloads what `sources` lists into `folder`, except what is there; the terms of each data set are printed once.

    Raises InputError for a source that does not answer, a wrong hash and a full disk. Complete files stay, and the
    next call passes over them.
    """
    if not sources.is_file():
        raise InputError(f"{sources} is missing: run make data in a checkout, or name a list with --sources")
    folder = data_folder() if folder is None else folder
    for name, source in yaml.safe_load(sources.read_text(encoding="utf-8")).items():
        missing = [*missing_files(source, folder / name)]
        if missing:
            print(f"{name}: {source['terms']}")
        for bring_file in tqdm(missing, name, unit="file", leave=None, disable=len(missing) < 2):
            bring_file()
        print(f"{name}: {f'{len(missing)} downloaded' if missing else 'there already'}")


def missing_files(source: Mapping[str, Any], folder: Path) -> Iterator[Callable[[], object]]:
    """For each file of a data set that is not there, what brings it."""
    if "glue" in source:
        for task in GLUE_TASKS.values():
            for split, names in task.splits.items():
                path = folder / task.folder / f"{names.file}.tsv"
                if not path.exists():
                    yield partial(write_glue, path, task, split, source["glue"])
    elif "lines" in source:
        path = folder / source["lines"]["file"]
        if not path.exists():
            yield partial(write_lines, path, **source["lines"])
    elif "encoder" in source:
        if not _cached(source["encoder"]):
            yield partial(fetch_encoder, source["encoder"])
    else:
        for file, sha256 in source["files"].items():
            path, url = folder / file, source["url"].format(name=file)
            if "unpack" in source:
                if not folder.exists():
                    yield partial(fetch_folder, url, folder, sha256, source["unpack"])
            elif not path.exists() or (sha256 and _file_hash(path) != sha256):
                yield partial(fetch, url, path, sha256)


def _file_hash(path: Path) -> str:
    import pooch

    return pooch.file_hash(str(path))


def write_glue(path: Path, task: Task, split: str, dataset: str) -> None:
    """Writes a split of the Hub's GLUE as the file that GLUE ships: tabs, labels by name, no labels in tests.

    White space inside a text becomes one space. Rows with an empty text are left out, and their number is printed.
    """
    table = hub_table(dataset, task.config, task.splits[split].hub)
    texts = table[[*(task.hub_columns or task.columns)]].set_axis([*task.columns], axis=1)
    texts = texts.apply(lambda column: column.fillna("").str.split().str.join(" "))
    labels = table["label"]
    if task.labels:
        labels = labels.map(dict(enumerate(task.labels)))
    if not split.startswith("test"):
        texts[task.label_column] = labels
        if task.header:
            texts = texts.reindex(columns=[*task.header], fill_value="")
    empty = texts[[*task.columns]].eq("").any(axis=1)
    if empty.any():
        print(f"{path}: {empty.sum()} rows with an empty text are left out")
    rows = texts[~empty].astype(str).agg("\t".join, axis=1)
    header = ["\t".join(texts.columns)] if split.startswith("test") or not task.header else []
    write_text(path, "\n".join([*header, *rows]) + "\n")


def write_lines(path: Path, dataset: str, config: str, split: str, column: str, file: str) -> None:
    """Writes the texts of a split of a data set of the Hub as lines; empty ones are left out."""
    texts = hub_table(dataset, config, split)[column]
    write_text(path, "".join(f"{text.rstrip()}\n" for text in texts if text.strip()))


def _cached(encoder: str) -> bool:
    import huggingface_hub

    return isinstance(huggingface_hub.try_to_load_from_cache(encoder, "model.safetensors"), str)


def fetch_encoder(name: str) -> None:
    """Brings the files of an encoder of the Hub into its cache. Raises InputError if the Hub does not give them."""
    import huggingface_hub

    patterns = ["config.json", "tokenizer*", "vocab*", "special_tokens*", "model.safetensors"]
    try:
        huggingface_hub.snapshot_download(name, allow_patterns=patterns)
    except Exception as error:  # of any type, from the HTTP library or the client
        raise InputError(f"encoder {name}: {_first_line(error)}; {REMEDY}") from None


def fetch(url: str, path: Path, sha256: str | None) -> None:
    """Downloads a file whole or not at all.

    Raises InputError if the server does not give it, and for another SHA-256 than that of the registry.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    try:
        # pooch sets the total of the bar; a bar without one has no truth value.
        with tqdm(desc=path.name, total=1, unit="B", unit_scale=True, leave=None) as bar:
            downloader = pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT)
            expected = f"sha256:{sha256}" if sha256 else None
            pooch.retrieve(url, expected, fname=path.name, path=path.parent, downloader=downloader)
    except requests.HTTPError as error:
        code = error.response.status_code
        permission = " (it wants you to accept its terms there first)" if code in (401, 403) else ""
        raise InputError(f"{url}: HTTP {code} {error.response.reason}{permission}; then {REMEDY}") from None
    except requests.RequestException as error:
        raise InputError(f"{url}: the server is gone or silent ({type(error).__name__}); {REMEDY}") from None
    except OSError as error:
        if not unwritable(error):
            raise
        raise InputError(f"{path} cannot be written: {unwritable(error)}: fix that, then {REMEDY}") from None
    except ValueError:  # raised by pooch for another hash
        raise InputError(
            f"{url} is not the file with the SHA-256 {sha256[:12]}... of the registry: nothing is kept; if a second "
            "try gives the same, the source has changed: take the file from elsewhere"
        ) from None
    if sha256 is None:
        print(f"{path.name}: SHA-256 {_file_hash(path)}, which no registry confirms")


def fetch_folder(url: str, folder: Path, sha256: str | None, inside: str) -> None:
    """Downloads a zip file and keeps its folder `inside` as `folder`, whole or not at all.

    Raises InputError as `fetch` does, and for a file that is no zip file or has no such folder.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as place:
        archive = Path(place) / url.rsplit("/", 1)[-1]
        fetch(url, archive, sha256)
        try:
            with zipfile.ZipFile(archive) as file:
                file.extractall(place)  # no member leaves this folder
            os.replace(Path(place) / inside, folder)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError):
            raise InputError(f"{url} is no zip file, or damaged: nothing is kept; {REMEDY}") from None
        except FileNotFoundError:
            raise InputError(
                f"{url} has no folder {inside}: the source has changed: correct data/sources.yaml"
            ) from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m analysis.study.downloads", description=__doc__)
    parser.add_argument("--sources", type=Path, default=SOURCES, help="another list of sources")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    options = parser.parse_args()
    sys.exit(exit_status(lambda: bring(options.sources)))
