"""What Make runs, and what it repeats: on the real notebooks without running them, and on stubs that it runs."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from studies import MINUTE, Tree, started, write_notebook

from analysis.study.discovery import headers, paper_names
from analysis.study.folders import FORM
from analysis.study.plan import plan

PROFILE = "smoke"
NOTEBOOKS = {run.name for run in plan(PROFILE)}
TASKS = ["mrpc", "sst-2"]


def scripts(names: set[str]) -> set[str]:
    return {name.split("-")[0] for name in names}


@pytest.fixture(scope="session")
def real(tmp_path_factory) -> Tree:
    """The real notebooks, all marked as run: their stamps are touched."""
    tree = Tree.new(tmp_path_factory.mktemp("real"), "notebooks", "profiles")
    (tree.folder / "cache/stamps").mkdir(parents=True)
    (tree.folder / "cache/form").write_text(FORM)
    done = tree.make("-t", "study")
    assert done.returncode == 0, done.stderr[-3000:]
    assert {path.name for path in (tree.folder / "cache/stamps").iterdir()} == NOTEBOOKS
    return tree


@pytest.fixture
def copy(real: Tree, tmp_path: Path) -> Tree:
    """A copy of the real notebooks that a test may spoil."""
    return real.copied(tmp_path / "copy")


# --- what a change runs again ----------------------------------------------------------------------------


def test_nothing_to_do(real: Tree):
    assert real.would_run() == set()


def of(*papers: str | None) -> set[str]:
    """The notebooks of some papers."""
    return {name for name, each in headers().items() if each.paper in papers}


CLARK, PANDE, SHARED = of("clark2019"), of("pande2021"), {"00_finetune", "01_extract"}
KNOWN = CLARK | PANDE | SHARED | {"98_explorer", "99_summary"}  # of later papers this table says nothing
WITH_A_MODEL = KNOWN - {"00_finetune", "99_summary", "05_clark_verdicts"} - PANDE
WITH_A_MODEL |= {"02_score", "03_test_sensitivity"}
DEPENDS = {  # notebooks that depend on a file by themselves, and others only if they come after these
    "notebooks/99_summary.py": {"99_summary"},
    "notebooks/02_score.py": {"02_score"},
    "notebooks/03_test_calibration.py": {"03_test_calibration"},
    "notebooks/03_test.py": {"03_test"},
    "notebooks/01_extract.py": {"01_extract"},
    "notebooks/00_finetune.py": {"00_finetune"},
    "notebooks/05_clark_surface.py": {"05_clark_surface"},
    "analysis/papers/pande2021/claims.py": {"04_verdicts", "99_summary"},
    "analysis/papers/pande2021/published_scores.csv": {"03_test_all", "04_verdicts"},
    "analysis/papers/clark2019/claims.py": {"05_clark_verdicts", "99_summary"},
    "analysis/papers/clark2019/surface.py": {"05_clark_surface"},
    "analysis/papers/clark2019/quantities.py": {"05_clark_syntax", "05_clark_verdicts"},
    "analysis/encoders/tap.py": WITH_A_MODEL,
    "analysis/texts/bundled/lexicon.yaml": {"00_finetune", "01_extract", *CLARK},
    "analysis/run.py": set(),
}


def after(*notebooks: str) -> set[str]:
    """The runs of some notebooks, and those that need them, directly or not."""
    found: set[str] = set()
    for run, needs in plan(PROFILE).items():  # in reading order: what a run needs stands before it
        if run.notebook in notebooks or found & {other.name for other in needs}:
            found.add(run.name)
    return found


def known(names: set[str]) -> set[str]:
    return {name for name in names if name.split("-")[0] in KNOWN}


@pytest.mark.parametrize("changed", DEPENDS)
def test_what_a_changed_file_runs_again(real: Tree, changed: str):
    """Make is asked what it would do if the file were new."""
    rules = real.folder / "cache/rules/all.mk"  # not rewritten: new rules would say the same
    would_run = known(real.would_run("-W", changed, "-o", str(rules)))
    assert DEPENDS[changed] <= scripts(would_run)
    assert would_run == known(after(*DEPENDS[changed]))


def test_after_is_what_headers_say():
    """The oracle above, by hand."""
    fine = after("00_finetune")
    assert f"01_extract-{TASKS[0]}-finetuned" in fine
    assert f"01_extract-{TASKS[0]}-pretrained" not in fine
    rest = {"03_test_all", "03_test_sensitivity", "04_compare", "04_verdicts", "98_explorer", "99_summary"}
    assert known(after("03_test")) == {*(f"03_test-{task}" for task in TASKS), *rest}


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("common:", "# a comment\ncommon:", set()),
        ("common:", "99_summary: {readme: false}\ncommon:", set()),  # the default
        ("common:", "03_test: {resamples: 499}\ncommon:", {"03_test"}),
        ("common:", "02_score: {device: cpu, tau: 4}\ncommon:", {"02_score"}),
        ("seeds: [0, 1]", "seeds: [0, 1, 2]", {"00_finetune", "01_extract"}),
        ("n: 12", "n: 13", {"01_extract"}),
        ("epochs: 1", "epochs: 2", {"00_finetune"}),
    ],
)
def test_what_a_changed_profile_runs_again(copy: Tree, old: str, new: str, again: set[str]):
    path = copy.repository / "profiles" / f"{PROFILE}.yaml"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    would_run = copy.would_run()
    assert again <= scripts(would_run)
    assert known(would_run) == known(after(*again))


def test_missing_stamp_in_the_middle_is_noticed(copy: Tree):
    """An intermediate result is made again although its products are newer than its sources."""
    (copy.folder / f"cache/stamps/03_test-{TASKS[0]}").unlink()
    assert copy.would_run() == after("03_test") - {f"03_test-{task}" for task in TASKS[1:]}


def test_clean_keeps_tables_and_figures(copy: Tree):
    for name in ("tables", "figures", "notebooks"):
        (copy.folder / name).mkdir()
    assert copy.make("clean").returncode == 0
    assert {path.name for path in copy.folder.iterdir()} == {"notebooks", "figures", "tables"}
    assert copy.would_run() == NOTEBOOKS


def test_some_papers_alone(copy: Tree):
    """The notebooks of the papers that are named, what these need, and the summary."""
    (copy.results / PROFILE).rename(copy.results / "aside")
    last = {"98_explorer", "99_summary"}
    assert copy.would_run("PAPERS=clark2019") == CLARK | last
    pande = {name for name in NOTEBOOKS if name.split("-")[0] in PANDE | SHARED}
    assert copy.would_run("PAPERS=pande2021") == pande | last
    assert copy.would_run("PAPERS=pande2021 clark2019") == pande | CLARK | last


# --- other goals -----------------------------------------------------------------------------------------


def test_plain_make_prints_help(real: Tree):
    done = real.make()
    assert (done.returncode, done.stderr) == (0, "")
    goals = re.findall(r"^  make (\S+) +\S", done.stdout, re.MULTILINE)
    assert {"help", "reproduce", "report", "notebook", "test", "lint", "clean"} <= set(goals)
    assert "offline" in done.stdout
    assert "JOBS=2" in done.stdout


def errors(done: subprocess.CompletedProcess) -> list[str]:
    assert "Traceback" not in done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("error: ")]


def test_unknown_profile(real: Tree):
    done = real.make("reproduce", profile="nonsense")
    assert done.returncode != 0
    (line,) = errors(done)
    assert line.startswith("error: unknown profile 'nonsense': choose from ")
    assert all(path.stem in line for path in (real.repository / "profiles").glob("*.yaml"))
    assert not (real.results / "nonsense").exists()


def test_unknown_paper(real: Tree):
    done = real.make("reproduce", "PAPERS=clark1999")
    assert done.returncode != 0
    (line,) = errors(done)
    assert line.startswith("error: unknown paper 'clark1999': choose from pande2021, clark2019")


def test_wrong_profile(copy: Tree):
    (copy.repository / "profiles/wrong.yaml").write_text("common: {windw: 2}\n")
    done = copy.make("reproduce", profile="wrong")
    assert done.returncode != 0
    (line,) = errors(done)
    assert "unknown key 'windw' in section 'common'" in line
    assert not (copy.results / "wrong").exists()


# --- stubs that are run ----------------------------------------------------------------------------------

STUB = """
import os, sys, time
import analysis.study.progress as progress
from pathlib import Path
from analysis.files import write_text
from analysis.study.profiles import parameters, source
from analysis.study.runs import run_of
profile, notebook, *settings = [value for value in sys.argv[2:] if value != "--set"]
values = parameters(notebook, profile, dict(each.split("=", 1) for each in settings))
tables = Path(os.environ["RESULTS_DIR"]) / profile / "tables"
run = run_of(notebook, values)
with progress.shown(run, tables.parent / f"cache/logs/{run.name}.log"):
    exec(source(notebook).read_text().split("# %%", 2)[2].split("\\n# %%\\n")[1], globals())
