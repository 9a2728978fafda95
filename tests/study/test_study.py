"""The whole study end to end through `make`, on a random encoder and a handful of sentences (profile smoke)."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import xarray as xr

from analysis.encoders.models import load_encoder
from analysis.files import ROOT
from analysis.papers.pande2021.claims import CLAIMS
from analysis.statistics.roles import ROLES
from analysis.study.profiles import notebook_names, parameters
from analysis.study.results import STATES

PROFILE = "smoke"
PARAMETERS = parameters("03_test_all", PROFILE)
TASKS = PARAMETERS["tasks"]
PARAMETERS_OF_RUNS = parameters("01_extract", PROFILE)
SEEDS = PARAMETERS_OF_RUNS["seeds"]
REFERENCE_RUN = {"pretrained": "pretrained", "finetuned": f"finetuned-{SEEDS[0]}"}  # whose heads are shown
RUNS = ["pretrained", *(f"finetuned-{seed}" for seed in SEEDS)]
LAYERS, HEADS = 3, 4
SEQUENCES = PARAMETERS_OF_RUNS["n"]
MINUTE = 60  # seconds

NOTEBOOKS = [
    *(f"{name}-{task}" for name in ("00_finetune", "02_score", "03_test") for task in TASKS),
    *(f"01_extract-{task}-{state}" for task in TASKS for state in STATES),
    "03_test_all",
    "03_test_calibration",
    "03_test_sensitivity",
    "04_compare",
    "04_compare_seeds",
    "05_clark_surface",
    "05_clark_syntax",
    "99_summary",
]
FIGURES = [
    *(
        f"{name}-{task}"
        for name in (
            "F1-sieves", "F2-attention", "F3-distributions", "F3-means", "F4-assignment", "F5-sets",
            "F5-overlap", "F9-p-values", "F10-forest",
        )
        for task in TASKS
    ),
    "F6-role-map", "F7-layers", "F8-change", "F8-transitions", "F8-intervals", "F8-attention-mass", "F10-labels",
    "F11-size", "F11-power", "F12-tau", "F12-layers", "F12-stability", "F12-controls", "F13-seeds", "F14-claims",
    "clark-F1-heads", "clark-F2-surface", "clark-F3-gradients", "clark-F4-entropy", "clark-F6-clusters",
    "clark-T1-dependencies", "clark-F5-heads", "clark-T2-coreference", "clark-T3-probes",
]  # fmt: skip
ROLE_COLUMNS = """layer head role n mean sd t p assigned lower low high lower_bca low_bca high_bca p_bootstrap_t
lower_bootstrap_t effect effect_low effect_high above skewness p_holm p_bh p_by status assigned_audited""".split()
DEPENDENCY_COLUMNS = """relation n layer head direction accuracy low high offset offset_accuracy
p_adjusted""".split()
READINGS_COLUMNS = """candidates system scored_on all pronoun proper nominal low high n layer head""".split()
OVERLAP_COLUMNS = ["state", "role_a", "role_b", "heads_a", "heads_b", "both", "jaccard"]
OVERLAP_COLUMNS += ["share_of_a", "share_of_b"]
CHANGE_COLUMNS = """layer head role n pretrained finetuned difference low high p p_sign_flip p_by p_equivalence
change""".split()
CLAIM_COLUMNS = """claim source definition published ours n relation bound estimate low high p method
verdict""".split()
CALIBRATION_COLUMNS = ["shape", "n", "effect", "rule", "rate", "low", "high", "runs"]
TABLES = {
    **{f"roles-{task}-{state}": ROLE_COLUMNS for task in TASKS for state in STATES},
    **{f"overlap-{task}": OVERLAP_COLUMNS for task in TASKS},
    **{f"change-{task}": CHANGE_COLUMNS for task in TASKS},
    "layers": ["task", "state", "layer", "role", "heads"],
    "masses": ["task", "state", "layer", "head", "sep", "cls", "other"],
    "arithmetic": ["task", "role", "labels"],
    "corrections": ["task", "state", "layer", "head", "role", "p_holm_all", "p_bh_all", "p_by_all"],
    "calibration": CALIBRATION_COLUMNS,
    "power": ["effect", "correction", "level", "solution", "n"],
    "seeds": ["task", "seed", "role", "published", "audited"],
    "clark_offsets": ["relation", "n", "offset", "accuracy"],
    "clark_dependencies": DEPENDENCY_COLUMNS,
    "clark_best_heads": ["relation", "n", "layer", "head", "direction", "accuracy"],
    "clark_coreference": ["system", "all", "pronoun", "proper", "nominal", "n"],
    "clark_coreference_readings": READINGS_COLUMNS,
    "clark_probes": ["probe", "encoder", "seed", "uas", "uas_no_punct"],
    "clark_summary": ["part", "quantity", "bert_base_published", "this_encoder", "unit"],
    "sensitivity_tau": ["task", "role", "tau", "testable", "heads", "heads_by", "jaccard", "mean_layer"],
    "sensitivity_tau_layers": ["task", "role", "layer", "tau", "heads"],
    "sensitivity_n": """task role size sequences testable heads_full agreement agreement_sd jaccard jaccard_sd heads
