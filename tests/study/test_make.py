"""What Make runs, and what it repeats: the real rules, with a stub in the place of the notebooks."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from studies import HOUR, Tree, runs_of, shell_script, started

from analysis.files import ROOT
from analysis.study.claims import PAPERS
from analysis.study.runs import STATES

PROFILE = "smoke"
RUNS = {*runs_of(PROFILE)}
KNOWN = " ".join(sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml")))
LAST = {"12_encoders", "98_explorer", "99_summary"}
GOAL, EXTRACTED = "03_test-toy-mrpc", [f"01_extract-toy-mrpc-{state}" for state in STATES]
# In the place of Python: a run leaves its stamp and its variables, fails if FAIL names it, and waits if SLOW is set.
STUB = """
[ "$2" = analysis.run ] || exec "{python}" "$@"
[ -z "$SLOW" ] || exec "{python}" -c '{slow}' "$3" --profile "$5" --keep
echo "$3 started"
[ "$3" != "$FAIL" ] || {{ echo "error: no" >&2; exit 1; }}
cd "$RESULTS_DIR/$5" && mkdir -p tables notebooks cache/done
echo "$OMP_WAIT_POLICY $OMP_NUM_THREADS" >"tables/$3.csv"
touch "notebooks/$3.ipynb" "cache/done/$3"
echo "$3  0 s"
"""
SLOW = """
import sys, time
from analysis import run
run._execute = lambda *_: time.sleep(3600)
sys.exit(run.main())
"""


@pytest.fixture(scope="module")
def new(tmp_path_factory) -> Tree:
    """The real notebooks and the real rules, never run."""
    folder = tmp_path_factory.mktemp("new")
    stub = shell_script(folder / "my python", STUB.format(python=sys.executable, slow=SLOW))
    return Tree.new(folder, "notebooks", "profiles", "benchmarks/results", python=str(stub))


@pytest.fixture(scope="module")
def all_run(new: Tree) -> Tree:
    """The study after one whole run, four at a time."""
    tree = replace(new, results=new.results.with_name("run"))
    done = tree.make("reproduce", "JOBS=4")
    assert (done.returncode, done.stderr) == (0, "")
    assert started(done) == RUNS
    lines = done.stdout.splitlines()
    assert lines[2 * len(RUNS) : -2] == [f"{paper}: no verdicts" for paper in PAPERS]
    assert lines[-2].startswith(f"open {tree.folder}/notebooks/99_summary.ipynb")
    assert (tree.folder / "tables/99_summary.csv").read_text() == "passive 1\n"
    return tree


@pytest.fixture
def study(all_run: Tree, tmp_path: Path) -> Tree:
    """A copy of the study that has run, which a test may spoil."""
    return all_run.copied(tmp_path / "study")


@pytest.fixture(scope="module")
def clone(new: Tree, tmp_path_factory) -> Path:
    """A fresh clone, whose path has a space."""
    return new.copied(tmp_path_factory.mktemp("a clone") / "of it").repository


def named(*starts: str) -> set[str]:
    """The runs of some notebooks, and those that come last."""
    return {run for run in RUNS if run.startswith(starts)} | LAST


# --- what a change runs again ----------------------------------------------------------------------------


def test_second_run_does_nothing(all_run: Tree):
    before = {path: path.stat().st_mtime_ns for path in all_run.folder.rglob("*") if path.is_file()}
    done = all_run.make("reproduce")
    assert (done.returncode, started(done)) == (0, set())
    assert "pande2021: no verdicts" in done.stdout.splitlines()
    assert all_run.make(GOAL).stdout.splitlines() == [f"open {all_run.folder}/notebooks/{GOAL}.ipynb"]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_paper_that_a_profile_leaves_out(tmp_path: Path):
    command = ["make", "runs", "PROFILE=glue-mpnet", "PAPERS=pascual2021", f"PYTHON={sys.executable}"]
    done = subprocess.run([*command, f"RESULTS_DIR={tmp_path}"], cwd=ROOT, capture_output=True, text=True)
    assert "paper 'pascual2021' is not run in profile glue-mpnet" in done.stderr


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({"common:": "# a comment\n99_summary: {readme: false}\ncommon:"}, set()),  # the default
        (
            {
                "  sizes: [4, 8]": "  sizes: [4, 9]",
                "common:": "02_score: {device: cpu, tau: 4}\ncommon:",
                "  passages: 12": "  passages: 13",
            },
            named("03_robustness", "02_", "05_", "10_"),
        ),
    ],
)
def test_what_a_changed_profile_runs_again(study: Tree, changes: dict[str, str], again: set[str]):
    path = study.repository / "profiles" / f"{PROFILE}.yaml"
    profile = path.read_text(encoding="utf-8")
    for old, text in changes.items():
        assert old in profile
        profile = profile.replace(old, text, 1)
    path.unlink()  # a link to that of the other tests
    path.write_text(profile, encoding="utf-8")
    assert study.would_run() == again


def test_a_run_by_hand_says_that_what_it_reads_is_older_than_the_code(study: Tree):
    """After a change of the code, by a pull say; of a run that Make has never done it says nothing."""
    code = f"from analysis.study.provenance import print_older_runs; print_older_runs({GOAL!r}, {PROFILE!r})"
    environment = os.environ | {"RESULTS_DIR": str(study.results), "PYTHONPATH": str(study.repository)}

    def said() -> str:
        done = subprocess.run(
            [study.python, "-c", code], cwd=study.repository, env=environment, capture_output=True, text=True
        )
        assert done.stderr == ""
        return done.stdout

    assert said() == ""
    path = study.repository / "analysis/scores/sieves.py"
    shutil.copy(path, path.with_suffix(".new")).replace(path)  # it was a link to that of the other tests
    assert said() == (
        f"{GOAL} reads results that are older than the code or the profile, those of {', '.join(EXTRACTED)}: "
        f"make {GOAL} PROFILE={PROFILE} makes them again\n"
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
        (GOAL, {"00_finetune-toy-mrpc", *EXTRACTED, GOAL}),
        ("first", {"01_extract-toy-mrpc-pretrained"}),  # two more go to results/scratch/
        ("05_clark_syntax", {"00_finetune-toy-mrpc", "05_clark_surface", "05_clark_syntax"}),
        ("00_finetune", {"00_finetune-toy-mrpc", "00_finetune-toy-sst-2"}),
    ],
)
def test_one_notebook(new: Tree, goal: str, runs: set[str]):
    """By its name, for one task or for all."""
    assert started(new.make("-n", goal)) == runs


def test_first_shows_two_chapters_before_fine_tuning(new: Tree, tmp_path: Path):
    """They go to results/scratch/, so that the copies of the study stay those of fine-tuned encoders."""
    tree, chapters = replace(new, results=tmp_path), ("02_score-toy-mrpc", GOAL)
    done = tree.make("first")
    assert started(done) == {"01_extract-toy-mrpc-pretrained", *chapters}
    copies = [f"open {tmp_path}/scratch/{run}/notebooks/{run}.ipynb" for run in chapters]
    assert done.stdout.splitlines()[-2:] == copies


@pytest.mark.parametrize(("options", "threads"), [((), "6"), (("--jobs=2", "JOBS=2"), "3")])
def test_threads(new: Tree, tmp_path: Path, monkeypatch, options: tuple[str, ...], threads: str):
    """A goal that runs one notebook at a time has all cores for it; notebooks beside one another share them."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    tree = replace(new, results=tmp_path)
    assert tree.make("00_finetune-toy-mrpc", "CORES=6", *options).returncode == 0
    assert (tree.folder / "tables/00_finetune-toy-mrpc.csv").read_text() == f"passive {threads}\n"


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
def test_wrong_profile(new: Tree, text: str, words: str):
    path = new.repository / "profiles/wrong.yaml"
    path.write_text(text + "\n")
    done = new.make("reproduce", profile="wrong")
    path.unlink()
    assert done.returncode != 0
    (line,) = errors(done)
    assert words in line
    assert not (new.results / "wrong/cache/tasks.mk").exists()


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