"""
COMMON = """# %% tags=["parameters"]
profile = "offline"
"""
LABEL = """time.sleep(values["seconds"])
source = values["task"] + values["state"] if "state" in values else values["task"]
write_text(tables / f"{notebook}-{source}.csv", str(values))"""
JOIN = """parts = [(tables / f"02_label-{task}.csv").read_text() for task in values["tasks"]]
write_text(tables / "joined.csv", "".join(parts))"""


@pytest.fixture(scope="session")
def stubs_made(tmp_path_factory) -> Tree:
    """Five notebooks that take no time, of one paper, with the shape of the real ones; never run."""
    folder = tmp_path_factory.mktemp("stubs")
    runner = f"RUN={sys.executable} {folder}/stub.py --profile {PROFILE}"
    tree = Tree.new(folder, variables=(runner,))
    (folder / "stub.py").write_text(f"import sys\nsys.path.insert(0, '.')\n{STUB}")
    (tree.repository / "profiles").mkdir()
    (tree.repository / "profiles/smoke.yaml").write_text("common: {tasks: [mrpc, sst-2], level: 3}\n")
    notebooks = tree.repository / "notebooks"
    notebooks.mkdir()
    task = COMMON + 'task = "mrpc"\nseconds = 0\n'
    state = task + 'state = "pretrained"\n'
    tasks = COMMON + 'tasks = ["mrpc"]\nlevel = 1\n'
    paper = "{paper: pande2021, after: %s}"
    write_notebook(notebooks / "00_train.py", LABEL, parameters=task)
    after = "{after: [{00_train: {state: finetuned}}]}"
    write_notebook(notebooks / "01_read.py", LABEL, parameters=state, study=after)
    write_notebook(
        notebooks / "02_label.py", LABEL, parameters=task + "level = 1\n", study=paper % "[01_read]"
    )
    write_notebook(notebooks / "03_join.py", JOIN, parameters=tasks, study=paper % "[02_label]")
    write_notebook(notebooks / "99_last.py", "pass", parameters=COMMON, study="{after: all}")
    return tree


@pytest.fixture(scope="session")
def stubs_run(stubs_made: Tree, tmp_path_factory) -> Tree:
    """The stubs after one whole run, two at a time."""
    tree = stubs_made.copied(tmp_path_factory.mktemp("run") / "stubs")
    done = tree.make("-j2", "study")
    assert done.returncode == 0, done.stderr[-3000:]
    assert started(done) == STUBS
    return tree


@pytest.fixture
def stubs(stubs_run: Tree, tmp_path: Path) -> Tree:
    """A copy of the stubs that have run."""
    return stubs_run.copied(tmp_path / "stubs")


STUBS = {
    *(f"{name}-{task}" for name in ("00_train", "02_label") for task in TASKS),
    *(f"01_read-{task}-{state}" for task in TASKS for state in ("pretrained", "finetuned")),
    "03_join",
    "99_last",
}


def tables(tree: Tree) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (tree.folder / "tables").iterdir()}


def test_second_run_does_nothing(stubs: Tree):
    before = {path: path.stat().st_mtime_ns for path in (stubs.folder / "tables").iterdir()}
    done = stubs.make("study")
    assert (done.returncode, started(done)) == (0, set())
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_changed_value_reaches_the_tables(stubs: Tree):
    (stubs.repository / "profiles/smoke.yaml").write_text("common: {tasks: [mrpc, sst-2], level: 7}\n")
    done = stubs.make("study")
    assert done.returncode == 0, done.stderr[-3000:]
    assert scripts(started(done)) == {"02_label", "03_join", "99_last"}
    assert tables(stubs)["joined.csv"].count(b"'level': 7") == len(TASKS)


def test_new_task_of_one_notebook_reaches_those_that_it_needs(stubs: Tree):
    """A notebook asks for its own tasks: models are trained for them, and nothing else of the paper's runs."""
    text = 'write_text(tables / "own.csv", str(values["tasks"]))'
    study = "{after: [00_train]}"
    parameters = COMMON + 'tasks = ["mrpc"]\n'
    write_notebook(stubs.repository / "notebooks/04_own.py", text, parameters=parameters, study=study)
    profile = "common: {tasks: [mrpc, sst-2], level: 3}\n04_own: {tasks: [sst-2, qnli]}\n"
    (stubs.repository / "profiles/smoke.yaml").write_text(profile)
    assert stubs.would_run() == {"00_train-qnli", "04_own", "99_last"}


