"""Brings the data of the study into one folder: GLUE, treebanks, arguments, frames, running text, a parser."""

import argparse
import os
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISLNK
from typing import Any

import pandas as pd
import yaml
from tqdm import tqdm

from analysis.errors import InputError, exit_status, unwritable
from analysis.files import ROOT, data_folder, replacing, write_text
from analysis.texts.glue import hub_table
from analysis.texts.tasks import GLUE_TASKS, Task

SOURCES = ROOT / "data" / "sources.yaml"
TIMEOUT = 30  # seconds without an answer
REMEDY = "run make data again: it downloads what is not there yet"
DISTRUST = "nothing is unpacked: the source has changed; do not trust it, take the data from elsewhere"


def bring(sources: Path = SOURCES, folder: Path | None = None) -> None:
    """Downloads what `sources` lists into `folder`, except what is there; the terms of each data set are printed once.

    Raises InputError for a source that does not answer, a wrong hash and a full disk. Complete files stay, and the
    next call passes over them.
    """
    if not sources.is_file():
        raise InputError(f"{sources} is missing: run make data in a checkout, or name a list with --sources")
    folder = data_folder() if folder is None else folder
    for name, source in yaml.safe_load(sources.read_text(encoding="utf-8")).items():
        missing = [*wanted(name, source, folder / name)]
        if missing:
            print(f"{name}: {source['terms']}")
        for _, fetch in tqdm(missing, name, unit="file", leave=None, disable=len(missing) < 2):
            fetch()
        print(f"{name}: {f'{len(missing)} downloaded' if missing else 'there already'}")


def wanted(name: str, source: Mapping[str, Any], folder: Path) -> Iterator[tuple[Path, Callable[[], object]]]:
    """The files of a data set that are not there, and how each is made."""
    if "glue" in source:
        for task in GLUE_TASKS.values():
            for split, names in task.splits.items():
                path = folder / task.folder / f"{names.file}.tsv"
                if not path.exists():
                    yield path, lambda a=path, b=task, c=split: write_glue(a, b, c, source["glue"])
    elif "lines" in source:
        path = folder / source["lines"]["file"]
        if not path.exists():
            yield path, lambda: write_lines(path, **source["lines"])
    elif "encoder" in source:
        if not _cached(source["encoder"]):
            yield folder, lambda: fetch_encoder(source["encoder"])
    else:
        for file, sha256 in source["files"].items():
            path, url = folder / file, source["url"].format(name=file)
            done = folder / UNPACKED if "unpack" in source else path
            if not done.exists() or ("unpack" not in source and not _right(path, sha256)):
                yield path, lambda a=url, b=path, c=sha256: fetch(a, b, c, source.get("unpack"))


UNPACKED = ".unpacked"  # a mark: an archive was unpacked as a whole


def _right(path: Path, sha256: str | None) -> bool:
    import pooch

    return sha256 is None or pooch.file_hash(str(path)) == sha256


def write_glue(path: Path, task: Task, split: str, dataset: str) -> None:
    """Writes a split of the Hub's GLUE as the file that GLUE ships: tabs, labels by name, no labels in tests.

    White space inside a text becomes a blank. Rows with an empty text are left out, and their number is printed.
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
    _write_table(path, texts[~empty], header=split.startswith("test") or not task.header)


def _write_table(path: Path, table: pd.DataFrame, header: bool) -> None:
    lines = table.astype(str).agg("\t".join, axis=1)
    write_text(path, "\n".join([*["\t".join(table.columns)] * header, *lines]) + "\n")


def write_lines(path: Path, dataset: str, config: str, split: str, column: str, file: str) -> None:
    """Writes the texts of a split of a data set of the Hub as lines; empty ones are left out."""
    texts = hub_table(dataset, config, split)[column]
    write_text(path, "".join(f"{text.rstrip()}\n" for text in texts if text.strip()))


def _cached(encoder: str) -> bool:
    import huggingface_hub

    return isinstance(huggingface_hub.try_to_load_from_cache(encoder, "config.json"), str)


def fetch_encoder(name: str) -> None:
    """Brings the files of an encoder of the Hub into its cache. Raises InputError if the Hub does not give them."""
    import huggingface_hub

    patterns = ["config.json", "tokenizer*", "vocab*", "special_tokens*", "model.safetensors"]
    try:
        huggingface_hub.snapshot_download(name, allow_patterns=patterns)
    except Exception as error:  # of any type, from the HTTP library or the client
        raise InputError(f"encoder {name}: {_first_line(error)}; {REMEDY}") from None


def fetch(url: str, path: Path, sha256: str | None, inside: str | None = None) -> None:
    """Downloads a file whole or not at all; of an archive, unpacks the folder `inside`.

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
        print(f"{path.name}: SHA-256 {pooch.file_hash(str(path))}, which no registry confirms")
    if inside:
        unpacked(path, inside)


def unpacked(archive: Path, inside: str) -> None:
    """Unpacks the folder `inside` of a zip or tar file beside it, and deletes the archive in any case.

    Raises InputError, and writes nothing, for a member that is a link or lies outside of the folder, for an archive
    without `inside`, and for a file that is no archive.
    """
    folder = archive.parent
    try:
        with _opened(archive) as (members, read):
            paths = {name: (folder / name.removeprefix(inside)).resolve() for name in members}
            for name, is_file in members.items():
                if not is_file:
                    raise InputError(f"{archive}: {name} is a link or a device: {DISTRUST}")
                if not paths[name].is_relative_to(folder.resolve()):
                    raise InputError(f"{archive}: {name} would be written outside of {folder}: {DISTRUST}")
            names = [name for name in members if name.startswith(inside)]
            if not names:
                raise InputError(
                    f"{archive} has no folder {inside}: the source has changed: correct data/sources.yaml"
                )
            for name in names:
                with replacing(paths[name]) as path:
                    path.write_bytes(read(name))
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError):
        raise InputError(f"{archive} is no zip or tar file, or damaged: it is deleted; {REMEDY}") from None
    finally:
        archive.unlink()
    (folder / UNPACKED).touch()


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[dict[str, bool], Callable[[str], bytes]]]:
    """The members of an archive by name, without folders, with whether each is a plain file; and their reader."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            entries = [entry for entry in file.infolist() if not entry.is_dir()]
            yield {entry.filename: not S_ISLNK(entry.external_attr >> 16) for entry in entries}, file.read
    else:
        with tarfile.open(archive) as file:
            members = {entry.name: entry.isfile() for entry in file if not entry.isdir()}
            yield members, lambda name: file.extractfile(name).read()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for a failed download and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m analysis.study.downloads", description=__doc__)
    parser.add_argument("--sources", type=Path, default=SOURCES, help="another list of sources")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    options = parser.parse_args(arguments)
    return exit_status(lambda: bring(options.sources))


if __name__ == "__main__":
    sys.exit(main())
