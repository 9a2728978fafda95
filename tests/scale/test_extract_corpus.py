"""Shards of a corpus together give the role table of one run; none is left half-written."""

import json
import shutil
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from studies import error_of

from analysis.encoders.models import Encoder, load_encoder
from analysis.extract_corpus import main
from analysis.scale import loop
from analysis.scale.loop import Settings, extract_shards, merge_shards, read_shard, shard_path
from analysis.scores.extraction import extract
from analysis.statistics.roles import PUBLISHED_ROLES
from analysis.statistics.significance import Rule, published_table
from analysis.texts.corpora import Corpus, open_corpus
from analysis.texts.syntax import parse

WORDS = "the old dog saw a red cat , and it ran away from there".split()
SENTENCE = """1\tDogs\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tchase\t_\tVERB\t_\t_\t0\troot\t_\t_
3\t{}\t_\tNOUN\t_\t_\t2\tobj\t_\t_

"""
SHARDS = 3


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load_encoder("tiny")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder of sentences with gold relations."""
    folder = tmp_path / "input"
    folder.mkdir()
    for name, words in (("a", WORDS[1:5]), ("b", WORDS[5:12])):
        (folder / f"{name}.conllu").write_text("".join(SENTENCE.format(word) for word in words))
    return folder


@pytest.fixture
def pairs(tmp_path: Path) -> Corpus:
    """Pairs of texts without relations."""
    rows = [{"one": " ".join(WORDS[: size + 1]), "two": " ".join(WORDS[size:])} for size in range(11)]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return open_corpus(path, ["one", "two"])


def run(path: Path, output: Path, *options: str, shard: str = "0/1") -> int:
    """The command with the tiny encoder; one shard, or --merge where `shard` is empty."""
    task = f"--shard={shard}" if shard else "--merge"
    return main([str(path), str(output), "--encoder", "tiny", task, *options])


def files(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, hidden files too."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def extract_shard(corpus: Corpus, output: Path, encoder: Encoder, settings: Settings, shard: int) -> Path:
    """The file of one shard."""
    extract_shards(corpus, output, encoder, settings, [shard])
    return shard_path(output, shard, settings.shards)


def test_merged_shards_equal_one_run_over_all_sequences(tiny, corpus: Path, tmp_path: Path, monkeypatch):
    """Sequences stand alone in their batches, so that nothing but merging can make a difference."""
    monkeypatch.setattr(loop, "CHUNK", 2)
    output = tmp_path / "output"
    for shard in range(SHARDS):
        assert run(corpus, output, "--budget", "1", shard=f"{shard}/{SHARDS}") == 0
    rule = Rule(1.0)  # so that every label occurs
    monkeypatch.setattr(loop, "moments_table", partial(loop.moments_table, rule=rule))
    assert run(corpus, output, shard="") == 0
    examples = list(open_corpus(corpus).examples())
    whole = extract(tiny, examples, parse(examples), PUBLISHED_ROLES, budget=1, progress=False)
    expected = published_table(whole, rule)
    assert expected["assigned"].nunique(dropna=False) == 3
    result = pd.read_csv(output / "roles.csv").astype({"assigned": "boolean"})
    pd.testing.assert_frame_equal(result[expected.columns], expected, rtol=1e-6, atol=1e-6)


def test_a_finished_shard_is_skipped(tiny, pairs: Corpus, tmp_path: Path, monkeypatch):
    output = tmp_path / "o"
    path = extract_shard(pairs, output, tiny, Settings(), 0)
    assert (read_shard(path)["n"].sel(role="nsubj") == 0).all()  # neither gold relations nor a parser
    monkeypatch.setattr(loop, "extract", lambda *_, **__: pytest.fail("scored again"))
    assert extract_shard(pairs, output, tiny, Settings(), 0) == path


def test_a_stopped_shard_leaves_the_others_alone_and_starts_again(tiny, pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "CHUNK", 2)
    output = tmp_path / "o"
    extract_shard(pairs, output, tiny, Settings(SHARDS), 0)
    before, parts = files(output), []

    def stop_at_the_second_part(*arguments, **options):
        if parts:
            raise KeyboardInterrupt
        parts.append(arguments)
        return extract(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(loop, "extract", stop_at_the_second_part)
        with pytest.raises(KeyboardInterrupt):
            extract_shard(pairs, output, tiny, Settings(SHARDS), 1)
    assert files(output) == before
    assert extract_shard(pairs, output, tiny, Settings(SHARDS), 1).exists()


def test_merging_names_missing_damaged_and_foreign_shards(tiny, pairs: Corpus, tmp_path: Path):
    output = tmp_path / "o"
    path = extract_shard(pairs, output, tiny, Settings(SHARDS), 1)
    assert "shard-00000-of-00003.nc, shard-00002-of-00003.nc" in error_of(merge_shards, output)
    extract_shards(pairs, output, tiny, Settings(SHARDS), range(SHARDS))
    foreign = extract_shard(pairs, tmp_path / "other", tiny, Settings(SHARDS, max_tokens=16), 1)
    content = path.read_bytes()
    shutil.copy(foreign, path)
    assert "max_tokens is 16, here 128" in error_of(merge_shards, output)
    path.write_bytes(content[:-9])
    assert "shard-00001-of-00003.nc is damaged" in error_of(merge_shards, output)


def test_a_bad_row_stops_its_shard_before_anything_is_scored_or_claimed(tiny, tmp_path: Path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "one"}\n' * 5 + '{"text": ""}\n')
    monkeypatch.setattr(loop, "extract", lambda *_, **__: pytest.fail("scored"))
    line = error_of(extract_shard, open_corpus(path), tmp_path / "o", tiny, Settings(), 0)
    assert "line 6: a text is missing" in line
    assert not (tmp_path / "o").exists()