def test_a_fresh_clone_installs_nothing_unasked(clone: Path):
    """PYTHON in the shell is another program's variable, and does not count."""
    for goal in (["runs"], ["-n", "03_test"], ["-n", "plan"], ["-n", "reproduce"]):
        done = make_in(clone, *goal, PYTHON=sys.executable)
        assert errors(done) == ["error: .venv/bin/python has no packages of the study: run make install"]
        assert not (clone / ".venv").exists()


def test_python_without_the_packages(new: Tree, tmp_path: Path):
    python = shell_script(tmp_path / "python", f'exec "{sys.executable}" -S -I "$@"')
    for goal in ("verify", "reproduce", "03_test"):
        done = make_in(new.repository, goal, f"PYTHON={python}", f"RESULTS_DIR={tmp_path}/results")
        remedy = f"run make install PYTHON={python}"
        assert errors(done) == [f"error: {python} has no packages of the study: {remedy}"]


def test_jupyterlab_works_in_this_checkout_whatever_its_path(clone: Path, tmp_path: Path):
    """Its variables name the checkout, and those of the shell that change results are gone."""
    python = shell_script(tmp_path / "python", 'case "$*" in *jupyterlab*) env;; esac')
    leaks = {"MPLBACKEND": "Agg", "LOCAL_RANK": "0", "PYTHONPATH": "/another"}
    done = make_in(clone, "notebook", f"PYTHON={python}", "RESULTS_DIR=mine", **leaks)
    assert done.returncode == 0, done.stderr
    variables = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    assert variables["PYTHONPATH"] == f"{clone}:/another"
    assert variables["RESULTS_DIR"] == f"{clone}/mine"
    assert variables["JUPYTER_CONFIG_PATH"] == f"{clone}/notebooks/.jupyter"
    assert not {"MPLBACKEND", "LOCAL_RANK"} & {*variables}


