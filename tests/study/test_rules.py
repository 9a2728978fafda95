"""The rules of the Makefile miss no file: each module that a notebook imports, directly or not, and its data."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_floors import MODULES, imported, reached

from analysis.files import ROOT
from analysis.study.claims import PAPERS
from analysis.study.parameters import declared, notebook_names, source

PACKAGE = ROOT / "analysis"
# What these import makes no number: the store of results, and drawing.
BOUNDARY = frozenset({"study", "figures"})
NO_DATA = {".py", ".pyc", ".md"}
# Files whose names alone are used: how scores are tested does not change the scores.
UNUSED = {"01_extract": {f"analysis/statistics/{name}.py" for name in ("significance", "resampling")}}
UNUSED["08_attribution"] = UNUSED["01_extract"]


@pytest.fixture(scope="module", params=["smoke", "offline"])
def needs(request, tmp_path_factory) -> dict[str, set[str]]:
    """What stands on the right of each rule of a profile, by the name of the run or file."""
    folder = tmp_path_factory.mktemp("rules")
    command = ["make", "-npq", "study", f"PROFILE={request.param}", f"PYTHON={sys.executable}"]
    done = subprocess.run([*command, f"RESULTS_DIR={folder}"], cwd=ROOT, capture_output=True, text=True)
    prerequisites: dict[str, set[str]] = {}
    for target, files in re.findall(r"^(\S+/done/\S+): (.*)$", done.stdout, re.MULTILINE):
        prerequisites.setdefault(Path(target).name, set()).update(files.split(" | ")[0].split())
    return prerequisites


def behind(run: str, needs: dict[str, set[str]]) -> set[str]:
    """Every file and run on which a run depends, by itself or through other runs."""
    files: set[str] = set()
    waiting = {run}
    while waiting:
        direct = set().union(*(needs.get(Path(name).name, set()) for name in waiting))
        waiting, files = direct - files, files | direct
    return files


@pytest.mark.parametrize("notebook", notebook_names())
def test_rules_miss_no_file(needs: dict[str, set[str]], notebook: str):
    traced_files = {str(path.relative_to(ROOT)) for path in traced(source(notebook))}
    traced_files -= UNUSED.get(notebook, set())
    for run in (run for run in needs if run.split("-")[0] == notebook):
        prerequisites = behind(run, needs)
        assert traced_files - prerequisites == set(), run
        assert f"notebooks/{notebook}.py" in prerequisites
        assert any(name.endswith(f"parameters/{notebook}.yaml") for name in prerequisites)


# The notebooks that a changed file runs again, beside the last ones.
DOWN = {
    "notebooks/99_summary.py": (),
    "notebooks/02_score.py": ("02_",),
    "notebooks/03_robustness.py": ("03_robustness",),
    "benchmarks/results/calibration.csv": ("03_robustness",),
    "notebooks/01_extract.py": ("01_", "02_", "03_", "04_", "10_", "11_"),
    "notebooks/05_clark_surface.py": ("05_", "10_"),
    "analysis/papers/pande2021/__init__.py": ("02_", "03_", "04_", "10_", "11_"),
    "analysis/papers/kovaleva2019/__init__.py": ("07_", "10_"),
    "analysis/papers/niven2019/__init__.py": ("09_",),
    "analysis/statistics/significance.py": (*(f"0{number}_" for number in range(2, 10)), "10_", "11_"),
    "analysis/encoders/tap.py": ("0", "10_", "11_"),
    "analysis/study/results.py": ("0", "10_", "11_"),
    "analysis/explorer/__init__.py": (),
}
LAST = ("12_", "98_", "99_")


@pytest.mark.parametrize("changed", DOWN)
def test_what_a_changed_file_runs_again(needs: dict[str, set[str]], changed: str):
    again = {run for run in needs if changed in behind(run, needs)} - {"index"}
    expected = {run for run in needs if run.startswith((*DOWN[changed], *LAST))}
    expected -= {"98_explorer"} if "99_" in changed else {"09_niven_cues"} if "tap" in changed else set()
    assert again == expected


def test_code_that_makes_no_number_runs_nothing_again(needs: dict[str, set[str]]):
    others = {f"analysis/{name}.py" for name in ("run", "study/verification", "scale")} | {"Makefile"}
    assert not others & behind("index", needs)


def test_the_makefile_knows_every_paper():
    folders = {path.parent.name for path in PACKAGE.glob("papers/*/__init__.py")}
    assert {*PAPERS} == folders | {"synthesis"}
    assert f"\nSTUDIES := {' '.join(PAPERS)}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_tracing_is_not_blind():
    """Indirect imports and data are seen, and what another room holds is not."""
    names = {str(path.relative_to(PACKAGE)) for path in traced(source("01_extract"))}
    assert {"scores/sieves.py", "encoders/tap.py", "texts/tasks.py"} <= names
    assert not {name for name in names if name.startswith(("papers/clark2019", "study", "statistics/claims"))}
    data = {path.suffix for path in traced(source("04_compare"))}
    assert ".csv" in data


def traced(script: Path) -> set[Path]:
    """The files of the rooms of analysis/ that a script needs: modules, and data beside one that names `__file__`."""
    modules = {MODULES[name] for name in reached(imported(script), BOUNDARY)}
    files = {path for path in modules if path.name != "__init__.py"}
    inside = [path for path in modules if path.relative_to(PACKAGE).parts[0] not in BOUNDARY]
    for path in inside:
        if "__file__" in path.read_text(encoding="utf-8"):
            files |= {file for file in path.parent.iterdir() if file.is_file() and file.suffix not in NO_DATA}
    return {file for file in files if file.parent != PACKAGE and file.parent.name != "study"}


def test_lists_of_tasks_are_those_of_notebooks():
    """A variable that no notebook defines is an empty list for Make, without a word."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    lists = {*re.findall(r"\b(\d\d_\w+)\.(\w*tasks)\b", text)}
    assert len(lists) > 10
    assert [(notebook, name) for notebook, name in lists if name not in declared(notebook)] == []
