"""Brings the data of the study into one folder: GLUE, treebanks, arguments, frames, running text, a parser."""

import argparse
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from tqdm import tqdm

from analysis.errors import InputError, exit_status, unwritable
from analysis.files import ROOT, data_folder, replacing, write_text
from analysis.texts.glue import hub_table
from analysis.texts.tasks import TASKS, Task

SOURCES = ROOT / "data" / "sources.yaml"
TIMEOUT = 30  # seconds without an answer
REMEDY = "run make data again: it goes on where it stopped"


def bring(sources: Path = SOURCES, folder: Path | None = None) -> None:
    """Downloads what `sources` lists into `folder`, except what is there; the terms of each data set are printed once.

    Raises InputError for a source that does not answer, a wrong hash and a full disk; what was complete stays, and the
    next call goes on from there.
    """
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
        for task in TASKS.values():
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
                yield path, lambda a=url, b=path, c=sha256: _fetch(a, b, c, source.get("unpack"))


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


def _fetch(url: str, path: Path, sha256: str | None, unpack: str | None) -> None:
    fetch(url, path, sha256)
    if unpack:
        unpacked(path, unpack)


def fetch(url: str, path: Path, sha256: str | None) -> None:
    """Downloads a file whole or not at all; an interrupted download goes on from `<file>.part`.

    Raises InputError if the server does not give it, and for another SHA-256 than that of the registry.
    """
    import pooch

    part = path.with_name(f"{path.name}.part")
    pooch.get_logger().setLevel("ERROR")
    with _one_line(url, path):
        options = {"fname": path.name, "path": path.parent, "downloader": _resumed(part)}
        try:
            pooch.retrieve(url, sha256 and f"sha256:{sha256}", **options)
        except ValueError:  # raised by pooch for another hash
            part.unlink(missing_ok=True)
            raise InputError(
                f"{url} is not the file with the SHA-256 {sha256[:12]}... of the registry: nothing is kept; if it "
                "is so again, the source has changed: take the file from elsewhere"
            ) from None
    part.unlink(missing_ok=True)
    if sha256 is None:
        print(f"{path.name}: SHA-256 {pooch.file_hash(str(path))}, which no registry confirms")


def _resumed(part: Path) -> Callable[..., None]:
    """A downloader for pooch that writes to `part` first and goes on from its end."""
    import requests

    def download(url: str, output: str, _: object, **__: object) -> None:
        begun = part.stat().st_size if part.exists() else 0
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={begun}-"} if begun else {})
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if begun and answer.status_code == requests.codes.requested_range_not_satisfiable:
                part.unlink()
                download(url, output, None)
                return
            answer.raise_for_status()
            goes_on = answer.status_code == requests.codes.partial_content
            total = int(answer.headers.get("Content-Length", 0)) + begun * goes_on
            bar = tqdm(
                desc=part.stem, total=total, initial=begun * goes_on, unit="B", unit_scale=True, leave=None
            )
            with open(part, "ab" if goes_on else "wb") as file, bar:
                for chunk in answer.iter_content(2**16):
                    file.write(chunk)
                    bar.update(len(chunk))
        shutil.copyfile(part, output)

    return download


@contextmanager
def _one_line(url: str, path: Path) -> Iterator[None]:
    """Turns errors of the network and the disk into one line."""
    import requests

    try:
        yield
    except requests.HTTPError as error:
        code = error.response.status_code
        asks = " (it asks for permission: accept its terms there first)" if code in (401, 403) else ""
        raise InputError(f"{url}: HTTP {code} {error.response.reason}{asks}; then {REMEDY}") from None
    except requests.RequestException as error:
        raise InputError(f"{url}: the server is gone or silent ({type(error).__name__}); {REMEDY}") from None
    except OSError as error:
        if not unwritable(error):
            raise
        raise InputError(f"{path} cannot be written: {unwritable(error)}: mend that, then {REMEDY}") from None


def unpacked(archive: Path, inside: str) -> None:
    """Unpacks the folder `inside` of a zip file beside it and deletes the archive. Raises InputError if it has none."""
    try:
        with zipfile.ZipFile(archive) as file:
            names = [name for name in file.namelist() if name.startswith(inside) and not name.endswith("/")]
            for name in names:
                with replacing(archive.parent / name.removeprefix(inside)) as path:
                    path.write_bytes(file.read(name))
    except zipfile.BadZipFile:
        archive.unlink()
        raise InputError(f"{archive} is no zip file: it is deleted; {REMEDY}") from None
    if not names:
        raise InputError(
            f"{archive} has no folder {inside}: the source has changed: correct data/sources.yaml"
        )
    archive.unlink()
    (archive.parent / UNPACKED).touch()


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
