"""What Make runs, and what it repeats: the real rules, with a stub in the place of the notebooks."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from studies import HOUR, Tree, runs_of, started

from analysis.files import ROOT
from analysis.study.claims import PAPERS

PROFILE = "smoke"
RUNS = {*runs_of(PROFILE)}
KNOWN = " ".join(sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml")))
LAST = {"12_encoders", "98_explorer", "99_summary"}
# In the place of Python: a run takes no time unless SECONDS says so, saves its parameters, and fails if FAIL names it.
STUB = """import os, sys, time
sys.path.insert(0, os.getcwd())
from pathlib import Path
if sys.argv[1:3] != ["-m", "analysis.run"]:
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
import yaml
from analysis import run
from analysis.files import write_text
from analysis.study import profiles
ENVIRONMENT = "OMP_WAIT_POLICY", "OMP_NUM_THREADS"
def execute(this, folders):
    time.sleep(float(os.environ.get("SECONDS", 0)))
    if this.name == os.environ.get("FAIL"):
        sys.exit("error: no")
    text = yaml.safe_dump(dict(this.parameters)) + " ".join(map(os.environ.get, ENVIRONMENT))
    write_text(folders.tables / (this.name + ".csv"), text)
    write_text(folders.notebooks / (this.name + ".ipynb"), "{}")
