"""The whole study end to end through `make`, on a random encoder and a handful of sentences.

By default it is profile `paper` at the size of `smoke`, whose data `make data` brings from servers on the loopback
address; with STUDY_PROFILE=smoke it is profile smoke, on toy tasks.
"""

import fnmatch
import os
import re
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import xarray as xr
import yaml
from consistency import (
    cells_with_extra_pictures,
    claims_that_differ,
    copies_of_other_code,
    dead_links,
    faults_of_index,
    without_meaning,
)
from forks import forking
from loopback import ENCODER, ROWS, THIRD, TUNED, loopback, small_paper
from studies import Tree, runs_of, saved, started, values_of

from analysis.encoders.models import load_encoder
from analysis.files import ROOT
from analysis.study.claims import PAPERS, known_claims, saved_claims
from analysis.study.pages import TEMPLATE, front_page
from analysis.study.parameters import notebook_names
from analysis.study.profiles import parameters
from analysis.study.provenance import records_in
from analysis.study.results import Results
from analysis.study.runs import STATES
from analysis.texts.glue import load_examples
from analysis.texts.tasks import GLUE_TASKS, original

PROFILE = os.environ.get("STUDY_PROFILE", "paper")
TOY = PROFILE == "smoke"
COMMITTED = ("glue-mpnet", "glue-minilm")  # the encoders beside which 12_encoders sets that of `paper`
PARAMETERS = parameters("03_test_all", "smoke")  # the sizes of both
TASKS = PARAMETERS["tasks"] if TOY else [original(task) for task in PARAMETERS["tasks"]]
PARAMETERS_OF_RUNS = parameters("01_extract", "smoke")
SEEDS = PARAMETERS_OF_RUNS["seeds"]
REFERENCE_RUN = {"pretrained": "pretrained", "finetuned": f"finetuned-{SEEDS[0]}"}  # whose heads are shown
RUNS = ["pretrained", *(f"finetuned-{seed}" for seed in SEEDS)]
MAPS = ("", "-shuffled", "-twin", "-spread")
SHAPE = (3, 4)
SEQUENCES = PARAMETERS_OF_RUNS["n"]

CHECKPOINTS = TASKS if TOY else TUNED
RUNS_OF_SMOKE = [run if TOY else run.replace("-toy-", "-") for run in runs_of("smoke")]
NOTEBOOKS = sorted({*RUNS_OF_SMOKE, *(f"00_finetune-{task}" for task in CHECKPOINTS)})


@dataclass(frozen=True)
class Ran(Tree):
    """A tree in which the study has run."""

    @property
    def snapshots(self) -> Path:
        """The versions of the encoder that came from the Hub."""
        hub = self.repository.parent / "home" / "hub"
        return hub / f"models--{ENCODER.replace('/', '--')}" / "snapshots"

    def table(self, name: str) -> pd.DataFrame:
        """A saved table."""
        return pd.read_csv(self.folder / "tables" / f"{name}.csv")


@pytest.fixture(scope="session")
def study(tmp_path_factory) -> Ran:
    """The study after a whole run, two notebooks at a time in forked processes."""
    folder = tmp_path_factory.mktemp("study")
    tree = Ran.new(folder, "benchmarks", "notebooks", "profiles", profile=PROFILE)
    with pytest.MonkeyPatch.context() as patch, ExitStack() as servers:
        if not TOY:
            (tree.repository / "profiles" / "small.yaml").write_text(small_paper())
            (tree.repository / "profiles" / "paper.yaml").write_text(THIRD)
            for name in COMMITTED:
                shutil.copytree(ROOT / "results" / name / "tables", tree.results / name / "tables")
            sources, environment = servers.enter_context(loopback(folder))
            for name, value in environment.items():
                patch.setenv(name, value)
            for name in ("DATA_DIR", "PARSER"):
                patch.delenv(name, raising=False)
            brought = tree.make("data", f"SOURCES={sources}")
            assert brought.returncode == 0, brought.stderr[-3000:]
        with forking(tree.repository) as python:
            done = replace(tree, python=python).make("reproduce", "JOBS=2")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 2 * len(NOTEBOOKS) + len(PAPERS) + 2
    assert started(done) == set(NOTEBOOKS)
    return tree


# --- what a run leaves -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "suffixes"), [("table", ["csv"]), ("figure", ["png"])])
def test_tables_and_figures_are_those_that_notebooks_save(study: Ran, kind: str, suffixes: list[str]):
    """Every file that notebooks always save is there, and no file that no notebook saves."""
    saved_names = [saved(notebook, kind) for notebook in notebook_names()]
    always, sometimes = ({name for item in saved_names for name in item[place]} for place in range(2))
    for suffix in suffixes:
        names = {path.stem for path in (study.folder / f"{kind}s").glob(f"*.{suffix}")}
        assert [name for name in always if not fnmatch.filter(names, name)] == []
        known = {name for item in always | sometimes for name in fnmatch.filter(names, item)}
        assert names - known == set()
    assert {path.suffix[1:] for path in (study.folder / f"{kind}s").iterdir()} == {*suffixes}


