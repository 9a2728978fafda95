"""Bad inputs to the library, like those of a new user: each ends in one clear line that names the fault.

One row per input: its name, a call with the test's material, and words of the line.
"""

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from analysis.encoders.finetuning import finetune
from analysis.encoders.layout import layouts
from analysis.encoders.measures import baselines
from analysis.encoders.models import Encoder, load_classifier, load_encoder, load_tokenizer
from analysis.errors import InputError
from analysis.extract_corpus import main as extract_corpus
from analysis.figures.theme import layer_head
from analysis.files import expand
from analysis.papers.kovaleva2019.frames import read_links
from analysis.run import main as run
from analysis.run import run as execute
from analysis.scores.extraction import extract
from analysis.scores.sieves import SIEVES, sieve
from analysis.scores.words import split_words
from analysis.statistics.comparison import compare
from analysis.statistics.resampling import bootstrap
from analysis.statistics.roles import compose, transitions
from analysis.statistics.significance import adjust, clusters_of, published_table, role_table
from analysis.study.front_page import filled
from analysis.study.profiles import load_profile, parameters
from analysis.study.results import Results, seeds_of
from analysis.study.verification import committed, report
from analysis.texts.bundled import bundled_documents
from analysis.texts.chains import read_chains
from analysis.texts.corpora import open_corpus
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples
from analysis.texts.passages import load_passages
from analysis.texts.syntax import parse
from analysis.texts.treebank import conllu_files, read_trees

MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tHe ran.\tShe ran.\n"
WORD = "1\tHe\the\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tran\trun\tVERB\t_\t_\t0\troot\t_\t_\n\n"


class Given:
    """The material of the calls: a folder, the tiny encoder, examples and scores."""

    encoder: Encoder

    def __init__(self, folder: Path):
        self.folder = folder

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def glue(self, content: str | bytes) -> Any:
        """The examples of MRPC from a file with this content."""
        self.file("MRPC/dev.tsv", content)
        return load_examples("mrpc", source=str(self.folder), split="dev")

    def corpus(self, name: str, content: str | bytes, *columns: str) -> Any:
        """All examples of a corpus of one file."""
        return [*open_corpus(self.file(name, content), columns or ("text",)).examples()]

    def extracted(self, *arguments: str) -> None:
        """What the command for corpora does with a small text and these options."""
        text = self.file("texts/corpus.txt", "He ran.\nShe slept.\n")
        raised(extract_corpus, [str(text), str(self.folder / "out"), "--encoder", "tiny", *arguments])

    @property
    def examples(self) -> list[Example]:
        return examples()

    @property
    def scores(self) -> xr.DataArray:
        return scores()

    @property
    def table(self) -> pd.DataFrame:
        return published_table(scores())


@cache
def examples() -> list[Example]:
    return load_examples("toy-mrpc", split="dev", n=4, seed=0)


@cache
def scores() -> xr.DataArray:
    values = np.random.default_rng(0).random((4, 2, 2, 3))
    coordinates = {"sequence": list("abcd"), "role": ["cls", "sep"], "layer": range(2), "head": range(3)}
    return xr.DataArray(values, coordinates, ("sequence", "role", "layer", "head"))


def raised(command: Callable, arguments: list[str]) -> None:
    """The error line of a command, raised again."""
    import contextlib
    import io

    with contextlib.redirect_stderr(io.StringIO()) as shown, contextlib.redirect_stdout(io.StringIO()):
        status = command(arguments)
    assert status == 1
    lines = shown.getvalue().splitlines()
    raise InputError(lines[-1].removeprefix("error: "))


def registered(name: str, function: Callable, given: Given) -> None:
    """Extracts with a sieve that is registered for this call alone."""
    sieve(name)(function)
    try:
        extract(given.encoder, given.examples, roles=[name])
    finally:
        del SIEVES[name]


def tiny(given: Given, **options: Any) -> Any:
    """Fine-tunes the tiny encoder with wrong options."""
    wanted = {"train": given.examples, "dev": given.examples, "folder": given.folder / "checkpoint"} | options
    return finetune("tiny", wanted.pop("task", "mrpc"), **wanted)