run._execute = execute
sys.exit(run.main(sys.argv[3:]))
"""


@pytest.fixture(scope="session")
def new(tmp_path_factory) -> Tree:
    """The real notebooks and the real rules, never run."""
    folder = tmp_path_factory.mktemp("new")
    (folder / "stub.py").write_text(STUB)
    stub = folder / "my python"
    stub.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{folder}/stub.py" "$@"\n')
    stub.chmod(0o755)
    return Tree.new(folder, "notebooks", "profiles", "benchmarks/results", python=str(stub))


@pytest.fixture(scope="session")
def all_run(new: Tree, tmp_path_factory) -> Tree:
    """The study after one whole run, four at a time."""
    tree = new.copied(tmp_path_factory.mktemp("run") / "study")
    done = tree.make("reproduce", "JOBS=4")
    assert (done.returncode, done.stderr) == (0, "")
    assert started(done) == RUNS
    lines = done.stdout.splitlines()
    assert len(re.findall(r"^\d\d_\S+  \d+ s$", done.stdout, re.MULTILINE)) == len(RUNS)
    assert lines[2 * len(RUNS) : -2] == [f"{paper}: no verdicts" for paper in PAPERS]
    assert lines[-2].startswith(f"open {tree.folder}/notebooks/99_summary.ipynb")
    assert tables(tree)["99_summary.csv"].endswith(b"passive 1")
    return tree


@pytest.fixture
def study(all_run: Tree, tmp_path: Path) -> Tree:
    """A copy of the study that has run, which a test may spoil."""
    return all_run.copied(tmp_path / "study")


def tables(tree: Tree) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tree.folder / "tables").glob("[0-9]*.csv")}


def named(*starts: str) -> set[str]:
    """The runs of some notebooks, and those that come last."""
    return {run for run in RUNS if run.startswith(starts)} | LAST


# --- what a change runs again ----------------------------------------------------------------------------


def test_second_run_does_nothing(study: Tree):
    before = {path: path.stat().st_mtime_ns for path in study.folder.rglob("*") if path.is_file()}
    done = study.make("reproduce")
    assert (done.returncode, started(done)) == (0, set())
    assert "pande2021: no verdicts" in done.stdout.splitlines()
    copies = [
        f"open {study.folder}/notebooks/{run}.ipynb" for run in ("02_score-toy-mrpc", "03_test-toy-mrpc")
    ]
    for goal, lines in (("first", copies), ("03_test-toy-mrpc", copies[1:])):
        assert study.make(goal).stdout.splitlines() == lines
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_paper_that_a_profile_leaves_out(tmp_path: Path):
    command = ["make", "runs", "PROFILE=glue-mpnet", "PAPERS=pascual2021", f"PYTHON={sys.executable}"]
    done = subprocess.run([*command, f"RESULTS_DIR={tmp_path}"], cwd=ROOT, capture_output=True, text=True)
    assert "paper 'pascual2021' is not run in profile glue-mpnet" in done.stderr


SYNTHESIS = ("10_",)
EXTRACTED = ("01_", "02_", "03_test-", "03_test_all", "03_robustness", "04_")
DOWN = {  # the notebooks that a changed file runs again
    "notebooks/99_summary.py": (),
    "notebooks/02_score.py": ("02_",),
    "notebooks/03_robustness.py": ("03_robustness",),
    "benchmarks/results/calibration.csv": ("03_robustness",),
    "notebooks/01_extract.py": (*EXTRACTED, *SYNTHESIS, "11_"),
    "notebooks/05_clark_surface.py": ("05_", *SYNTHESIS),
    "analysis/papers/pande2021/__init__.py": ("02_", "03_", "04_", *SYNTHESIS, "11_"),
    "analysis/papers/kovaleva2019/__init__.py": ("07_", *SYNTHESIS),
    "analysis/papers/niven2019/__init__.py": ("09_",),
    "analysis/statistics/significance.py": (*(f"0{n}_" for n in range(2, 10)), *SYNTHESIS, "11_"),
    "analysis/encoders/tap.py": tuple(RUNS - {"09_niven_cues"}),
    "analysis/study/results.py": tuple(RUNS),
    "analysis/explorer/__init__.py": (),
}


@pytest.mark.parametrize("changed", DOWN)
def test_what_a_changed_file_runs_again(all_run: Tree, changed: str):
    """Make is asked what it would do if the file were new."""
    runs = all_run.would_run("-W", changed)
    assert runs == named(*DOWN[changed]) - ({"98_explorer"} if "99_" in changed else set())


def test_code_that_makes_no_number_runs_nothing_again(all_run: Tree):
    changed = ("run.py", "study/verification.py", "scale.py")
    options = [part for name in changed for part in ("-W", f"analysis/{name}")]
    assert all_run.would_run(*options, "-W", "Makefile") == set()


@pytest.mark.parametrize(
    ("old", "text", "again"),
    [
        ("common:", "# a comment\ncommon:", None),
        ("common:", "99_summary: {readme: false}\ncommon:", None),  # the default
        ("  sizes: [4, 8]", "  sizes: [4, 9]", ("03_robustness",)),
        ("common:", "02_score: {device: cpu, tau: 4}\ncommon:", ("02_",)),
        ("  passages: 12", "  passages: 13", ("05_", *SYNTHESIS)),
    ],
)
def test_what_a_changed_profile_runs_again(study: Tree, old: str, text: str, again: tuple[str, ...] | None):
    change(study, old, text)
    assert study.would_run() == (set() if again is None else named(*again))


def change(study: Tree, old: str, text: str) -> None:
    path = study.repository / "profiles" / f"{PROFILE}.yaml"
    profile = path.read_text(encoding="utf-8")
    assert old in profile
    path.write_text(profile.replace(old, text, 1), encoding="utf-8")


def test_a_run_by_hand_says_that_what_it_reads_is_older_than_the_code(study: Tree):
    """After a change of the code, by a pull say; of a run that Make has never done it says nothing."""
    command = [
        study.python,
        "-c",
        "from analysis.study.provenance import print_older_runs as p; p(*__import__('sys').argv[1:])",
    ]
    environment = os.environ | {"RESULTS_DIR": str(study.results), "PYTHONPATH": str(study.repository)}

    def said() -> str:
        done = subprocess.run(
            [*command, "03_test-toy-mrpc", PROFILE],
            cwd=study.repository,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        return done.stdout

    assert said() == ""
    os.utime(study.repository / "analysis/scores/sieves.py")
    runs = "01_extract-toy-mrpc-pretrained, 01_extract-toy-mrpc-finetuned"
    assert said() == (
        f"03_test-toy-mrpc reads results that are older than the code or the profile, those of {runs}: "
        f"make 03_test-toy-mrpc PROFILE={PROFILE} makes them again\n"
    )
    shutil.rmtree(study.folder / "cache/done")
    assert said() == ""


# --- goals -----------------------------------------------------------------------------------------------


def test_some_papers_alone(new: Tree):
    """The notebooks of the papers that are named, what these need, and what comes last."""
    clark, pande = named("05_", "00_finetune-toy-mrpc"), named("00_", "01_", "02_", "03_", "04_")
    assert new.would_run("PAPERS=clark2019") == clark
    assert new.would_run("PAPERS=pande2021") == pande
    assert new.would_run("PAPERS=pande2021 clark2019") == pande | clark
    assert new.would_run("PAPERS=pascual2021") == named("00_finetune-toy-sst-2", "08_")


def test_the_last_run_of_all_papers_writes_the_pages_of_the_checkout(new: Tree, tmp_path: Path):
    """Not that of another profile, of some papers, or with results elsewhere."""

    def writes(tree: Tree, *arguments: str, profile: str = "glue-minilm") -> bool:
        return "analysis.study.pages" in tree.make("-n", *arguments, "study", profile=profile).stdout

    here = replace(new.copied(tmp_path / "study"), results="")  # it writes lists of tasks there
    assert writes(here)
    assert not writes(new)
    assert not writes(here, "PAPERS=clark2019")
    assert not writes(here, profile="offline")


@pytest.mark.parametrize(
    ("goal", "runs"),
    [
        (
            "03_test-toy-mrpc",
            {run for run in named("00_", "01_") if "toy-mrpc" in run} | {"03_test-toy-mrpc"},
        ),
        (
            "first",
            {run for run in named("00_", "01_", "02_") if "toy-mrpc" in run} | {"03_test-toy-mrpc"},
        ),
        ("05_clark_syntax", {"00_finetune-toy-mrpc", "05_clark_surface", "05_clark_syntax"}),
        ("00_finetune", {"00_finetune-toy-mrpc", "00_finetune-toy-sst-2"}),
    ],
)
def test_one_notebook(new: Tree, goal: str, runs: set[str]):
    """By its name, for one task or for all."""
    assert started(new.make("-n", goal)) == runs


@pytest.mark.parametrize(("options", "threads"), [((), "6"), (("--jobs=2", "JOBS=2"), "3")])
def test_threads(new: Tree, tmp_path: Path, monkeypatch, options: tuple[str, ...], threads: str):
    """A goal that runs one notebook at a time has all cores for it; notebooks beside one another share them."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    tree = new.copied(tmp_path / "study")
    assert tree.make("00_finetune-toy-mrpc", "CORES=6", *options).returncode == 0
    assert tables(tree)["00_finetune-toy-mrpc.csv"].endswith(f"passive {threads}".encode())


