"""On a Ray cluster the shards are those of the loop, whatever dies; few CPUs and bad input do not make it wait."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import xarray as xr

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install .[ray]")

from analysis import extract_corpus as command
from analysis.encoders.models import load_encoder
from analysis.extract_corpus import main
from analysis.scale import ray as ray_engine
from analysis.scale.loop import read_shard
from analysis.scale.ray import cluster
from analysis.texts.corpora import Corpus, open_corpus
from analysis.texts.examples import Example

pytestmark = pytest.mark.timeout(240)
WORDS = "the old dog saw a red cat , and it ran away from there".split()
LOADED = cache(load_encoder)


@pytest.fixture(scope="module")
def one_cpu() -> Iterator[None]:
    """A cluster of one CPU, the least there is: an actor that took all of it would wait for its input for ever."""
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("RAY_ADDRESS", raising=False)
        # Ray's workers give way to all other processes (niceness 15): beside other tests they would take minutes.
        patched.setenv("RAY_worker_niceness", "0")
        patched.setattr(ray, "init", partial(ray.init, num_cpus=1))
        with cluster() as nodes:
            assert [node["CPU"] for node in nodes] == [1]
            yield
        assert not ray.is_initialized()  # it ends where it was started


@pytest.fixture(autouse=True)
def _load_once(monkeypatch):
    """This process loads the encoder once for all tests."""
    for module in (command, ray_engine):
        monkeypatch.setattr(module, "load_encoder", LOADED)


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    """Sentences with gold relations; a third of them is more than one part, and takes seconds to score."""
    generator = np.random.default_rng(0)
    rows = "".join(  # a chain, whose relations take turns
        f"{word}\t{{}}\t_\tX\t_\t_\t{word - 1}\t{('nsubj', 'obj', 'amod')[word % 3]}\t_\t_\n"
        for word in range(1, 31)
    )
    path = tmp_path / "gold.conllu"
    sentences = (rows.format(*generator.choice(WORDS, size=30)) for _ in range(1560))
    path.write_text("".join(f"{sentence}\n" for sentence in sentences))
    return path


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A few lines without relations."""
    path = tmp_path / "lines.txt"
    path.write_text("one dog saw two dogs\n" * 6)
    return path


def run(path: Path, output: Path, *options: str) -> int:
    """The command with the tiny encoder."""
    return main([str(path), str(output), "--encoder", "tiny", *options])


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def same_shards(first: Path, second: Path) -> None:
    """The same files, with the same numbers in them."""
    assert sorted(files(first)) == sorted(files(second))
    assert (first / "run.json").read_bytes() == (second / "run.json").read_bytes()
    for path in first.glob("*.nc"):
        one, other = (read_shard(folder / path.name) for folder in (first, second))
        xr.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("one_cpu")
def test_shards_and_table_are_those_of_the_loop_which_began_the_run_though_an_actor_is_killed(
    gold: Path, tmp_path: Path
):
    output, options, killed = tmp_path / "ray", ("--shards", "3"), []
    assert run(gold, tmp_path / "loop", *options) == 0
    assert run(gold, output, "--shard", "1/3") == 0
    begun = files(output)

    def kill() -> None:
        while not killed:
            time.sleep(0.01)
            for process in psutil.Process().children(recursive=True) if [*output.glob(".shard-*")] else ():
                with suppress(psutil.NoSuchProcess):
                    if "MapWorker(Map(Shards))" in process.name() + "".join(process.cmdline()):
                        os.kill(process.pid, signal.SIGKILL)
                        killed.append([path.name for path in output.glob(".shard-*")])

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    assert run(gold, output, *options, "--engine", "ray") == 0
    thread.join(timeout=5)
    assert [len(unfinished) for unfinished in killed] == [1]  # in the middle of a shard
    assert begun.items() <= files(output).items()
    same_shards(tmp_path / "loop", output)
    finished = files(output)
    assert run(gold, output, *options, "--engine", "ray") == 0
    assert files(output) == finished
    for folder in ("loop", "ray"):
        assert run(gold, tmp_path / folder, "--merge") == 0
    assert (output / "roles.csv").read_text() == (tmp_path / "loop" / "roles.csv").read_text()


@pytest.mark.usefixtures("one_cpu")
def test_what_a_worker_refuses_is_one_line_and_the_finished_shards_stay(
    lines: Path, tmp_path: Path, capfd: pytest.CaptureFixture
):
    output, options = tmp_path / "o", ("--parser", "nowhere", "--engine", "ray")
    assert run(lines, output, "--shard", "0/3") == 0
    claimed = json.loads((output / "run.json").read_text())
    (output / "run.json").write_text(json.dumps(claimed | {"parser": "nowhere"}))
    before = files(output)
    capfd.readouterr()
    assert run(lines, output, "--shards", "3", *options) == 1
    [said] = [line for line in capfd.readouterr().err.split("\n") if line and "sequence" not in line]
    assert said.startswith("error: the spaCy pipeline 'nowhere' cannot be loaded")
    assert files(output) == before


def test_a_bad_row_stops_the_run_before_anything_is_claimed(tmp_path: Path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n' * 5 + '{"text": ""}\n')
    assert run(path, tmp_path / "o", "--shards", "2", "--engine", "ray") == 1
    assert "line 6: a text is missing or empty" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "o").exists()


def test_without_ray_one_line_says_what_to_install(lines: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "analysis.scale.ray")
    assert run(lines, tmp_path / "o", "--shards", "2", "--engine", "ray") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "pip install .[ray]" in line


@pytest.mark.usefixtures("one_cpu")
def test_a_shard_whose_workers_keep_dying_ends_the_run(lines: Path, tmp_path: Path, monkeypatch, capsys):
    died, here = tmp_path / "died", os.getpid()

    @dataclass(frozen=True)
    class Deadly(Corpus):
        def examples(self, shard: int = 0, shards: int = 1) -> Iterator[Example]:
            if shard == 1 and os.getpid() != here:
                with died.open("a") as file:
                    file.write("x")
                os._exit(1)
            return Corpus.examples(self, shard, shards)

    monkeypatch.setattr(command, "open_corpus", lambda *_: Deadly(open_corpus(lines).files))
    monkeypatch.setattr(ray_engine, "RETRIES", 1)
    assert run(lines, tmp_path / "o", "--shards", "2", "--engine", "ray") == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: Ray ended the run, see its logs: ")
    assert died.read_text() == "xx"
    assert {*files(tmp_path / "o")} <= {"run.json", "shard-00000-of-00002.nc"}
