"""Bad inputs to the library, like those of a new user: each ends in one clear line that names the fault.

A row for each input: words of the line, and a call with the test's material.
"""

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import xarray as xr
from classifiers import EXAMPLES, classifier
from removals import logits
from treebanks import conllu

from analysis.encoders.finetuning import finetune
from analysis.encoders.layout import Layout, layouts
from analysis.encoders.measures import match_class
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.redirection import redirect
from analysis.errors import InputError
from analysis.run import run
from analysis.scale import main as scale
from analysis.scores.extraction import extract
from analysis.scores.sieves import SIEVES, sieve
from analysis.statistics.claims import read_claims
from analysis.statistics.effects import effect_table
from analysis.statistics.significance import Rule, role_table
from analysis.study.parameters import parse_name
from analysis.study.profiles import load_profile, parameters
from analysis.study.results import Results, seeds_of
from analysis.study.verification import verify
from analysis.texts.chains import read_chains
from analysis.texts.dependencies import conllu_files, read_trees
from analysis.texts.examples import Example
from analysis.texts.folders import files_of
from analysis.texts.glue import load_examples
from analysis.texts.passages import load_passages
from analysis.texts.syntax import parse
from analysis.texts.tasks import toy

MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tHe ran.\tShe ran.\n"
ONE = [Example("a", "He ran.")]
WORD = "1\tHe\the\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tran\trun\tVERB\t_\t_\t0\troot\t_\t_\n\n"
CAFE, SPACED = [Example("a", "Café ran")], [Example("a", "He\u00a0ran")]
DECOMPOSED = WORD.replace("He", "Cafe\u0301")
DAY = datetime(2026, 11, 27)


class Material:
    """What the calls are made with: a folder, the tiny encoder, examples and scores."""

    encoder: Encoder
    examples: list[Example]

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

    def passages(self, source: str | Path) -> Any:
        return load_passages(source, 2, 0, self.encoder.tokenizer)

    def scored(
        self, content: str | bytes, *arguments: str, name: str = "corpus.jsonl", output: str = "out"
    ) -> None:
        """Raises the error line of the command for corpora, given one file with this content."""
        self.file(f"texts/{name}", content)
        self.scored_path(self.folder / "texts", *arguments, output=output)

    def scored_path(self, path: Path, *arguments: str, output: str = "out") -> None:
        """As `scored`, for a file or a folder."""
        command = [str(path), str(self.folder / output)]
        with redirect_stderr(io.StringIO()) as stderr, redirect_stdout(io.StringIO()):
            assert scale([*command, "--encoder", "tiny", *arguments]) == 1
        assert not (self.folder / output / "run.json").exists()  # which would refuse the corrected command
        raise InputError(stderr.getvalue().splitlines()[-1].removeprefix("error: "))

    def linked(self, target: str | Path) -> None:
        (self.folder / "texts").mkdir()
        (self.folder / "texts/link").symlink_to(target)
        files_of(self.folder / "texts", {".txt"})

    def tuned(self, train: list[Example]) -> Any:
        return finetune("tiny", "mrpc", train=train, dev=self.examples, folder=self.folder / "checkpoint")

    def redirected(self, **options: Any) -> Any:
        return redirect(classifier("bert"), EXAMPLES, **({"heads": {"both": [(0, 1), (1, 2)]}} | options))

    def sieved(self, name: str, function: Callable) -> None:
        """Extracts with a sieve that is registered for this call alone."""
        sieve(name)(function)
        try:
            extract(self.encoder, self.examples, roles=[name])
        finally:
            del SIEVES[name]

    def effects(self, label: int) -> Any:
        """Effects on the AUC where all examples have one label."""
        return effect_table(logits(np.zeros((2, 3), int), ["0-0"]), np.full(3, label), task="mrpc")

    def claims(self, **changed: Any) -> Any:
        """The claims of a file with one entry; a field that is None is left out."""
        entry = {"id": "A1", "statement": "s", "source": "s", "measure": "m", "threshold": 1, "relation": ">"}
        fields = {name: value for name, value in (entry | changed).items() if value is not None}
        return read_claims(self.file("claims.yaml", str([fields])))

    def chains(self, *entities: str) -> Any:
        """The chains of a document of three words with these entities."""
        words = [f"w X X {number} dep {entity}".removesuffix(" _") for number, entity in enumerate(entities)]
        return read_chains([self.file("a.conllu", conllu("\n".join(words)))])

    @property
    def scores(self) -> xr.DataArray:
        values = np.random.default_rng(0).random((4, 2, 2, 3))
        names = {"sequence": list("abcd"), "role": ["cls", "sep"], "layer": range(2), "head": range(3)}
        return xr.DataArray(values, names, ("sequence", "role", "layer", "head"))