def errors(done: subprocess.CompletedProcess) -> list[str]:
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("error: ")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("common: {tasks: [mprc]}", "task 'mprc' is unknown: choose from "),
        ("common: {tasks: []}", "tasks is []: name at least 1"),
    ],
)
def test_wrong_profile(study: Tree, text: str, words: str):
    (study.repository / "profiles/wrong.yaml").write_text(text + "\n")
    done = study.make("reproduce", profile="wrong")
    assert done.returncode != 0
    (line,) = errors(done)
    assert words in line
    assert not (study.results / "wrong/cache/tasks.mk").exists()


@pytest.mark.parametrize(
    ("goal", "profile", "line"),
    [
        ("03_tset", PROFILE, "error: there is no goal 03_tset: did you mean 03_test?"),
        ("verifi", PROFILE, "error: there is no goal verifi: did you mean verify?"),
        ("x", PROFILE, "error: there is no goal x: make prints the goals"),
        ("08_pascual", "glue-mpnet", "error: 08_pascual is not run in profile glue-mpnet"),
        ("reproduce", "smok", f"*** unknown profile 'smok': choose from {KNOWN}.  Stop."),
    ],
)  # fmt: skip
def test_wrong_goals_and_profiles_are_one_line(new: Tree, goal: str, profile: str, line: str):
    done = new.make(goal, profile=profile)
    assert done.returncode == 2
    assert [text for text in done.stderr.splitlines() if text.endswith(line)]


