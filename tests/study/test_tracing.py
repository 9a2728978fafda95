"""What a script depends on: its modules and their data, directly or not."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from studies import Study, error_of

from analysis.files import ROOT
from analysis.study import profiles
from analysis.study.tracing import files_of

NAMES = re.compile(r"^ *from (analysis[\w.]*) import (?:\(([^)]*)\)|([^(\n]+))", re.MULTILINE)


def file_of(module: str) -> Path | None:
    path = ROOT / module.replace(".", "/")
    candidates = [path.with_suffix(".py"), path / "__init__.py"]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def imported(text: str) -> set[str]:
    """Oracle: the modules that the lines `from analysis... import ...` of a text name, lazy names by their homes."""
    found = set()
    for package, *lists in NAMES.findall(text):
        found.add(package)
        names = [name.split(" as ")[0].strip() for name in "".join(lists).split("#")[0].split(",")]
        homes = getattr(import_module(package), "HOMES", {})
        found |= {f"{package}.{homes.get(name, name)}" for name in names if name}
    return {module for module in found if file_of(module)}


def reachable(script: Path) -> set[Path]:
    """Oracle: the modules of the package that a script names, followed until none is new, with their packages."""
    found: set[str] = set()
    waiting = imported(script.read_text())
    while waiting:
        found |= waiting
        waiting = set().union(*(imported(file_of(module).read_text()) for module in waiting)) - found
    parents = {
        ".".join(parts[:end])
        for module in found
        if (parts := module.split("."))
        for end in range(1, len(parts))
    }
    return {file_of(module) for module in found | parents}


# They find the papers, whose offers no import names.
FINDERS = {"98_explorer", "99_summary"}


@pytest.mark.parametrize("notebook", sorted({*profiles.notebook_names()} - FINDERS))
def test_modules_of_the_real_notebooks(notebook: str):
    script = profiles.source(notebook)
    assert {path for path in files_of(script) if path.suffix == ".py"} == reachable(script)


def names_of(notebook: str) -> set[str]:
    return {str(path.relative_to(ROOT / "analysis")) for path in files_of(profiles.source(notebook))}


def test_indirect_imports_and_data():
    test, extract = names_of("03_test"), names_of("01_extract")
    assert {
        "statistics/significance.py",
        "figures/theme.py",
        "errors.py",
        "papers/pande2021/overlaps.py",
    } <= test
    assert {
        "scores/kernel.py",
        "encoders/tap.py",
        "texts/bundled/drafts.py",
        "texts/bundled/frames.yaml",
    } <= extract
    assert not {name for name in test if name.startswith(("encoders/", "scores/"))}
    assert not {name for name in extract if name.startswith("papers/clark2019")}
    assert "papers/pande2021/published_scores.csv" in names_of("04_verdicts")
    assert not {name for name in names_of("00_finetune") if name.endswith((".csv", ".md"))}


def test_the_summary_depends_on_what_papers_offer():
    """It names no paper: each one's claims and summary are found like the paper itself."""
    summary = names_of("99_summary")
    papers = {path.parent.name for path in (ROOT / "analysis/papers").glob("*/__init__.py")}
    assert {"synthesis/claims.py", *(f"papers/{paper}/claims.py" for paper in papers)} <= summary
    assert "papers/pande2021/findings.py" in summary  # what claims import
    assert not {"papers/clark2019/probes.py", "papers/pande2021/simulation.py"} & summary


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("from analysis.papers.pande2021 import published", "papers/pande2021/published_roles.csv"),
        ("from analysis import role_table", "statistics/significance.py"),
        ("from analysis import Results as R", "study/results.py"),
        ("from analysis.encoders.tap import tap", "encoders/tap.py"),
        ("import analysis.encoders.tap", "encoders/tap.py"),
        ("import analysis.encoders.tap as t, os", "encoders/layout.py"),
        ("def late():\n    from analysis.encoders import load_encoder", "encoders/models.py"),
    ],
)
def test_ways_to_import(tmp_path: Path, statement: str, expected: str):
    script = tmp_path / "script.py"
    script.write_text(statement + "\n")
    assert ROOT / "analysis" / expected in files_of(script)


@pytest.mark.parametrize("statement", ["import os", "from analysis_of_tap import tap", "import tap"])
def test_imports_of_other_packages(tmp_path: Path, statement: str):
    script = tmp_path / "script.py"
    script.write_text(statement + "\n")
    assert files_of(script) == ()


def test_code_that_cannot_be_read(study: Study):
    study.notebook("01_first", "print('fine')", "def broken(:")
    line = (study.notebooks / "01_first.py").read_text().split("def broken")[0].count("\n") + 1
    message = error_of(files_of, profiles.source("01_first"))
    assert message == f"{study.notebooks}/01_first.py, line {line}: invalid syntax: correct the Python code"


def test_tracing_runs_nothing():
    """Make traces at every start: it must not load torch."""
    code = (
        "import sys; from analysis.study.tracing import files_of; from pathlib import Path; "
        "files_of(Path('notebooks/01_extract.py')); assert not {'torch', 'matplotlib'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)