def test_files_of_a_run(study: Ran):
    """Everything else that a run makes is there, and nothing is half-written."""
    for folder, names in (
        ("notebooks", {f"{name}.ipynb" for name in NOTEBOOKS}),
        ("provenance", {f"{name}.json" for name in NOTEBOOKS}),
        ("cache/done", {*NOTEBOOKS, "index"}),
        ("cache/running", set()),
    ):
        assert {path.name for path in (study.folder / folder).iterdir()} == names, folder
    checkpoints = {path.name for path in (study.folder / "cache/checkpoints").iterdir()}
    tuned = {f"{task}-{seed}" for task in CHECKPOINTS for seed in SEEDS}
    trained_otherwise = {name for name in checkpoints if re.search(r"-(full|un?blocked|\w+-heads)-\d$", name)}
    assert (
        checkpoints - trained_otherwise == tuned
    )  # 11_matching trains on all examples, or with blocked heads
    scores = {path.stem for path in (study.folder / "cache/scores").iterdir()}
    assert scores >= {f"{task}-{run}{maps}" for task in TASKS for run in RUNS for maps in MAPS}
    # A paper may score other maps of the same runs.
    assert all(name.startswith(tuple(f"{task}-{run}" for task in TASKS for run in RUNS)) for name in scores)


def test_results_agree_with_each_other_and_with_the_scripts(study: Ran, monkeypatch):
    """Copies have the code of notebooks/, the index is complete, tables have a meaning, and README can be written."""
    assert copies_of_other_code(study.folder) == []
    assert cells_with_extra_pictures(study.folder) == []
    assert claims_that_differ(study.folder) == []
    assert faults_of_index(study.folder) == set()
    assert dead_links(study.folder) == set()
    assert without_meaning(study.folder) == []
    monkeypatch.setenv("RESULTS_DIR", str(study.results))
    results = Results(PROFILE)
    tables = saved_claims(results)
    assert len(tables) == len(PAPERS)
    measured = pd.concat(study.table(path.stem) for path in study.folder.glob("tables/units-*.csv"))
    by_claim = measured.groupby("claim")["unit"]
    assert not any(units.duplicated().any() for _, units in by_claim)  # no claim is saved twice
    assert {*by_claim.groups} == {claim.id for claims in known_claims().values() for claim in claims}
    assert "{" not in front_page(PROFILE)
    numbers = re.findall(
        r'number\("(\w+)", "\w+", (?!profile)', (ROOT / TEMPLATE).read_text(encoding="utf-8")
    )
    assert {*numbers} <= {*results.table_names()}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_executed_notebook(study: Ran, name: str):
    check_copy(study, name)


def check_copy(tree: Tree, name: str) -> None:
    """All cells ran in order without failures, and nothing reveals the machine or the time."""
    path = tree.folder / "notebooks" / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert outputs
    text = path.read_text(encoding="utf-8")
    traces = (
        str(ROOT),
        str(tree.repository),
        f"{Path.home()}/",
        "/site-packages/",
        "ipykernel_",
        "start_time",
    )
    assert [trace for trace in traces if trace in text] == []
    assert not {"papermill", "execution"} & {key for cell in notebook.cells for key in cell.metadata}


@pytest.mark.skipif(
    not TOY, reason="slow, nine kernels: make test-slow runs it beside the study of profile smoke"
)
def test_one_paper_as_a_user_runs_it(study: Ran):
    """In kernels of their own, for one task: copies with their links, tables with their records, and nothing else."""
    like = "like: smoke\ncommon: {tasks: [toy-mrpc]}\nnot_run: [12_encoders]\n"
    (study.repository / "profiles/one.yaml").write_text(like)
    tree = replace(study, profile="one")
    done = tree.make("reproduce", "PAPERS=pande2021", "JOBS=2")
    assert (done.returncode, done.stderr) == (0, "")
    papers = ("00_", "01_", "02_", "03_", "04_", "98_", "99_")
    names = {name for name in runs_of("smoke") if name.startswith(papers) and "sst-2" not in name}
    assert started(done) == names
    for folder, suffix in (("notebooks", "ipynb"), ("provenance", "json")):
        assert {path.name for path in (tree.folder / folder).iterdir()} == {
            f"{name}.{suffix}" for name in names
        }
    for name in names:
        check_copy(tree, name)
    for faults in (copies_of_other_code, cells_with_extra_pictures, faults_of_index, without_meaning):
        assert not faults(tree.folder), faults.__name__
    recorded = {table for record in records_in(tree.folder).values() for table in record["tables"]}
    assert recorded == {path.stem for path in (tree.folder / "tables").iterdir()}
    assert [*(tree.folder / "cache/running").iterdir()] == []