def test_failed_run_stops_the_study(stubs: Tree):
    """A failed notebook has no stamp, notebooks that need it do not start, and the next run resumes there."""
    label = stubs.repository / "notebooks/02_label.py"
    good = label.read_text()
    label.write_text(
        good.replace("write_text(", 'sys.exit("error: no") if source == "mrpc" else write_text(')
    )
    done = stubs.make("study")
    assert done.returncode != 0
    assert errors(done) == ["error: no"]
    assert "03_join" not in started(done)
    assert {"02_label-mrpc", "03_join", "99_last"} <= stubs.would_run()
    label.write_text(good)
    assert stubs.make("study").returncode == 0


def test_killed_run_is_taken_up_again(stubs_made: Tree, stubs_run: Tree, tmp_path: Path):
    """Killed five times, each time after another table, the study ends with the same tables."""
    tree = stubs_made.copied(tmp_path / "stubs")
    for count in range(1, 6):
        running = tree.start("-j2", "study")
        deadline = time.monotonic() + MINUTE
        while len(list(tree.folder.glob("tables/[0-9]*.csv"))) < count and time.monotonic() < deadline:
            time.sleep(0.005)
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        whole = tables(stubs_run)
        assert all(whole[path.name] == path.read_bytes() for path in tree.folder.glob("tables/[!.]*.csv"))
    assert not (tree.folder / "cache/stamps/99_last").exists()
    assert tree.make("-j2", "study").returncode == 0
    assert {name: text for name, text in tables(tree).items() if not name.startswith(".")} == whole


