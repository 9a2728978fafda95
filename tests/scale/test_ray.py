"""On a Ray cluster the shards are those of the loop, whatever dies; few CPUs and bad input do not make it wait."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import xarray as xr

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install .[ray]")

from analysis import extract_corpus as command
from analysis.extract_corpus import main
from analysis.scale import ray as ray_engine
from analysis.scale.loop import read_shard
from analysis.scale.ray import cluster
from analysis.texts.corpora import Corpus, open_corpus
from analysis.texts.examples import Example

SENTENCE = "1\tDogs\t_\tX\t_\t_\t2\tnsubj\t_\t_\n2\tsleep\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


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


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    """Sentences with gold relations."""
    path = tmp_path / "gold.conllu"
    path.write_text("".join(SENTENCE.replace("Dogs", f"Dog{'s' * n}") for n in range(12)))
    return path


@pytest.fixture
def mortal(tmp_path: Path, monkeypatch) -> Callable[[int], Path]:
    """Makes actors die in the middle of shard 1 so many times; gives the file that counts the deaths."""
    deaths, here = tmp_path / "deaths", os.getpid()

    def die(times: int) -> Path:
        @dataclass(frozen=True)
        class Mortal(Corpus):
            def examples(self, shard: int = 0, shards: int = 1) -> Iterator[Example]:
                for number, example in enumerate(Corpus.examples(self, shard, shards)):
                    died = len(deaths.read_text()) if deaths.exists() else 0
                    if (shard, number) == (1, 2) and os.getpid() != here and died < times:
                        deaths.write_text("x" * (died + 1))
                        os._exit(1)
                    yield example

        monkeypatch.setattr(command, "open_corpus", lambda path, _: Mortal(open_corpus(path).files))
        return deaths

    return die


def run(path: Path, output: Path, *options: str) -> int:
    """The command with the tiny encoder."""
    return main([str(path), str(output), "--encoder", "tiny", *options])


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.usefixtures("one_cpu")
def test_shards_and_table_are_those_of_the_loop_though_an_actor_dies(gold: Path, tmp_path: Path, mortal):
    """One shard is made by the loop, the others by Ray; a second command makes nothing."""
    deaths, options = mortal(1), ("--shards", "3")
    folders = looped, output = tmp_path / "loop", tmp_path / "ray"
    assert run(gold, looped, *options) == 0
    assert run(gold, output, "--shard", "2/3") == 0
    begun = files(output)
    for _ in range(2):
        assert run(gold, output, *options, "--engine", "ray") == 0
    assert deaths.read_text() == "x"
    assert begun.items() <= files(output).items()
    assert sorted(files(looped)) == sorted(files(output))
    for path in looped.glob("*.nc"):
        xr.testing.assert_allclose(read_shard(path), read_shard(output / path.name), rtol=1e-6, atol=1e-6)
    assert [run(gold, folder, "--merge") for folder in folders] == [0, 0]
    assert (output / "roles.csv").read_text() == (looped / "roles.csv").read_text()


@pytest.mark.usefixtures("one_cpu")
def test_a_shard_whose_workers_keep_dying_ends_the_run(gold, tmp_path, mortal, monkeypatch, capsys):
    deaths = mortal(9)
    monkeypatch.setattr(ray_engine, "RETRIES", 1)
    assert run(gold, tmp_path / "o", "--shards", "2", "--engine", "ray") == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: Ray ended the run, see its logs: ")
    assert deaths.read_text() == "xx"
    assert {*files(tmp_path / "o")} <= {"run.json", "shard-00000-of-00002.nc"}


@pytest.mark.usefixtures("one_cpu")
def test_what_a_worker_refuses_is_one_line_and_the_finished_shards_stay(gold, tmp_path, capfd):
    output, options = tmp_path / "o", ("--parser", "nowhere", "--engine", "ray")
    assert run(gold, output, "--shard", "0/3") == 0
    settings = json.loads((output / "run.json").read_text())
    (output / "run.json").write_text(json.dumps(settings | {"parser": "nowhere"}, indent=1) + "\n")
    before = files(output)
    capfd.readouterr()
    assert run(gold, output, "--shards", "3", *options) == 1
    [line] = [line for line in capfd.readouterr().err.split("\n") if line and "sequence" not in line]
    assert line.startswith("error: the spaCy pipeline 'nowhere' cannot be loaded")
    assert files(output) == before


def test_without_ray_one_line_says_what_to_install(gold: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "analysis.scale.ray")
    assert run(gold, tmp_path / "o", "--shards", "2", "--engine", "ray") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "pip install .[ray]" in line
