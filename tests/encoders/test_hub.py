import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from loopback import ENCODER as NAME
from loopback import glue, write_hub
from safetensors.numpy import load_file
from server import Server, client_environment

from analysis.files import ROOT
from analysis.texts.tasks import GLUE_TASKS

pytestmark = pytest.mark.slow
EXAMPLES = """
import json, sys
from analysis.texts.glue import load_examples
for task in sys.argv[1:]:
    examples = load_examples(task, "hub")
    print(json.dumps([[example.id, example.texts, example.label] for example in examples]), flush=True)
"""
ENCODER = """
from analysis.encoders.models import load_encoder
encoder = load_encoder("test/tiny-bert")
weights = encoder.model.get_input_embeddings().weight
print(json.dumps([encoder.model.config.num_hidden_layers, encoder.model.config.num_attention_heads,
                  encoder.tokenizer.tokenize("It works ."), weights.sum().item()]))
"""


def run(code: str, tasks: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess:
    """Runs code in a new process, whose Hub clients see only the given environment."""
    command = [sys.executable, "-c", code, *tasks]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=3600)


def test_examples_and_an_encoder_are_those_that_the_hub_serves(tmp_path: Path) -> None:
    write_hub(tmp_path / "served")
    with Server(tmp_path / "served") as hub:
        result = run(EXAMPLES + ENCODER, [*GLUE_TASKS], client_environment(hub.endpoint, tmp_path))
    assert result.returncode == 0, result.stderr
    *examples, (layers, heads, tokens, total) = map(json.loads, result.stdout.splitlines())
    tables = glue()
    for task, loaded in zip(GLUE_TASKS.values(), examples, strict=True):
        columns = [*(task.hub_columns or task.columns), "label"]
        rows = tables[task.config][task.splits["dev"].hub][columns].itertuples(name=None)
        assert loaded == [[f"{task.name}-dev-{row}", texts, label] for row, *texts, label in rows]
    weights = load_file(tmp_path / "served/models" / NAME / "model.safetensors")
    assert (layers, heads, tokens) == (3, 4, ["it", "works", "."])
    assert total == pytest.approx(weights["bert.embeddings.word_embeddings.weight"].sum(), rel=1e-3)


@contextmanager
def dead_hub() -> Iterator[tuple[str, list]]:
    """An address that closes every connection, and the list of those that were made."""
    connections: list = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            while True:
                try:
                    connection, address = server.accept()
                except OSError:  # the server is closed
                    return
                connections.append(address)
                connection.close()

        Thread(target=refuse, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", connections


def test_dead_hub_is_one_line_at_once(tmp_path: Path) -> None:
    with dead_hub() as (endpoint, connections):
        result = run(EXAMPLES, ["mrpc"], client_environment(endpoint, tmp_path))
    assert 1 <= len(connections) <= 2  # the clients alone would connect six times, with pauses of 23 seconds
    assert result.returncode == 1
    assert result.stderr.count("Traceback") == 1, result.stderr
    line = result.stderr.strip().split("\n")[-1]
    assert line.startswith("analysis.errors.InputError: Hugging Face dataset nyu-mll/glue, mrpc: ")