def make_in(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Make in a folder, without the variables of the tests."""
    names = {"PATH": os.environ["PATH"], "HOME": str(folder)} | environment
    return subprocess.run(["make", *arguments], cwd=folder, env=names, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("RESULTS_DIR", "my results/x"), ("PROFILE", "offline "), ("PROFILE", " "), ("DATA_DIR", "a\nb")],
)
@pytest.mark.parametrize("in_environment", [False, True])
def test_names_that_make_would_split(new: Tree, tmp_path: Path, name: str, value: str, in_environment: bool):
    """Nothing is deleted or started."""
    for folder in ("my", "my results", "offline", "results/offline"):
        (tmp_path / folder / "cache").mkdir(parents=True)
        (tmp_path / folder / "cache/form").write_text("2\n")
    shutil.copy2(new.repository / "Makefile", tmp_path / "Makefile")
    before = {*tmp_path.rglob("*")}
    arguments, environment = ([], {name: value}) if in_environment else ([f"{name}={value}"], {})
    done = make_in(tmp_path, "clean", *arguments, **environment)
    assert done.returncode == 2
    assert done.stderr.endswith("may have no spaces, and PROFILE names one profile.  Stop.\n")
    assert {*tmp_path.rglob("*")} == before


@pytest.mark.parametrize("goal", [["runs"], ["-n", "03_test"], ["-n", "plan"], ["-n", "reproduce"]])
def test_a_fresh_clone_installs_nothing_unasked(new: Tree, tmp_path: Path, goal: list[str]):
    """PYTHON in the shell is another program's variable, and does not count."""
    folder = tmp_path / "a clone"
    shutil.copytree(new.repository, folder)
    done = make_in(folder, *goal, PYTHON=sys.executable)
    assert errors(done) == ["error: .venv/bin/python has no packages of the study: run make install"]
    assert not (folder / ".venv").exists()


def test_python_without_the_packages(new: Tree, tmp_path: Path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "$@"\n')
    python.chmod(0o755)
    for goal in ("verify", "reproduce", "03_test"):
        done = make_in(new.repository, goal, f"PYTHON={python}", f"RESULTS_DIR={tmp_path}/results")
        remedy = f"run make install PYTHON={python}"
        assert errors(done) == [f"error: {python} has no packages of the study: {remedy}"]


def test_jupyterlab_works_in_this_checkout_whatever_its_path(new: Tree, tmp_path: Path):
    """Its variables name the checkout, and those of the shell that change results are gone."""
    folder = tmp_path / "a clone"
    shutil.copytree(new.repository, folder)
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$*" in *jupyterlab*) env;; esac\n')
    python.chmod(0o755)
    leaks = {"MPLBACKEND": "Agg", "LOCAL_RANK": "0", "PYTHONPATH": "/another"}
    done = make_in(folder, "notebook", f"PYTHON={python}", "RESULTS_DIR=mine", **leaks)
    assert done.returncode == 0, done.stderr
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert variables["PYTHONPATH"] == f"{folder}:/another"
    assert variables["RESULTS_DIR"] == f"{folder}/mine"
    assert variables["JUPYTER_CONFIG_PATH"] == f"{folder}/notebooks/.jupyter"
    assert not {"MPLBACKEND", "LOCAL_RANK"} & {*variables}


@pytest.mark.parametrize("in_environment", [False, True])
def test_a_tilde_is_the_users_folder(new: Tree, tmp_path: Path, in_environment: bool):
    cache = tmp_path / "mine/offline/cache"
    cache.mkdir(parents=True)
    (cache / "form").write_text("2\n")
    shutil.copy2(new.repository / "Makefile", tmp_path / "Makefile")
    arguments, environment = (
        ([], {"RESULTS_DIR": "~/mine"}) if in_environment else (["RESULTS_DIR=~/mine"], {})
    )
    assert make_in(tmp_path, "clean", *arguments, **environment).stdout == f"deleted {cache}\n"
    assert make_in(tmp_path, "clean", *arguments, **environment).stdout == f"there is no {cache}\n"
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/offline.yaml").touch()
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$RESULTS_DIR"\n')
    python.chmod(0o755)
    done = make_in(tmp_path, "verify", f"PYTHON={python}", *arguments, **environment)
    assert {*done.stdout.splitlines()[-1:]} == {f"{tmp_path}/mine"}


def test_clean_deletes_nothing_but_a_cache(new: Tree, tmp_path: Path):
    cache = tmp_path / "results/mine/cache"
    cache.mkdir(parents=True)
    (cache / "thesis.tex").write_text("chapter 1")
    shutil.copy2(new.repository / "Makefile", tmp_path / "Makefile")
    command = ["make", "clean", "PROFILE=mine", "RESULTS_DIR="]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert errors(done) == [
        "error: results/mine/cache has no file form, so it is no cache of this study: delete it yourself"
    ]
    assert (cache / "thesis.tex").exists()
    (cache / "form").write_text("2\n")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    assert not cache.exists()


def test_tables_of_a_release_are_kept_before_the_first_run(new: Tree, tmp_path: Path):
    """Outside of git alone: what `make verify` compares with."""
    tree = new.copied(tmp_path / "study")
    shipped = tree.repository / f"results/{PROFILE}/tables"
    shipped.mkdir(parents=True)
    (shipped / "roles.csv").write_text("as released")
    assert tree.make("05_clark_surface").returncode == 0
    assert (shipped.parent / "released/tables/roles.csv").read_text() == "as released"


# --- failures --------------------------------------------------------------------------------------------


def test_failed_run_stops_the_study(study: Tree, monkeypatch):
    """It is not done, runs that need it do not start, and the same command resumes there."""
    (study.folder / "cache/done/05_clark_surface").unlink()
    monkeypatch.setenv("FAIL", "05_clark_surface")
    done = study.make("reproduce", "JOBS=1")
    assert done.returncode != 0
    assert errors(done) == ["error: no"]
    assert started(done) == {"05_clark_surface"}
    assert done.stdout.splitlines()[-1] == "stopped; the same command resumes"
    monkeypatch.delenv("FAIL")
    again = study.make("reproduce")
    assert (again.returncode, started(again)) == (0, named("05_", *SYNTHESIS))


@pytest.fixture
def slow(study: Tree, monkeypatch) -> tuple[Tree, subprocess.Popen]:
    """A reproduction whose first run, of five, has started and takes long."""
    for name in ("09_niven_cues", "09_niven_models", "10_synthesis"):
        (study.folder / f"cache/done/{name}").unlink()
    monkeypatch.setenv("SECONDS", str(HOUR))
    stage = study.folder / "cache/running/09_niven_cues"
    running = study.start("reproduce", "JOBS=1")
    monkeypatch.setenv("SECONDS", "0")
    deadline = time.monotonic() + HOUR
    while not stage.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    return study, running


def test_killed_run_is_taken_up_again(slow: tuple[Tree, subprocess.Popen], all_run: Tree):
    study, running = slow
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    assert study.would_run() == {"09_niven_cues", "09_niven_models", "10_synthesis", *LAST}
    assert study.make("reproduce").returncode == 0
    assert tables(study) == tables(all_run)


def test_interrupted_reproduction_is_no_traceback(slow: tuple[Tree, subprocess.Popen]):
    """As by Ctrl-C, which reaches Make and all of its children."""
    running = slow[1]
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=HOUR)
    assert running.returncode != 0
    assert out.splitlines()[-2:] == ["09_niven_cues stopped", "stopped; the same command resumes"]
    assert "Traceback" not in err