@pytest.mark.skipif(TOY, reason="profile smoke reads no data")
def test_data_are_the_files_that_glue_ships(study: Ran):
    """`make data` writes every split of every task of the Hub."""
    for task in GLUE_TASKS.values():
        for split in task.splits:
            examples = load_examples(task.name, study.repository / "data/cache/glue", split)
            assert len(examples) == ROWS
            labels = {example.label for example in examples}
            assert labels == ({None} if split.startswith("test") else {0, 1, 0.25, 1.25} & labels)
            assert split.startswith("test") or len(labels) == 2


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_parameters_of_the_executed_notebook(study: Ran, name: str):
    """The defaults, the values that differ from them, and the set-up below, which is folded."""
    notebook = nbformat.read(study.folder / "notebooks" / f"{name}.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    tags = [cell.metadata.get("tags", []) for cell in code]
    assert [item for item in tags if item] == [["parameters"], ["injected-parameters"], ["hide-input"]]
    assert code[2].metadata["jupyter"] == {"source_hidden": True}
    assert "import" in code[2].source
    values = values_of(notebook)
    script, *settings = name.split("-", 1)
    expected = yaml.safe_load((study.folder / f"cache/parameters/{script}.yaml").read_text())
    for key in {"task", "state"} & set(expected):
        assert values[key] in settings[0]
        expected[key] = values[key]
    assert values == expected


def test_provenance_of_every_table(study: Ran):
    """Each table names its notebook, its parameters and the weights that it comes from."""
    records = records_in(study.folder)
    tables = {name: entry for record in records.values() for name, entry in record["tables"].items()}
    assert set(tables) == {path.stem for path in (study.folder / "tables").glob("*.csv")}
    assert bool(records[f"01_extract-{TASKS[0]}-pretrained"]["data"]) != TOY
    for name, record in records.items():
        assert record["notebook"] == name.split("-")[0]
        assert record["parameters"]["profile"] == PROFILE
        assert record["seconds"] > 0
    texts_alone = {*records["09_niven_cues"]["tables"]}  # a notebook that reads arguments without a model
    without = {name for name, entry in tables.items() if not entry["weights"]} - texts_alone
    assert without <= {"clark_offsets", "encoders"}  # no model is involved; the claims of other profiles
    runs = {f"{TASKS[0]}-pretrained", f"{TASKS[0]}-finetuned-{SEEDS[0]}"}
    assert runs <= set(tables[f"roles-{TASKS[0]}-finetuned"]["weights"])
    assert runs <= set(tables["layers"]["weights"])
    tuned = {f"{task}-finetuned-{seed}" for task in TASKS for seed in SEEDS}
    assert tuned <= set(tables["finetune"]["weights"])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("state", STATES)
def test_tables_are_those_of_the_scores(study: Ran, task: str, state: str):
    """A role without parameters of its own, straight from the stored scores."""
    scores = xr.load_dataarray(study.folder / f"cache/scores/{task}-{REFERENCE_RUN[state]}.nc")
    assert (scores.sizes["sequence"], scores.sizes["layer"], scores.sizes["head"]) == (SEQUENCES, *SHAPE)
    expected = scores.sel(role="sep").astype(float).mean("sequence").to_series()
    means = study.table(f"roles-{task}-{state}").query("role == 'sep'").set_index(["layer", "head"])["mean"]
    pd.testing.assert_series_equal(means, expected, check_names=False, rtol=1e-4)  # five digits


@pytest.mark.parametrize("task", TASKS)
def test_fine_tuning_is_in_the_scores(study: Ran, task: str):
    """The fine-tuned scores come from the checkpoints of the task, the pre-trained ones from the encoder."""
    digests = {
        run: xr.open_dataarray(study.folder / f"cache/scores/{task}-{run}.nc").attrs["weights_sha256"]
        for run in RUNS
    }
    folders = {f"finetuned-{seed}": study.folder / f"cache/checkpoints/{task}-{seed}" for seed in SEEDS}
    checkpoints = {run: load_encoder(folder).digest for run, folder in folders.items()}
    pretrained = load_encoder("tiny") if TOY else load_encoder(next(study.snapshots.iterdir()))
    assert digests == {"pretrained": pretrained.digest, **checkpoints}
    assert len(set(digests.values())) == len(RUNS)


@pytest.mark.skipif(TOY, reason="a toy task is no task of another encoder")
def test_a_third_encoder_joins_the_comparison_by_its_name(study: Ran):
    table = study.table("encoders")
    assert [*table["encoder"].unique()] == [ENCODER, "MPNet", "MiniLM"]
    alone = table[table["encoder"] == ENCODER].set_index("claim")
    assert {*alone["verdict"]} > {"not applicable"}
    assert {*table["holds"]} <= {"supported on all", "supported on some", "supported on none", "not judged"}
