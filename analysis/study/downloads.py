"""Brings the data of the study into one folder: GLUE, treebanks, arguments, frames, running text, a parser."""

import argparse
import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from analysis.errors import InputError, exit_status
from analysis.files import ROOT, data_folder, parse_yaml, write_text
from analysis.study.runs import short
from analysis.texts.hub import hub_table
from analysis.texts.tasks import GLUE_TASKS, Task

SOURCES = ROOT / "data" / "sources.yaml"


def bring(sources: Path = SOURCES, folder: Path | None = None) -> None:
    """Downloads what `sources` lists into `folder`, except what is there, and prints the terms of each data set.

    Raises InputError for a source that does not answer, a wrong hash and a full disk.
    """
    if not sources.is_file():
        raise InputError(f"{sources} is missing: run make data in a checkout, or name a list with --sources")
    folder = folder or data_folder()
    listed = parse_yaml(sources.read_bytes(), sources)
    if not isinstance(listed, dict) or not listed:
        raise InputError(f"{sources} lists nothing to download: write entries as in {short(SOURCES)}")
    for name, source in listed.items():
        print(f"{name}: {source['terms']}")
        try:
            fetch(source, folder / name)
        except Exception as error:  # of any type: from pooch, zipfile, or the client of the Hub
            reason = " ".join(str(error).split()) or type(error).__name__
            remedy = "run make data again: it downloads what is not there yet"
            raise InputError(f"{name}: {reason}; {remedy}") from error
    print(f"the data are in {folder}")


def fetch(source: Mapping[str, Any], folder: Path) -> None:
    """Brings those files of a data set that are not there."""
    if "glue" in source:
        for task in GLUE_TASKS.values():
            for split, names in task.splits.items():
                path = folder / task.folder / f"{names.file}.tsv"
                if not path.exists():
                    write_glue(path, task, split, source["glue"])
    elif "lines" in source:
        lines = source["lines"]
        if not (path := folder / lines["file"]).exists():
            texts = hub_table(lines["dataset"], lines["config"], lines["split"])[lines["column"]]
            write_text(path, "".join(f"{text.rstrip()}\n" for text in texts if text.strip()))
    elif "encoder" in source:
        import huggingface_hub  # into its cache

        patterns = ["config.json", "tokenizer*", "vocab*", "special_tokens*", "model.safetensors"]
        huggingface_hub.snapshot_download(source["encoder"], allow_patterns=patterns)
    elif "unpack" in source:
        if not folder.exists():
            fetch_folder(source, folder)
    else:
        fetch_files(source, folder)


def write_glue(path: Path, task: Task, split: str, dataset: str) -> None:
    """Writes a split of the Hub's GLUE as the file that GLUE ships: tabs, labels by name, no labels in tests.

    White space becomes one space. Rows with an empty text are left out, and their number is printed.
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


def fetch_files(source: Mapping[str, Any], folder: Path) -> None:
    """Downloads the files of a source whole or not at all; a file with another SHA-256 is not kept."""
    import pooch

    for name, sha256 in source["files"].items():
        url = source["url"].format(name=name)
        pooch.retrieve(url, sha256 and f"sha256:{sha256}", fname=name, path=folder, progressbar=True)


def fetch_folder(source: Mapping[str, Any], folder: Path) -> None:
    """Downloads a zip file and keeps one folder in it, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as place:
        fetch_files(source, Path(place))
        [archive] = Path(place).iterdir()
        with zipfile.ZipFile(archive) as file:
            file.extractall(place)  # no member leaves this folder
        if not Path(place, source["unpack"]).is_dir():
            raise InputError(f"{archive.name} has no folder {source['unpack']}: correct data/sources.yaml")
        os.replace(Path(place, source["unpack"]), folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, default=SOURCES, help="another list of sources")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    options = parser.parse_args()
    sys.exit(exit_status(lambda: bring(options.sources)))
