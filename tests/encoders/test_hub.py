"""Models and examples are downloaded from a Hub on the loopback address."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from hub import HubServer, client_environment, glue_rows, write_tiny_hub

from analysis.texts.tasks import TASKS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = """
import dataclasses, json, sys
from analysis.texts.glue import load_examples
for task, options in json.loads(sys.argv[1]):
    examples = load_examples(task, "hub", **options)
    print(json.dumps([dataclasses.astuple(example) for example in examples]), flush=True)
"""
ENCODER = """
from analysis.encoders.models import load_encoder
encoder = load_encoder("test/tiny-bert")
weights = encoder.model.get_input_embeddings().weight
print(json.dumps([encoder.model.config.num_hidden_layers, encoder.model.config.num_attention_heads,
                  encoder.tokenizer.tokenize("It works ."), weights.sum().item()]))
"""
SAMPLE = ("mrpc", {"split": "dev", "n": 5})
WHOLE = {
    "sst-2": ("test", "test"),
    "qqp": ("train", "train"),
    "qnli": ("dev", "validation"),
    "rte": ("dev", "validation"),
    "cola": ("dev", "validation"),
    "sts-b": ("dev", "validation"),
    "mnli": ("dev_mismatched", "validation_mismatched"),
}
ASKED = [SAMPLE, *((task, {"split": split}) for task, (split, _) in WHOLE.items())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the Hub serves."""
    folder = tmp_path_factory.mktemp("served")
    write_tiny_hub(folder)
    return folder


@pytest.fixture(scope="module")
def hub(folder: Path) -> Iterator[HubServer]:
    """A running Hub."""
    server = HubServer(folder)
    with server:
        yield server


def run(code: str, asked: list, environment: dict[str, str]) -> subprocess.CompletedProcess:
    """Runs code in a new process, whose Hub clients see only the given environment."""
    command = [sys.executable, "-c", code, json.dumps(asked)]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)


def answers(code: str, asked: list, environment: dict[str, str]) -> list[list]:
    """What a fresh process prints, line by line."""
    result = run(code, asked, environment)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def error_line(environment: dict[str, str]) -> str:
    """The one line that `load_examples` raises in a fresh process."""
    result = run(EXAMPLES, [["mrpc", {}]], environment)
    assert result.returncode == 1, result.stdout
    assert result.stderr.count("Traceback") == 1, result.stderr
    *_, line = result.stderr.strip().split("\n")
    assert line.startswith("analysis.errors.InputError: "), result.stderr
    return line


def expected(task: str, split: str, served: pd.DataFrame) -> list[list]:
    """The examples of served rows, written out one by one."""
    rows = []
    for number, row in served.iterrows():
        texts = [row[column] for column in TASKS[task].hub_columns or TASKS[task].columns]
        label = None if row["label"] == -1 else row["label"]
        rows.append(
            [
                f"{task}-{split}-{number}",
                texts[0],
                texts[1] if len(texts) == 2 else None,
                label,
                None,
                None,
                [],
            ]
        )
    return rows


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clients' cache."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def online(hub: HubServer, home: Path) -> list[list]:
    """What one fresh process gets from the Hub: the examples of everything in ASKED, and the encoder's facts."""
    return answers(EXAMPLES + ENCODER, ASKED, client_environment(hub.endpoint, home))


def test_sample_of_the_hub_is_rows_as_served_in_order(hub: HubServer, online: list[list]) -> None:
    served = expected("mrpc", "dev", glue_rows("mrpc", "validation"))
    positions = [served.index(example) for example in online[0]]
    assert len(positions) == 5
    assert positions == sorted(set(positions))
    assert any("mrpc/validation-00000-of-00001.parquet" in request for request in hub.requests)


def test_encoder_comes_from_the_hub(folder: Path, online: list[list]) -> None:
    from safetensors.numpy import load_file

    layers, heads, tokens, total = online[-1]
    served = load_file(folder / "models" / "test" / "tiny-bert" / "model.safetensors")
    assert (layers, heads, tokens) == (3, 4, ["it", "works", "."])
    assert total == pytest.approx(served["embeddings.word_embeddings.weight"].sum(), rel=1e-3)


def test_dead_hub_is_one_line_at_once(folder: Path, tmp_path: Path) -> None:
    with HubServer(folder) as endpoint:
        pass
    start = time.monotonic()
    line = error_line(client_environment(endpoint, tmp_path))
    # The clients alone retry six times, which takes 23 seconds.
    assert time.monotonic() - start < 20
    assert "nyu-mll/glue, mrpc: " in line
    assert "check the network or HF_ENDPOINT" in line
    assert "HF_HUB_OFFLINE=1" in line