heads_sd""".split(),
    "sensitivity_variants": ["task", "variant", "value", "role", "heads", "jaccard", "gained", "lost"],
    "sensitivity_length": """task stratum role shortest longest n ceiling below mass_at_tau heads score
mass""".split(),
    "sensitivity_clusters": """task role sequences clusters cluster_size published audited_sequence audited_cluster
differ width_ratio""".split(),
    "sensitivity_controls": ["control", "role", "n", "mean", "highest", "published", "audited", "task"],
    "seeds_agreement": ["task", "role", "runs", "between_runs", "with_pretrained", "always", "ever"],
    "finetune": ["task", "seed", "metric", "constant", "bag_of_words", "finetuned", "train", "dev"],
    "claims": CLAIM_COLUMNS,
    "claims_seeds": ["claim", "seed", "estimate", "verdict"],
    "clark_surface": """layer head next previous self cls sep punct sep_sep rest_sep entropy entropy_cls""".split(),
    "clark_surface_layers": ["layer", "statistic", "bert_base_published", "this_encoder"],
    "clark_gradients": ["layer", "group", "importance"],
    "clark_gradients_heads": ["layer", "head", "group", "importance"],
    "clark_distances": ["layer", "head", "other_layer", "other_head", "distance"],
    "clark_clusters": ["layer", "head", "x", "y", "behaviour"],
}


@dataclass(frozen=True)
class Study:
    """A copy of what the study is made of, and the folder with its results."""

    repository: Path
    results: Path

    @property
    def folder(self) -> Path:
        """The results of the profile."""
        return self.results / PROFILE

    def start(self, *arguments: str, profile: str = PROFILE) -> subprocess.Popen:
        """Make at work, in a process group of its own."""
        variables = (f"PROFILE={profile}", f"PYTHON={sys.executable}", f"RESULTS_DIR={self.results}")
        # An outer `make test` would pass its options and its jobs down.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
        }
        return subprocess.Popen(
            ["make", *arguments, *variables],
            cwd=self.repository, env=environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def make(self, *arguments: str, profile: str = PROFILE) -> subprocess.CompletedProcess:
        """One call of Make that has ended."""
        running = self.start(*arguments, profile=profile)
        out, err = running.communicate(timeout=12 * MINUTE)
        return subprocess.CompletedProcess(running.args, running.returncode, out, err)

    def would_run(self) -> set[str]:
        """The notebooks that `make reproduce` would start."""
        return started(self.make("-n", "reproduce"))

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / "tables" / f"{name}.csv")

    def table_bytes(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in sorted((self.folder / "tables").iterdir())}


def started(done: subprocess.CompletedProcess) -> set[str]:
    """The notebooks that Make started, or would start under -n, named like their executed copies."""
    calls = re.findall(r"-m analysis\.run --profile \S+ (\d\w+)(.*)", done.stdout)
    return {"-".join([name, *re.findall(r"--set \w+=(\S+)", options)]) for name, options in calls}


def scripts(names: set[str]) -> set[str]:
    return {name.split("-")[0] for name in names}


@pytest.fixture(scope="session")
def fresh(tmp_path_factory) -> Study:
    """The study before its first run; a copy, because a file changed during the tests would run parts again."""
    folder = tmp_path_factory.mktemp("study")
    for name in ("analysis", "notebooks", "profiles"):
        shutil.copytree(
            ROOT / name, folder / "repository" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy2(ROOT / name, folder / "repository")
    return Study(folder / "repository", folder / "results")


@pytest.fixture(scope="session")
def study(fresh: Study) -> Study:
    """The study after one whole run, two notebooks at a time."""
    done = fresh.make("-j2", "reproduce")
    assert done.returncode == 0, done.stderr[-3000:]
    assert started(done) == set(NOTEBOOKS)
    return fresh


@pytest.fixture
def copy(study: Study, tmp_path: Path) -> Study:
    """A copy of the study, up to date like it, that a test may spoil."""
    shutil.copytree(study.repository.parent, tmp_path / "study")
    return Study(tmp_path / "study/repository", tmp_path / "study/results")


# --- what a run leaves -----------------------------------------------------------------------------------


def test_files_of_a_run(study: Study):
    """Everything that a run makes, nothing half-written beside it."""
    for folder, names in (
        ("notebooks", {f"{name}.ipynb" for name in NOTEBOOKS}),
        ("figures", {f"{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")}),
        ("tables", {f"{name}.csv" for name in TABLES}),
        ("cache/stamps", set(NOTEBOOKS)),
        ("cache/failed", set()),
        ("cache/checkpoints", {f"{task}-{seed}" for task in TASKS for seed in SEEDS}),
        ("cache/scores", {f"{task}-{run}.nc" for task in TASKS for run in RUNS}),
    ):
        assert {path.name for path in (study.folder / folder).iterdir()} == names, folder


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_executed_notebook(study: Study, name: str):
    """All cells were executed in order, none failed, and nothing tells on which machine or when."""
    path = study.folder / "notebooks" / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert outputs
    text = path.read_text(encoding="utf-8")
    for trace in (
        str(ROOT),
        str(study),
        str(Path.home()) + "/",
        "/site-packages/",
        "ipykernel_",
        "start_time",
    ):
        assert trace not in text
    assert not {"papermill", "execution"} & {key for cell in notebook.cells for key in cell.metadata}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_parameters_of_the_executed_notebook(study: Study, name: str):
    notebook = nbformat.read(study.folder / "notebooks" / f"{name}.ipynb", as_version=4)
    (injected,) = [c.source for c in notebook.cells if "injected-parameters" in c.metadata.get("tags", [])]
    found = {s.targets[0].id: ast.literal_eval(s.value) for s in ast.parse(injected).body}
    script, *settings = name.split("-", 1)
    expected = parameters(script, PROFILE)
    for key in {"task", "state"} & set(expected):
        assert found[key] in settings[0]
        expected[key] = found[key]
    assert found == expected


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_shown_and_saved(study: Study, name: str):
    figures = study.folder / "figures"
    assert (figures / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
    drawing = (figures / f"{name}.svg").read_text(encoding="utf-8")
    assert "<svg" in drawing[:1000]
    assert drawing.rstrip().endswith("</svg>")
    assert "<dc:date>" not in drawing


def test_notebooks_show_their_figures(study: Study):
    shown = 0
    for path in (study.folder / "notebooks").iterdir():
        outputs = [o for c in nbformat.read(path, as_version=4).cells for o in c.get("outputs", [])]
        shown += sum("image/png" in output.get("data", {}) for output in outputs)
    assert shown == len(FIGURES)


@pytest.mark.parametrize("name", TABLES)
def test_columns_of_tables(study: Study, name: str):
    found = study.table(name)
    assert list(found.columns) == TABLES[name]
    assert len(found) > 0


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("state", STATES)
def test_role_tables(study: Study, task: str, state: str):
    """Role by role, layer by layer, head by head; what cannot be tested has neither p nor label."""
    found = study.table(f"roles-{task}-{state}")
    expected = [(role, layer, head) for role in ROLES for layer in range(LAYERS) for head in range(HEADS)]
    assert list(found[["role", "layer", "head"]].itertuples(index=False, name=None)) == expected
    assert found["n"].between(0, SEQUENCES).all()
    assert (found["assigned"].isna() == found["p"].isna()).all()
    assert found.loc[found["role"].isin(["local", "delimiter", "cls", "sep"]), "n"].eq(SEQUENCES).all()
    block = found[found["role"] == "block"]
    assert block["n"].eq(0 if task == "sst-2" else SEQUENCES).all()
    assert block["assigned"].isna().all() == (task == "sst-2")
    tested = found.dropna(subset="p")
    assert ((tested["p"] < 0.05) & (tested["mean"] > 3) == tested["assigned"].astype(bool)).all()


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("state", STATES)
def test_tables_are_those_of_the_scores(study: Study, task: str, state: str):
    """A role without parameters of its own, straight from the stored scores."""
    scores = xr.load_dataarray(study.folder / f"cache/scores/{task}-{REFERENCE_RUN[state]}.nc")
    assert scores.shape[0::2] == (SEQUENCES, LAYERS)
    expected = scores.sel(role="sep").astype(float).mean("sequence").to_series()
    found = study.table(f"roles-{task}-{state}").query("role == 'sep'").set_index(["layer", "head"])["mean"]
    pd.testing.assert_series_equal(found, expected, check_names=False, rtol=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_fine_tuning_is_in_the_scores(study: Study, task: str):
    """The fine-tuned scores come from the checkpoints of the task, the pre-trained ones from the encoder."""
    digests = {
        run: xr.open_dataarray(study.folder / f"cache/scores/{task}-{run}.nc").attrs["weights_sha256"]
        for run in RUNS
    }
    folders = {f"finetuned-{seed}": study.folder / f"cache/checkpoints/{task}-{seed}" for seed in SEEDS}
    checkpoints = {run: load_encoder(folder).digest for run, folder in folders.items()}
    assert digests == {"pretrained": load_encoder("tiny").digest, **checkpoints}
    assert len(set(digests.values())) == len(RUNS)


@pytest.mark.parametrize("task", TASKS)
def test_change_is_the_difference_of_the_role_tables(study: Study, task: str):
    keys = ["layer", "head", "role"]
    found = study.table(f"change-{task}").set_index(keys)
    for state in STATES:
        means = study.table(f"roles-{task}-{state}").set_index(keys)["mean"]
        pd.testing.assert_series_equal(found[state], means.reindex(found.index), check_names=False)
    difference = found["finetuned"] - found["pretrained"]
    pd.testing.assert_series_equal(found["difference"], difference, check_names=False, atol=2e-5)


def test_layers_are_counted_from_the_role_tables(study: Study):
    counts = study.table("layers").set_index(["task", "state", "layer", "role"])["heads"]
    for task in TASKS:
        for state in STATES:
            labels = study.table(f"roles-{task}-{state}")
            for (layer, role), part in labels.groupby(["layer", "role"]):
                assigned = part["assigned"].dropna().astype(bool)
                expected = assigned.sum() if len(assigned) else float("nan")
                assert counts[task, state, layer, role] == pytest.approx(expected, nan_ok=True)


def test_arithmetic_has_every_role_of_every_task(study: Study):
    found = study.table("arithmetic")
    assert list(zip(found["task"], found["role"], strict=True)) == [(t, r) for t in TASKS for r in ROLES]
    assert found["labels"].between(0, LAYERS * HEADS).all()


def test_masses_are_shares_of_attention(study: Study):
    found = study.table("masses")
    assert len(found) == len(TASKS) * len(STATES) * LAYERS * HEADS
    assert found[["sep", "cls", "other"]].sum(axis=1).to_numpy() == pytest.approx(1, abs=1e-4)


def test_finetune_has_every_metric_of_every_task(study: Study):
    found = study.table("finetune")
    metrics = {"mrpc": ["accuracy", "f1"], "sst-2": ["accuracy"]}
    assert list(found[["task", "seed", "metric"]].itertuples(index=False, name=None)) == [
        (task, seed, metric) for task in TASKS for seed in SEEDS for metric in metrics[task]
    ]
    assert found[["constant", "bag_of_words", "finetuned"]].stack().between(0, 1).all()
    assert (found["train"].eq(32) & found["dev"].eq(16)).all()


def test_every_claim_has_a_verdict(study: Study):
    found = study.table("claims")
    assert [claim.split(":")[0] for claim in found["claim"]] == [f"C{number}" for number in range(1, 12)]
    assert len(found) == len(CLAIMS)
    assert set(found["verdict"]) <= {"holds", "does not hold", "undecided", "untestable"}
    assert found[["source", "definition", "published", "ours"]].notna().all(axis=None)


# --- running again ---------------------------------------------------------------------------------------


def test_second_run_does_nothing(study: Study):
    before = {path: path.stat().st_mtime_ns for path in study.results.rglob("*") if path.is_file()}
    done = study.make("reproduce")
    assert done.returncode == 0
    assert "analysis.run" not in done.stdout
    assert {path: path.stat().st_mtime_ns for path in study.results.rglob("*") if path.is_file()} == before


COMPANIONS = {
    "05_clark_surface",
    "05_clark_syntax",
}  # notebooks that need no other and serve the summary alone
ALL_NOTEBOOKS = set(notebook_names())
STUDY = ALL_NOTEBOOKS - COMPANIONS
AFTER = {  # what must run again, for each file that may change
    "notebooks/99_summary.py": {"99_summary"},
    "notebooks/02_score.py": {"02_score", "99_summary"},
    "notebooks/03_test_all.py": {"03_test_all", "99_summary"},
    "notebooks/03_test_calibration.py": {"03_test_calibration", "99_summary"},
    "notebooks/03_test_sensitivity.py": {"03_test_sensitivity", "99_summary"},
    "notebooks/03_test.py": {"03_test", "03_test_all", "04_compare", "99_summary"},
    "notebooks/04_compare_seeds.py": {"04_compare_seeds", "99_summary"},
    "notebooks/01_extract.py": STUDY - {"00_finetune", "03_test_calibration"},
    "notebooks/00_finetune.py": STUDY - {"03_test_calibration"},
    "analysis/papers/pande2021/claims.py": {"99_summary"},
    "notebooks/05_clark_surface.py": {"05_clark_surface", "99_summary"},
    "analysis/papers/pande2021/published_scores.csv": {"99_summary"},
    "analysis/papers/clark2019/surface.py": {"05_clark_surface", "99_summary"},
    "analysis/papers/clark2019/summary.py": {"99_summary"},
    "analysis/statistics/comparison.py": {"04_compare", "05_clark_syntax", "99_summary"},
    "analysis/statistics/significance.py": STUDY - {"00_finetune", "01_extract"} | {"05_clark_syntax"},
    "analysis/encoders/tap.py": ALL_NOTEBOOKS - {"00_finetune", "03_test_calibration"},
    "analysis/texts/bundled/lexicon.yaml": ALL_NOTEBOOKS - {"03_test_calibration"},
    "analysis/run.py": set(),
}


@pytest.mark.parametrize("changed", AFTER)
def test_what_a_changed_file_runs_again(study: Study, changed: str):
    """Make is asked what it would do if the file were new."""
    would_run = started(study.make("-n", "-W", changed, "reproduce"))
    again = {name for name in NOTEBOOKS if scripts({name}) <= AFTER[changed]}
    if changed == "notebooks/00_finetune.py":  # the pre-trained scores do not come from it
        again -= {f"01_extract-{task}-pretrained" for task in TASKS}
    assert would_run == again


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("common:", "# a comment\ncommon:", set()),
        ("common:", "99_summary: {readme: false}\ncommon:", set()),  # the default
        ("common:", "03_test: {alpha: 0.01}\ncommon:", AFTER["notebooks/03_test.py"]),
        ("common:", "02_score: {device: cpu, tau: 4}\ncommon:", AFTER["notebooks/02_score.py"]),
        ("seeds: [0, 1]", "seeds: [0, 1, 2]", AFTER["notebooks/00_finetune.py"]),
        ("n: 12", "n: 13", AFTER["notebooks/01_extract.py"]),
        ("epochs: 1", "epochs: 2", AFTER["notebooks/00_finetune.py"]),
    ],
)
def test_what_a_changed_profile_runs_again(copy: Study, old: str, new: str, again: set[str]):
    path = copy.repository / "profiles" / f"{PROFILE}.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    would_run = copy.would_run()
    assert scripts(would_run) - again == set()
    assert again <= scripts(would_run)


def test_changed_source_reaches_the_tables(copy: Study):
    """A real change, really run: another threshold in the tests, by the profile."""
    path = copy.repository / "profiles" / f"{PROFILE}.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "03_test: {tau: 0.5}\n", encoding="utf-8")
    done = copy.make("-j2", "reproduce")
    assert done.returncode == 0, done.stderr[-3000:]
    assert scripts(started(done)) == AFTER["notebooks/03_test.py"]
    table = copy.table(f"roles-{TASKS[0]}-finetuned").dropna(subset="p")
    assert ((table["p"] < 0.05) & (table["mean"] > 0.5) == table["assigned"].astype(bool)).all()
    assert table["assigned"].astype(bool).any()
    counts = copy.table("layers").query("task == @TASKS[0] and state == 'finetuned' and role == 'sep'")
    assert counts["heads"].sum() == table.loc[table["role"] == "sep", "assigned"].astype(bool).sum()


def test_missing_stamp_in_the_middle_is_noticed(copy: Study):
    """An intermediate result is made again, though what was made from it is newer than its sources."""
    (copy.folder / f"cache/stamps/03_test-{TASKS[0]}").unlink()
    assert copy.would_run() == {f"03_test-{TASKS[0]}", "03_test_all", "04_compare", "99_summary"}


def test_killed_run_is_taken_up_again(study: Study, copy: Study):
    """Killed while it tests the first task, the study leaves no half table, and ends with the same bytes."""
    again = {name for name in NOTEBOOKS if scripts({name}) <= AFTER["notebooks/03_test.py"]}
    for name in again:
        (copy.folder / "cache/stamps" / name).unlink()
        (copy.folder / "notebooks" / f"{name}.ipynb").unlink()
    for path in (copy.folder / "tables").iterdir():
        if not path.name.startswith(
            ("calibration", "power", "sensitivity", "seeds", "clark")
        ):  # of notebooks not run again
            path.unlink()
    _kill_after_first_table(copy)
    tables = study.table_bytes()
    assert all(tables[path.name] == path.read_bytes() for path in (copy.folder / "tables").glob("*.csv"))
    assert not (copy.folder / "cache/stamps/03_test_all").exists()
    done = copy.make("-j2", "reproduce")
    assert done.returncode == 0, done.stderr[-3000:]
    assert scripts(started(done)) == scripts(again)
    assert copy.table_bytes() == tables
    assert not list((copy.folder / "cache/failed").iterdir())
    executed = {path.name: path.read_bytes() for path in (copy.folder / "notebooks").iterdir()}
    assert executed == {path.name: path.read_bytes() for path in (study.folder / "notebooks").iterdir()}


def _kill_after_first_table(study: Study) -> None:
    """Starts the study and kills all of its processes as soon as there is a table."""
    running = study.start("reproduce")
    deadline = time.monotonic() + 3 * MINUTE
    while not list(study.folder.glob("tables/roles-*.csv")):
        assert running.poll() is None, "the study ended without a table"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()


def test_failed_notebook_stops_the_study(copy: Study):
    """The line with the reason is there, the stamp is not, and the next run starts at the same place."""
    scores = copy.folder / f"cache/scores/{TASKS[0]}-{REFERENCE_RUN['finetuned']}.nc"
    scores.write_bytes(scores.read_bytes()[:2000])
    (copy.folder / f"cache/stamps/03_test-{TASKS[0]}").unlink()
    done = copy.make("reproduce")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert f"{scores} is damaged: delete it and run 01_extract" in line
    assert not (copy.folder / f"notebooks/03_test-{TASKS[0]}.ipynb").exists()
    assert copy.would_run() == {f"03_test-{TASKS[0]}", "03_test_all", "04_compare", "99_summary"}


# --- other goals -----------------------------------------------------------------------------------------


def test_plain_make_prints_help(fresh: Study):
    done = fresh.make()
    assert (done.returncode, done.stderr) == (0, "")
    goals = re.findall(r"^  make (\S+) +\S", done.stdout, re.MULTILINE)
    assert {"help", "reproduce", "report", "notebook", "test", "lint", "clean"} <= set(goals)
    assert "offline" in done.stdout
    assert "JOBS=2" in done.stdout


def test_unknown_profile(fresh: Study):
    done = fresh.make("reproduce", profile="nonsense")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: unknown profile 'nonsense': choose from ")
    assert all(path.stem in line for path in (fresh.repository / "profiles").glob("*.yaml"))
    assert "Traceback" not in done.stderr
    assert not (fresh.results / "nonsense").exists()


def test_wrong_profile(copy: Study):
    (copy.repository / "profiles/wrong.yaml").write_text("common: {windw: 2}\n")
    done = copy.make("reproduce", profile="wrong")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert "unknown key 'windw' in section 'common'" in line
    assert not (copy.results / "wrong").exists()


def test_clean_keeps_tables_and_figures(copy: Study):
    assert copy.make("clean").returncode == 0
    assert {path.name for path in copy.folder.iterdir()} == {"notebooks", "figures", "tables"}
    assert copy.would_run() == set(NOTEBOOKS)