# --- make reproduce --------------------------------------------------------------------------------------


def test_reproduce_counts_its_runs_and_ends_with_the_verdicts(stubs_made: Tree, tmp_path: Path):
    tree = stubs_made.copied(tmp_path / "stubs")
    done = tree.make("reproduce", "JOBS=2")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert started(done) == STUBS
    numbers = [int(n) for n in re.findall(r"^\[ ?(\d+)/10\] .* started$", done.stdout, re.MULTILINE)]
    assert sorted(numbers) == list(range(1, 11))
    ended = re.findall(r"^\[ ?(\d+)/10\] \d\d_\w+(?: \S+)*  \d+ s$", done.stdout, re.MULTILINE)
    assert sorted(map(int, ended)) == list(range(1, 11))
    verdicts = lines[2 * 10 : -3]
    assert {*verdicts} == {f"{paper}: no verdicts" for paper in paper_names()}
    assert len(verdicts) == len(paper_names())
    assert lines[-3].startswith(f"open {tree.folder}/notebooks/99_summary.ipynb")

    columns = "claim,verdict\nC1,holds\nC2,holds\nC3,undecided\n"
    (tree.folder / "tables/claims.csv").write_text(columns)
    (tree.folder / "cache/stamps/99_last").unlink()
    again = tree.make("reproduce")
    assert started(again) == {"99_last"}
    assert "[1/1] 99_last started" in again.stdout.splitlines()
    assert "pande2021: 2 hold, 1 undecided" in again.stdout.splitlines()
    assert started(tree.make("reproduce")) == set()