TEXTS = {
    "task that is none": (lambda g: load_examples("mrcp"), "'mrcp'"),
    "toy task of old": (
        lambda g: load_examples("mrpc", "bundled"),
        "leave source out, and choose one of toy-mrpc, ",
    ),
    "task without a source": (lambda g: load_examples("mrpc"), "or name toy-mrpc, which needs none"),
    "toy task with a source": (lambda g: load_examples("toy-qqp", "glue"), "name qqp to read glue"),
    "split that is none": (
        lambda g: load_examples("toy-mrpc", split="validation"),
        "split 'validation' is unknown",
    ),
    "no example wanted": (
        lambda g: load_examples("toy-mrpc", n=0),
        "n = 0: give at least 1 example",
    ),
    "seed below zero": (
        lambda g: load_examples("toy-mrpc", seed=-1),
        "seed = -1: give a seed of at least 0",
    ),
    "folder without the task": (
        lambda g: load_examples("mrpc", source=str(g.folder)),
        "no such file; source must be 'hub' or a folder that holds MRPC/",
    ),
    "variable that is not set": (
        lambda g: load_examples("mrpc", source="$NO_SUCH_PLACE"),
        "NO_SUCH_PLACE is not set",
    ),
    "address for a folder": (lambda g: load_examples("mrpc", source="s3://glue"), "s3://glue is a URL"),
    "file without rows": (lambda g: g.glue(MRPC.splitlines()[0]), "dev.tsv: no rows below the header"),
    "file of another task": (lambda g: g.glue("sentence\tlabel\nHe ran.\t1\n"), "dev.tsv: no column"),
    "label that is none": (lambda g: g.glue(MRPC.replace("\n1\t", "\n7\t")), "is not one of 0, 1"),
    "empty text": (
        lambda g: g.glue(MRPC.replace("He ran.", " ")),
        "a text is empty; fill it in or remove the row",
    ),
    "tab inside a text": (lambda g: g.glue(MRPC.replace("He ran.", "He\tran.")), "number of fields is 6"),
    "Latin-1": (lambda g: g.glue(MRPC.replace("He", "Zoë").encode("latin-1")), "line 2: not UTF-8"),
    "no documents": (
        lambda g: bundled_documents(-1, "dev", 0),
        "n is -1: there are 200 dev documents",
    ),
    "documents of no split": (
        lambda g: bundled_documents(2, "day", 0),
        "split 'day' is unknown: choose one of train, dev, test",
    ),
    "gold relations that are not there": (
        lambda g: parse([Example("a", "He ran.")]),
        "a has no gold relations: name a spaCy pipeline or a CoNLL-U file",
    ),
    "parser that is not installed": (lambda g: parse([Example("a", "He ran.")], "xx_no_such"), "xx_no_such"),
    "parses of other texts": (
        lambda g: parse([Example("a", "She ran.")], g.file("a.conllu", WORD)),
        "has no sentence with the text 'She ran.'",
    ),
    "parses that are not there": (
        lambda g: parse([Example("a", "He ran.")], g.folder / "a.conllu"),
        "a.conllu",
    ),
    "parses with blanks for tabs": (
        lambda g: parse([Example("a", "He ran.")], g.file("a.conllu", WORD.replace("\t", " "))),
        "a.conllu",
    ),
    "head that is no word": (
        lambda g: parse(
            [Example("a", "He ran")], g.file("a.conllu", WORD.replace("\t2\tnsubj", "\t9\tnsubj"))
        ),
        "line 1: the head 9 is no word",
    ),
    "treebank that is not there": (lambda g: read_trees([g.folder / "a.conllu"]), "a.conllu"),
    "treebank without words": (
        lambda g: read_trees([g.file("a.conllu", "# text = He\n\n")]),
        "holds no word",
    ),
    "treebank that is a picture": (
        lambda g: read_trees([g.file("a.conllu", b"\x89PNG\xff\xfe")]),
        "a.conllu",
    ),
    "treebank of nine columns": (
        lambda g: read_trees([g.file("a.conllu", WORD.replace("\t_\n", "\n"))]),
        "line 1: 9 columns: CoNLL-U has 10",
    ),
    "heads in a circle": (
        lambda g: read_trees([g.file("a.conllu", WORD.replace("0\troot", "1\tdep"))]),
        "form a cycle: correct the tree",
    ),
    "words out of order": (
        lambda g: read_trees([g.file("a.conllu", WORD.replace("\n2\t", "\n3\t"))]),
        "renumber it",
    ),
    "folder without treebanks": (
        lambda g: conllu_files([str(g.folder)], g.folder, 2, "dev", 0),
        "holds no .conllu file",
    ),
    "mention that is never opened": (
        lambda g: read_chains(
            [g.file("a.conllu", "# newdoc id = d\n" + WORD.replace("_\n2", "Entity=e1)\n2"))]
        ),
        "closes a mention",
    ),
    "passages of words": (
        lambda g: load_passages("bundled", 4, 0, g.encoder.tokenizer, unit="word"),
        "unit is 'word'",
    ),
    "passages of four tokens": (
        lambda g: load_passages("bundled", 4, 0, g.encoder.tokenizer, 4),
        "max_tokens is 4",
    ),
    "no passage wanted": (
        lambda g: load_passages("bundled", 0, 0, g.encoder.tokenizer),
        "n is 0: give at least 1",
    ),
    "all of Wikipedia": (lambda g: load_passages("hub", None, 0, g.encoder.tokenizer), "n is null"),
    "passages of no file": (
        lambda g: load_passages(g.folder / "a.raw", 2, 0, g.encoder.tokenizer),
        "no such file",
    ),
    "passages of one line": (
        lambda g: load_passages(g.file("a.raw", " = Title = \n\n One . \n"), 2, 0, g.encoder.tokenizer),
        "holds no two paragraphs in a row",
    ),
    "corpus that is not there": (lambda g: open_corpus(g.folder / "a.txt"), "a.txt"),
    "corpus of another kind": (lambda g: g.corpus("a.docx", "text"), "the kind '.docx' is unknown"),
    "corpus without a line": (lambda g: g.corpus("a.txt", ""), "a.txt is empty"),
    "corpus that is binary": (lambda g: g.corpus("a.txt", b"\0\1\2"), "binary: give text in UTF-8"),
    "line without a text": (
        lambda g: g.corpus("a.jsonl", '{"text": " "}\n'),
        "line 1: a text is missing or empty",
    ),
    "corpus of empty lines": (lambda g: g.corpus("a.txt", "\n \n"), "a.txt is empty"),
    "half an emoji": (lambda g: Example("a", "Hi \ud83d!"), "a: half of a surrogate pair, '\\ud83d', at"),
    "half an emoji in a second text": (
        lambda g: Example("a", "Hi", "\udc00"),
        "'\\udc00', at character 0",
    ),
    "half an emoji in a choice": (lambda g: Example("a", "", choices=("b", "\ud83d")), "half of a surrogate"),
    "half an emoji in a corpus": (
        lambda g: g.corpus("a.jsonl", '{"text": "one"}\n{"text": "two \\ud83d"}\n'),
        "a.jsonl, line 2: half of a surrogate pair, '\\ud83d', at character 4",
    ),
    "name of a file in Latin-1": (
        lambda g: g.corpus(os.fsdecode(b"Zo\xeb.txt"), "one\n"),
        "id 'Zo\\udceb.txt-0': half of a surrogate pair",
    ),
    "half an emoji in a link": (
        lambda g: read_links(
            g.file("a.jsonl", '{"sentence": "a \\ud83d", "target": "a", "frame_elements": ["a"]}\n')
        ),
        "a.jsonl, line 1: half of a surrogate pair",
    ),
    "text that is a number": (lambda g: Example("a", 7), "a: a text is 7: give a string"),
    "object cut short": (lambda g: g.corpus("a.jsonl", '{"text": "one"}\n{"te\n'), "not JSON, or cut short"),
    "list for an object": (lambda g: g.corpus("a.jsonl", "[1]\n"), "not a JSON object"),
    "three columns": (
        lambda g: g.corpus("a.jsonl", '{"a": "b"}\n', "a", "b", "c"),
        "name one column, or two",
    ),
    "Parquet that is none": (lambda g: g.corpus("a.parquet", "text"), "no Parquet file"),
    "folder without corpora": (lambda g: open_corpus(g.folder), "holds no file that ends in"),
}
ENCODERS = {
    "checkpoint that is not there": (lambda g: load_encoder(g.folder / "none"), "no such checkpoint folder"),
    "checkpoint without files": (lambda g: load_encoder(g.file("c/a.txt", "").parent), "c"),
    "configuration that is no JSON": (lambda g: load_encoder(g.file("c/config.json", "{").parent), "c"),
    "precision that is none": (lambda g: load_encoder("tiny", precision="half"), "precision is 'half'"),
    "device that is none": (lambda g: load_encoder("tiny", device="gpu"), "gpu"),
    "device that is not there": (lambda g: load_encoder("tiny", device="cuda:93"), "cuda:93"),
    "tokenizer of an empty folder": (lambda g: load_tokenizer(g.file("c/a.txt", "").parent), "c"),
    "classifier that is not there": (
        lambda g: load_classifier(g.folder / "none", 2),
        "no such checkpoint folder",
    ),
    "two texts of one id": (
        lambda g: layouts(g.encoder.tokenizer, [Example("a", "b"), Example("a", "c")]),
        "same id",
    ),
    "no texts": (lambda g: layouts(g.encoder.tokenizer, []), "there are no examples to tokenise"),
    "text of blanks": (lambda g: layouts(g.encoder.tokenizer, [Example("a", "  ")]), "a: "),
    "text of a control character": (lambda g: layouts(g.encoder.tokenizer, [Example("a", "\x00")]), "a: "),
    "more tokens than positions": (
        lambda g: layouts(g.encoder.tokenizer, g.examples, 10**6),
        "max_tokens is 1000000",
    ),
    "segments of another kind": (
        lambda g: layouts(g.encoder.tokenizer, g.examples, 128, "ones"),
        "segment_ids is 'ones': choose pair or zeros",
    ),
    "no words": (lambda g: split_words(g.encoder.tokenizer, [[]]), "no sequence of words is left"),
    "training without labels": (lambda g: tiny(g, train=[Example("a", "b", "c")]), "a has no label"),
    "training in another precision": (lambda g: tiny(g, precision="float16"), "float16"),
    "fine-tuning on one label": (
        lambda g: tiny(g, train=[Example(str(row), "b", "c", 1) for row in range(3)]),
        "mrpc: all 3 training examples have the label 1: take more examples",
    ),
    "training of one label": (
        lambda g: baselines("mrpc", [Example("a", "b", label=1)] * 3, []),
        "have one label",
    ),
}
SCORES = {
    "role that is none": (
        lambda g: extract(g.encoder, g.examples, roles=["locall"]),
        "unknown role 'locall'",
    ),
    "arithmetic that is none": (
        lambda g: extract(g.encoder, g.examples, roles=["cls"], arithmetic="exact"),
        "arithmetic is 'exact': choose corrected or published",
    ),
    "relations of other texts": (
        lambda g: extract(g.encoder, g.examples, relations={}),
        "has no relations: parse",
    ),
    "nothing to extract": (lambda g: extract(g.encoder, [], roles=["cls"]), "there are no examples"),
    "sieve of another shape": (
        lambda g: registered("odd", lambda *_: np.ones((2, 3)), g),
        "'odd' has shape (2, 3)",
    ),
    "sieve that is a mask": (
        lambda g: registered("mask", lambda layout, pairs: np.ones((len(layout), len(layout)), bool), g),
        "sieve 'mask' sums to",
    ),
    "sieve of ones": (
        lambda g: registered(
            "ones", lambda layout, pairs: np.ones((len(layout), len(layout)), np.float32), g
        ),
        "make the mask a sieve with analysis.scores.sieves.rows",
    ),
}
STATISTICS = {
    "significance of 1": (lambda g: published_table(g.scores, alpha=1.0), "alpha is 1.0"),
    "significance of 5": (lambda g: role_table(g.scores, alpha=5.0), "alpha is 5.0"),
    "one sequence is enough": (lambda g: published_table(g.scores, minimum=1), "at least 2 sequences"),
    "scores of other axes": (
        lambda g: role_table(g.scores.rename(head="column")),
        "scores have the dimensions",
    ),
    "unit that is none": (lambda g: role_table(g.scores, unit="token"), "unit 'token' is unknown"),
    "clusters that are not there": (lambda g: clusters_of(g.scores, "cluster"), "no coordinate cluster"),
    "threshold that is no number": (lambda g: role_table(g.scores, tau=float("nan")), "tau is nan"),
    "too few resamples": (lambda g: role_table(g.scores, resamples=9), "resamples"),
    "bootstrap of too few": (lambda g: bootstrap(np.ones((5, 1)), 0.0, resamples=10), "resamples"),
    "correction that is none": (
        lambda g: adjust(np.array([0.5]), "bonferoni"),
        "method 'bonferoni' is unknown",
    ),
    "window that was not stored": (lambda g: compose(g.scores), "extract"),
    "direction that is none": (lambda g: compose(g.scores, direction="up"), "direction"),
    "states of other sequences": (
        lambda g: compare(g.scores, g.scores.assign_coords(sequence=list("abce")), g.table, g.table),
        "sequence",
    ),
    "states of other heads": (lambda g: compare(g.scores, g.scores.isel(head=[0]), g.table, g.table), "head"),
    "tables of other heads": (
        lambda g: transitions(g.table, g.table.query("head > 0")),
        "differ in heads or roles",
    ),
    "two tasks in one figure": (
        lambda g: layer_head(pd.concat([g.table] * 2), "cls", "mean"),
        "select one task",
    ),
}
STUDY = {
    "profile that is none": (lambda g: load_profile("ofline"), "unknown profile 'ofline': choose from"),
    "notebook that is none": (lambda g: execute("03_tests", "smoke", {}), "unknown notebook '03_tests'"),
    "parameter that is none": (lambda g: parameters("03_test", "smoke", {"taus": 3}), "no parameter 'taus'"),
    "word for a number": (lambda g: parameters("03_test", "smoke", {"tau": "three"}), "tau is 'three': give"),
    "command of no profile": (
        lambda g: raised(run, ["03_test", "--profile", "none"]),
        "unknown profile 'none'",
    ),
    "state that is none": (lambda g: seeds_of("tuned", [0]), "state is 'tuned'"),
    "seed given twice": (lambda g: seeds_of("finetuned", [0, 0]), "different whole numbers"),
    "one checkpoint for two seeds": (
        lambda g: seeds_of("finetuned", [0, 1], "bert"),
        "write {seed} into its name",
    ),
    "scores that were not made": (
        lambda g: Results("none").load_scores("mrpc", None),
        "run 01_extract for task mrpc",
    ),
    "table that was not made": (lambda g: Results("none").load_table("roles"), "is missing or damaged"),
    "parts that were not made": (
        lambda g: Results("none").join_parts("roles", ["mrpc"]),
        "run make reproduce",
    ),
    "document without the section": (
        lambda g: filled("<!-- x -->1<!-- /x -->", {}, "README.md"),
        "README.md has the place 'x'",
    ),
    "nothing committed": (lambda g: report("none"), "nothing to compare with"),
    "release without tables": (lambda g: committed("none", root=g.folder), "nothing to compare with"),
    "variable in a path": (lambda g: expand("${NO_SUCH_PLACE}/data"), "NO_SUCH_PLACE is not set"),
    "shard that is not there": (lambda g: g.extracted("--shard", "4/4"), "the shards of 4 are 0 to 3"),
    "output inside of the input": (
        lambda g: raised(extract_corpus, [str(g.file("in/a.txt", "a\n").parent), str(g.folder / "in/out")]),
        "lies in the input",
    ),
    "output that is a file": (
        lambda g: raised(extract_corpus, [str(g.file("a.txt", "a\n")), str(g.file("out", "x"))]),
        "is a file: name a folder",
    ),
    "merging what was not made": (lambda g: g.extracted("--merge"), "run.json is missing or damaged"),
    "corpus with another encoder": (lambda g: g.extracted("--encoder", "no-such-folder/x"), "no-such-folder"),
    "corpus with an unknown role": (lambda g: g.extracted("--roles", "locall"), "unknown role 'locall'"),
    "corpus with Ray and one shard": (
        lambda g: g.extracted("--engine", "ray", "--shard", "0/2"),
        "--engine ray",
    ),
}
CASES = TEXTS | ENCODERS | SCORES | STATISTICS | STUDY


@pytest.fixture(scope="module", autouse=True)
def _encoder() -> None:
    Given.encoder = load_encoder("tiny")


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    """Material in a folder of its own; the Hub is never asked."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path / "results"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("NO_SUCH_PLACE", raising=False)
    return Given(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_bad_input_ends_in_one_clear_line(given: Given, name: str):
    call, words = CASES[name]
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        call(given)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 1000  # the longest lists every role