@pytest.mark.parametrize("in_environment", [False, True])
def test_a_tilde_is_the_users_folder(new: Tree, tmp_path: Path, in_environment: bool):
    cache = tmp_path / "mine/offline/cache"
    cache.mkdir(parents=True)
    (cache / "form").write_text("2\n")
    shutil.copy2(new.repository / "Makefile", tmp_path / "Makefile")
    folder = {"RESULTS_DIR": "~/mine"}
    arguments, environment = ([], folder) if in_environment else (["RESULTS_DIR=~/mine"], {})
    assert make_in(tmp_path, "clean", *arguments, **environment).stdout == f"deleted {cache}\n"
    assert make_in(tmp_path, "clean", *arguments, **environment).stdout == f"there is no {cache}\n"
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/offline.yaml").touch()
    python = shell_script(tmp_path / "python", 'echo "$RESULTS_DIR"')
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
    assert (again.returncode, started(again)) == (0, named("05_", "10_"))


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGKILL])
def test_stopped_reproduction_resumes(study: Tree, monkeypatch, signum: int):
    """By Ctrl-C, which reaches Make and all of its children, without a traceback, or killed."""
    waiting = {"09_niven_cues", "09_niven_models", "10_synthesis"}
    for name in waiting:
        (study.folder / f"cache/done/{name}").unlink()
    monkeypatch.setenv("SLOW", "yes")
    running = study.start("reproduce", "JOBS=1")
    stage, deadline = study.folder / "cache/running/09_niven_cues", time.monotonic() + HOUR
    while not stage.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(running.pid, signum)
    out, err = running.communicate(timeout=HOUR)
    assert running.returncode != 0
    if signum == signal.SIGINT:
        assert out.splitlines()[-2:] == ["09_niven_cues stopped", "stopped; the same command resumes"]
    assert "Traceback" not in err
    assert study.would_run() == waiting | LAST