def test_reproduce_that_fails_says_how_to_go_on(stubs: Tree):
    label = stubs.repository / "notebooks/02_label.py"
    label.write_text(label.read_text().replace("write_text(", 'sys.exit("error: no") or write_text('))
    done = stubs.make("reproduce", "JOBS=1")
    assert done.returncode != 0
    assert errors(done) == ["error: no"]
    assert (
        done.stdout.splitlines()[-1] == "stopped in or after run 1 of 4; the same command goes on from here"
    )


@pytest.fixture
def slow(stubs: Tree) -> tuple[Tree, subprocess.Popen]:
    """Stubs that take long, and their reproduction, whose first run has started."""
    path = stubs.repository / "profiles/smoke.yaml"
    path.write_text("common: {tasks: [mrpc, sst-2], level: 3, seconds: 30}\n")
    log = stubs.folder / "cache/logs/00_train-mrpc.log"
    log.unlink()
    running = stubs.start("reproduce", "JOBS=1")
    deadline = time.monotonic() + MINUTE
    while not log.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return stubs, running


def test_second_reproduction_of_a_profile_is_refused(slow: tuple[Tree, subprocess.Popen]):
    """One line that names the process. The lock outlives a killed parent, but not its children."""
    stubs, running = slow
    (line,) = errors(refused := stubs.make("reproduce"))
    assert refused.returncode != 0
    said = re.fullmatch(r"error: profile smoke is being reproduced by process (\d+): wait for it", line)
    os.kill(int(said[1]), signal.SIGKILL)
    assert errors(stubs.make("reproduce")) == [line]
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    (stubs.repository / "profiles/smoke.yaml").write_text("common: {tasks: [mrpc, sst-2], level: 3}\n")
    assert stubs.make("reproduce").returncode == 0


def test_interrupted_reproduction_is_no_traceback(slow: tuple[Tree, subprocess.Popen]):
    """As by Ctrl-C, which reaches Make and all of its children."""
    running = slow[1]
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=MINUTE)
    assert running.returncode != 0
    assert out.splitlines()[-1] == "stopped; the same command goes on from here"
    assert "reproduction.py" not in err


def test_reproduce_asks_nothing_under_n(stubs: Tree):
    (stubs.folder / "cache/stamps/99_last").unlink()
    assert started(stubs.make("-n", "reproduce")) == {"99_last"}
    assert not (stubs.folder / "cache/stamps/99_last").exists()


def test_results_of_another_version(stubs: Tree):
    (stubs.folder / "cache/form").write_text("1\n")
    done = stubs.make("reproduce")
    assert done.returncode != 0
    (line,) = errors(done)
    assert line.endswith("was made by another version of the study: delete it (make clean) and run again")
