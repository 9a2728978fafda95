"""The rules for Make: what a notebook depends on, and parameter files that change only when they must."""

import os
import re
from pathlib import Path

import pytest
import yaml
from studies import PARAMETERS, Study, error_of

from analysis import profiles, rules
from analysis.store import ROOT

OWN = re.compile(
    r"^\s*from (?:analysis\.|\.+)(\w+)|^\s*from (?:analysis|\.+) import (\w+(?:, \w+)*)", re.MULTILINE
)


def reachable(notebook: str) -> set[str]:
    """Oracle: the modules in the lines that import from the package, followed until none is new."""
    found, waiting = set(), [ROOT / "notebooks" / f"{notebook}.py"]
    while waiting:
        lines = OWN.findall(waiting.pop().read_text())
        names = {name for line in lines for names in line if names for name in names.split(", ")}
        new = {name for name in names - found if rules.module_file(name).exists()}
        for name in new:
            folder = rules.PACKAGE / name
            waiting += folder.glob("*.py") if folder.is_dir() else [rules.PACKAGE / f"{name}.py"]
        found |= new
    return found


@pytest.mark.parametrize("notebook", [path.stem for path in sorted((ROOT / "notebooks").glob("[0-9]*.py"))])
def test_modules_of_the_real_notebooks(notebook: str):
    assert rules.imported_modules(profiles.source(notebook)) == reachable(notebook)


def test_indirect_imports():
    test, extract = (rules.imported_modules(profiles.source(name)) for name in ("03_test", "01_extract"))
    assert {"significance", "roles", "store", "theme", "errors", "grids", "overlaps"} <= test
    assert {"models", "extraction", "tap", "torch"} & test == set()
    assert {"extraction", "tap", "sieves", "layout", "corpus", "examples"} <= extract
    assert "plots" not in extract


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("from analysis import published", "published"),
        ("from analysis import role_table", "significance"),
        ("from analysis import Results as R", "store"),
        ("from analysis.tap import tap", "tap"),
        ("from analysis.published import scores", "published"),
        ("import analysis.tap", "tap"),
        ("import analysis.tap as t, os", "tap"),
        ("def late():\n    from analysis import tap", "tap"),
    ],
)
def test_ways_to_import(tmp_path: Path, statement: str, expected: str):
    script = tmp_path / "script.py"
    script.write_text(statement + "\n")
    assert expected in rules.imported_modules(script)


@pytest.mark.parametrize(
    "statement", ["import os", "from analysis_of_tap import tap", "import analysis", "import tap"]
)
def test_imports_of_other_packages(tmp_path: Path, statement: str):
    script = tmp_path / "script.py"
    script.write_text(statement + "\n")
    assert rules.imported_modules(script) == set()


def test_code_that_cannot_be_read(study: Study):
    study.notebook("01_first", "print('fine')", "def broken(:")
    line = (study.notebooks / "01_first.py").read_text().split("def broken")[0].count("\n") + 1
    message = error_of(rules.imported_modules, profiles.source("01_first"))
    assert message == f"{study.notebooks}/01_first.py, line {line}: invalid syntax: correct the Python code"


@pytest.fixture
def written(study: Study):
    """Writes the rules of a study with two notebooks and returns them line by line."""
    study.notebook("01_first", "from analysis import published", "from analysis.corpus import generate")
    study.notebook("03_test_all", parameters=PARAMETERS + 'tasks = ["mrpc"]\n')
    study.profile("quick", "common: {tasks: [sst-2, qnli]}")

    def written() -> dict[str, list[str]]:
        lines = rules.write_rules("quick").read_text().splitlines()
        return {name: value.split() for name, value in (line.split(" := ") for line in lines)}

    return written


def test_rules(written, study: Study):
    """Tasks, and for each notebook its script, its modules with their data, and its parameters."""
    found = written()
    assert list(found) == ["TASKS", "DEPENDS_01_first", "DEPENDS_03_test_all"]
    assert found["TASKS"] == ["sst-2", "qnli"]
    first = found["DEPENDS_01_first"]
    corpus = {f"analysis/corpus/{name}" for name in ("__init__.py", "grammar.py", "lexicon.yaml")}
    published = {f"analysis/published/{name}" for name in ("__init__.py", "pande2021_roles.csv")}
    expected = corpus | published | {"analysis/errors.py", "analysis/examples.py"}
    assert expected <= set(first)
    assert len(first) == len(set(first))
    assert all((ROOT / path).is_file() and not Path(path).is_absolute() for path in first)
    assert [Path(path).name for path in (first[0], first[-1])] == ["01_first.py", "01_first.yaml"]
    values = yaml.safe_load((study.folder / "results/quick/cache/parameters/01_first.yaml").read_text())
    assert values == profiles.parameters("01_first", "quick")


def test_parameter_files_change_only_with_their_parameters(written, study: Study):
    written()
    folder = study.folder / "results/quick/cache/parameters"
    for path in folder.iterdir():
        os.utime(path, (1000, 1000))
    times = lambda: {path.stem: path.stat().st_mtime == 1000 for path in folder.iterdir()}  # noqa: E731
    study.profile("quick", "# a comment\ncommon: {tasks: [sst-2, qnli]}\n01_first:")
    written()
    assert times() == {"01_first": True, "03_test_all": True}
    study.profile("quick", "common: {tasks: [sst-2, qnli]}\n01_first: {n: 4}")
    written()
    assert times() == {"01_first": False, "03_test_all": True}


def test_rules_refuse_a_wrong_list_of_tasks(written, study: Study):
    study.profile("quick", "common: {tasks: mrpc}")
    assert "parameter tasks is 'mrpc': give a list" in error_of(rules.write_rules, "quick")


def test_unknown_and_missing_tasks_are_one_line(written, study: Study, capsys):
    study.profile("quick", "common: {tasks: [mrpc, cola]}")
    assert "task 'cola' is unknown: choose from mrpc, qqp, sst-2, qnli" in error_of(
        rules.write_rules, "quick"
    )
    study.profile("quick", "common: {tasks: []}")
    assert rules.main(["--profile", "quick"]) == 1
    assert (
        capsys.readouterr().err
        == "error: profile quick: tasks is empty: choose from mrpc, qqp, sst-2, qnli\n"
    )


def test_rules_of_an_unknown_profile(capsys):
    assert rules.main(["--profile", "absent"]) == 1
    assert capsys.readouterr().err.startswith("error: unknown profile 'absent': choose from ")