def rows(*texts: Any) -> str:
    """A corpus of these texts."""
    return "".join(json.dumps({"text": text}) + "\n" for text in texts)


def parquet(**columns: list) -> bytes:
    """A Parquet file of these columns."""
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def ones(layout: Layout, _: Any) -> np.ndarray:
    """A sieve of ones, which do not sum to 1."""
    return np.ones((len(layout), len(layout)), np.float32)


TEXTS = [
    ("'mrcp'", lambda m: load_examples("mrcp")),
    ("or name toy-mrpc, which needs none", lambda m: load_examples("mrpc")),
    ("name qqp to read glue", lambda m: load_examples("toy-qqp", "glue")),
    ("split 'validation' is unknown", lambda m: load_examples("toy-mrpc", split="validation")),
    ("task 'rte' has no toy version", lambda m: toy("rte")),
    ("n = 0: give at least 1 example", lambda m: load_examples("toy-mrpc", n=0)),
    ("seed = -1: give a seed of at least 0", lambda m: load_examples("toy-mrpc", seed=-1)),
    ("source must be 'hub' or a folder that holds MRPC/", lambda m: load_examples("mrpc", str(m.folder))),
    ("$NOWHERE names an environment variable that is not set", lambda m: load_examples("mrpc", "$NOWHERE")),
    ("s3://glue is a URL", lambda m: load_examples("mrpc", "s3://glue")),
    ("dev.tsv: no rows below the header", lambda m: m.glue(MRPC.splitlines()[0])),
    ("dev.tsv: no column", lambda m: m.glue("sentence\tlabel\nHe ran.\t1\n")),
    ("the header names column #2 String twice", lambda m: m.glue(MRPC.replace("ID\t#2 ID", "ID\t#2 String"))),
    ("a text is empty; fill it in or remove the row", lambda m: m.glue(MRPC.replace("He ran.", " "))),
    ("number of fields is 6", lambda m: m.glue(MRPC.replace("He ran.", "He\tran."))),
    ("line 2: not UTF-8", lambda m: m.glue(MRPC.replace("He", "Zoë").encode("latin-1"))),
    ("a has no gold relations: name a spaCy pipeline or a CoNLL-U file", lambda m: parse(ONE)),
    ("xx_no_such", lambda m: parse(ONE, "xx_no_such")),
    ("has no sentence with the text 'He ran.'", lambda m: parse(ONE, m.file("a.conllu", WORD))),
    ("has U+0065 LATIN SMALL LETTER E at character 3", lambda m: parse(CAFE, m.file("a.conllu", DECOMPOSED))),
    (
        "has U+0020 SPACE at character 2 (from 0), not U+00A0",
        lambda m: parse(SPACED, m.file("a.conllu", WORD)),
    ),
    (
        "# text line (in the characters",
        lambda m: read_trees([m.file("a.conllu", f"# text = Café ran\n{DECOMPOSED}")]),
    ),
    ("none.conllu cannot be read: No such", lambda m: parse(ONE, m.folder / "none.conllu")),
    ("line 1: not UTF-8", lambda m: read_trees([m.file("a.conllu", b"\x89PNG\xff\xfe")])),
    (
        "a.conllu, document 'a': a sentence opens the mention '(1' and does",
        lambda m: m.chains("(1", "(1", "1)"),
    ),
    ("a.conllu, document 'a': Entity=2) closes a mention", lambda m: m.chains("(1", "2)", "1)")),
    ("a.conllu, document 'a': Entity=1: write brackets", lambda m: m.chains("_", "1", "_")),
    ("a.conllu, document 'a': Entity=(1[1/2]): write brackets", lambda m: m.chains("(1[1/2])", "_", "_")),
    ("holds no .conllu file", lambda m: conllu_files([str(m.folder)], m.folder, 2, "dev", 0)),
    ("'sst-2' has 1 text", lambda m: match_class("sst-2")),
    ("'sts-b' has 2 text(s), 0 classes", lambda m: match_class("sts-b")),
    ("task '' is unknown", lambda m: match_class("")),
    ("no such file", lambda m: m.passages(m.folder / "a.raw")),
    ("holds no two paragraphs in a row", lambda m: m.passages(m.file("a.raw", " = Title = \n\n One . \n"))),
    ("a: half of a surrogate pair, '\\ud83d', at character 3", lambda m: Example("a", "Hi \ud83d!")),
    ("line 2 of ", lambda m: m.scored('{"text": "one"}\n{"te\n')),
    ("corpus.jsonl is no JSON: maximum recursion depth", lambda m: m.scored("[" * 20_000 + "]" * 20_000)),
    ("corpus.jsonl is no JSON object: write", lambda m: m.scored('["a"]\n')),
    ("corpus.jsonl has no column 'text': name others", lambda m: m.scored('{"a": "b"}\n')),
    ("row 1: a text is ['He', 'ran']: give a string", lambda m: m.scored(rows("a", ["He", "ran"]))),
    ("row 1: a text is 12: give a string", lambda m: m.scored(rows("a", 12))),
    ("row 0: the id is 13.5: give a string or", lambda m: m.scored('{"id": 13.5, "text": "a"}\n')),
    (
        "holds list<element: string>: make it a column",
        lambda m: m.scored(parquet(text=[["a"]]), name="c.parquet"),
    ),
    ("column 'text' holds timestamp[us]: make", lambda m: m.scored(parquet(text=[DAY]), name="c.parquet")),
    ("row 0: the id is datetime", lambda m: m.scored(parquet(text=["a"], id=[DAY]), name="c.parquet")),
    (
        "corpus.txt cannot be read: 'utf-8' codec",
        lambda m: m.scored("Zoë".encode("latin-1"), name="corpus.txt"),
    ),
    ("texts/none.jsonl is no corpus: give a file", lambda m: m.scored_path(m.folder / "texts/none.jsonl")),
    ("corpus.jsonl, row 1: a text is missing or empty", lambda m: m.scored('{"text": "b"}\n{"text": " "}\n')),
    ("two texts have the id '1'", lambda m: m.scored('{"id": 1, "text": "b"}\n{"id": 1, "text": "c"}\n')),
    ("name one column, or two", lambda m: m.scored('{"a": "b"}\n', "--columns", "a", "b", "c")),
    ("corpus.parquet cannot be read: ", lambda m: m.scored("text", name="corpus.parquet")),
    ("is no corpus: give a file that ends in", lambda m: m.scored("text", name="corpus.docx")),
    ("lie in one another", lambda m: m.scored('{"text": "b"}\n', output="texts/out")),
    ("holds no text", lambda m: m.scored("\n", name="corpus.txt")),
    ("the spaCy pipeline 'nosuch' cannot", lambda m: m.scored('{"text": "b"}\n', "--parser", "nosuch")),
    ("link is a link to nothing", lambda m: m.linked("nowhere")),
    ("link is a link to a folder", lambda m: m.linked(m.folder)),
]
ENCODERS = [
    ("no such checkpoint folder", lambda m: load_encoder(m.folder / "none")),
    ("precision is 'half'", lambda m: load_encoder("tiny", precision="half")),
    ("gpu", lambda m: load_encoder("tiny", device="gpu")),
    ("cuda:93", lambda m: load_encoder("tiny", device="cuda:93")),
    ("a: text_a has no word piece", lambda m: layouts(m.encoder.tokenizer, [Example("a", "  ")])),
    ("max_tokens is 1000000", lambda m: layouts(m.encoder.tokenizer, m.examples, 10**6)),
    ("a has no label", lambda m: m.tuned([Example("a", "b", "c")])),
    ("mrpc: all 3 training examples have the label 1", lambda m: m.tuned([Example("a", "b", "c", 1)] * 3)),
    ("'both' names no head", lambda m: m.redirected(heads={"both": []})),
    ("has no head 7-0", lambda m: m.redirected(heads={"both": [(7, 0)]})),
    ("rows is 'some': choose from matched", lambda m: m.redirected(rows="some")),
    ("to is 'moon': choose from other text", lambda m: m.redirected(to="moon")),
    ("dose is 1.5", lambda m: m.redirected(dose=1.5)),
    ("text is 3", lambda m: m.redirected(text=3)),
]
SCORES = [
    ("unknown role 'locall'", lambda m: extract(m.encoder, m.examples, roles=["locall"])),
    ("arithmetic is 'exact': choose", lambda m: extract(m.encoder, m.examples, arithmetic="exact")),
    ("has no relations: parse", lambda m: extract(m.encoder, m.examples, relations={})),
    ("there are no examples", lambda m: extract(m.encoder, [], roles=["cls"])),
    ("'odd' has shape (2, 3)", lambda m: m.sieved("odd", lambda *_: np.ones((2, 3)))),
    ("make the mask a sieve with analysis.scores.sieves.rows", lambda m: m.sieved("ones", ones)),
]
STATISTICS = [
    ("'shade'; the keys are id, statement, ", lambda m: m.claims(shade="red")),
    ("'source'; the keys are id, statement, ", lambda m: m.claims(source=None)),
    ("claims.yaml: claim A1: relation is '>='; use > or <", lambda m: m.claims(relation=">=")),
    ("claim A1: threshold is 'half'; give a number", lambda m: m.claims(threshold="half")),
    ("threshold_from is 'me'; use paper or this study", lambda m: m.claims(threshold_from="me")),
    ("alpha is 1.0", lambda m: Rule(alpha=1.0)),
    ("at least 2 sequences", lambda m: Rule(minimum=1)),
    ("scores have the dimensions", lambda m: role_table(m.scores.rename(head="column"))),
    ("unit 'token' is unknown", lambda m: Rule(unit="token")),
    ("tau is nan", lambda m: Rule(tau=float("nan"))),
    ("resamples", lambda m: role_table(m.scores, Rule(resamples=9))),
    ("mrpc: 0 of 3 dev examples", lambda m: m.effects(0)),
    ("mrpc: 3 of 3 dev examples", lambda m: m.effects(1)),
]
STUDY = [
    ("unknown profile 'ofline': choose from", lambda m: load_profile("ofline")),
    ("unknown notebook '03_tests'", lambda m: run("03_tests", "smoke", {})),
    ("01_extract-mrpc: choose from 01_extract-mrpc-pretrained, 01_", lambda m: parse_name("01_extract-mrpc")),
    ("there is no run 03_test_all-mrpc: choose from 03_test_all", lambda m: parse_name("03_test_all-mrpc")),
    ("03_test-mprc: choose from 03_test-mrpc, 03_test-qqp, ", lambda m: parse_name("03_test-mprc")),
    ("no parameter 'taus'", lambda m: parameters("03_test", "smoke", {"taus": 3})),
    ("tau is 'three': give", lambda m: parameters("03_test", "smoke", {"tau": "three"})),
    ("state is 'tuned'", lambda m: seeds_of("tuned", [0])),
    ("different whole numbers", lambda m: seeds_of("finetuned", [0, 0])),
    ("write {seed} into its name", lambda m: seeds_of("finetuned", [0, 1], "bert")),
    ("make reproduce PROFILE=none makes all", lambda m: Results("none").load_scores("mrpc", None)),
    ("is missing", lambda m: Results("none").load_table("roles")),
    ("roles-mrpc.csv is missing", lambda m: Results("none").join_parts("roles", ["mrpc"])),
    ("nothing of profile none has run here", lambda m: verify("none")),
    ("no-such-folder", lambda m: m.scored('{"text": "a"}\n', "--encoder", "no-such-folder/x")),
    ("unknown role 'nosuch'", lambda m: m.scored('{"text": "a"}\n', "--roles", "nosuch")),
]
CASES = [*TEXTS, *ENCODERS, *SCORES, *STATISTICS, *STUDY]


@pytest.fixture(scope="module", autouse=True)
def _encoder() -> None:
    Material.encoder = load_encoder("tiny")
    Material.examples = load_examples("toy-mrpc", split="dev", n=4, seed=0)


@pytest.fixture
def material(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Material:
    """Material in a folder of its own; the Hub is never asked."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path / "results"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("NOWHERE", raising=False)
    return Material(tmp_path)


@pytest.mark.parametrize(("words", "call"), CASES, ids=[words for words, _ in CASES])
def test_bad_input_ends_in_one_clear_line(material: Material, words: str, call: Callable):
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        call(material)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 1000  # the longest lists every role
