"""Rules that every notebook keeps, so that each reads well, and runs anywhere with any profile."""

import ast
import re
import sys
import tomllib
from collections import Counter
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import jupytext
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools import find_packages
from studies import runs_of

from analysis.files import ROOT
from analysis.study.profiles import declared, notebook_names, parameters, source

NOTEBOOKS = notebook_names()
# The notebooks of every paper, by their numbers; those of the study itself come first.
NUMBERS = {"study": "00_|01_|98_|99_", "pande2021": "02_|03_|04_", "clark2019": "05_", "michel2019": "06_"}
NUMBERS |= {"kovaleva2019": "07_", "pascual2021": "08_", "niven2019": "09_", "synthesis": "10_|11_"}
PAPERS = {paper: [name for name in NOTEBOOKS if re.match(start, name)] for paper, start in NUMBERS.items()}
PROFILES = sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml"))


@cache
def cells(notebook: str, kind: str | None = None) -> list:
    """The cells of a notebook, or those of one kind."""
    found = jupytext.read(source(notebook)).cells
    return [cell for cell in found if kind in (None, cell.cell_type)]


@cache
def nodes(notebook: str, *kinds: type) -> list:
    """The nodes of some kinds in the whole notebook as Python."""
    tree = ast.parse(source(notebook).read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def is_parameters(cell) -> bool:
    return "parameters" in cell.metadata.get("tags", [])


@pytest.fixture(params=NOTEBOOKS)
def notebook(request) -> str:
    """Each notebook in turn."""
    return request.param


def test_every_notebook_belongs_to_a_paper_or_to_the_study():
    assert sorted(name for names in PAPERS.values() for name in names) == NOTEBOOKS


def test_numbers_and_names():
    assert len(NOTEBOOKS) >= 7
    assert sorted(path.stem for path in (ROOT / "notebooks").glob("*.py")) == NOTEBOOKS
    assert all(re.fullmatch(r"\d\d_[a-z_]+", name) for name in NOTEBOOKS)
    assert not list((ROOT / "notebooks").glob("[0-9]*.ipynb")), "the scripts are the only source"


# --- form ------------------------------------------------------------------------------------------------


def test_header_names_the_kernel(notebook: str):
    """Without it papermill finds neither a kernel nor a language."""
    metadata = jupytext.read(source(notebook)).metadata
    assert metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert metadata.jupytext.text_representation.format_name == "percent"


def test_saving_in_jupyter_changes_nothing(notebook: str):
    """Below the header, jupytext writes exactly what it has read."""
    text = source(notebook).read_text(encoding="utf-8")
    written = jupytext.writes(jupytext.reads(text, "py:percent"), "py:percent")
    assert written.split("# ---\n", 2)[2] == text.split("# ---\n", 2)[2]


def test_title_first(notebook: str):
    first, *others = cells(notebook)
    assert first.cell_type == "markdown"
    assert first.source.startswith("# ")
    assert not [
        cell for cell in others if cell.cell_type == "markdown" and re.search("^# ", cell.source, re.M)
    ]


def test_question_and_source_stand_under_the_title(notebook: str):
    assert "**Question.**" in cells(notebook)[0].source or notebook == "99_summary"
    assert len(cells(notebook)[0].source.split()) > 30


def test_one_cell_of_parameters_and_it_is_the_first_code(notebook: str):
    assert [cell for cell in cells(notebook) if is_parameters(cell)] == [cells(notebook)[1]]
    assert cells(notebook)[1].cell_type == "code"


def test_parameters_are_plain_values(notebook: str):
    """A value computed from others would keep its default when papermill sets those others."""
    (cell,) = filter(is_parameters, cells(notebook))
    statements = ast.parse(cell.source).body
    assert all(isinstance(statement, ast.Assign) for statement in statements)
    found = {statement.targets[0].id: ast.literal_eval(statement.value) for statement in statements}
    assert found == declared(notebook)
    assert len(found) == len(statements)
    assert next(iter(found.items())) == ("profile", "offline")


def test_parameters_are_used(notebook: str):
    loaded = {node.id for node in nodes(notebook, ast.Name) if isinstance(node.ctx, ast.Load)}
    assert set(declared(notebook)) - loaded == set()


def test_parameters_keep_their_values(notebook: str):
    """If a cell assigned to a parameter, the next Run All would be a different run."""
    assigned = Counter(node.id for node in nodes(notebook, ast.Name) if isinstance(node.ctx, ast.Store))
    assert [
        name for name in declared(notebook) if assigned[name] != 1 and not _in_comprehension(notebook, name)
    ] == []


def _in_comprehension(notebook: str, name: str) -> bool:
    targets = [ast.walk(node.target) for node in nodes(notebook, ast.comprehension)]
    return any(getattr(node, "id", None) == name for target in targets for node in target)


def test_prose_before_code(notebook: str):
    """There is a heading or a sentence for at least every second code cell, and one before the first result."""
    assert 2 * len(cells(notebook, "markdown")) >= len(cells(notebook, "code")) - 1  # without the parameters
    assert any(cell.source.startswith("## ") for cell in cells(notebook, "markdown"))


def test_no_path_of_a_machine(notebook: str):
    texts = [node.value for node in nodes(notebook, ast.Constant) if isinstance(node.value, str)]
    assert [text for text in texts if re.match(r"/\w|~|[A-Za-z]:\\|\.\./", text)] == []
    assert not re.search(r"/(home|Users|work|tmp|root)/", source(notebook).read_text(encoding="utf-8"))


def test_files_are_left_to_the_store(notebook: str):
    """Paths, formats and atomic writing are the store's: nothing is opened or written by a notebook itself."""
    called = {ast.unparse(node.func).split(".")[-1] for node in nodes(notebook, ast.Call)}
    assert (
        called & {"open", "to_csv", "to_netcdf", "savefig", "read_csv", "write_text", "mkdir", "chdir"}
        == set()
    )


def test_randomness_is_seeded(notebook: str):
    """By the generator alone that takes a seed."""
    text = source(notebook).read_text(encoding="utf-8")
    assert re.findall(r"np\.random\.(?!default_rng\(\w)|^import random|RandomState", text, re.MULTILINE) == []


def figures(notebook: str) -> list[str]:
    """The names under which a notebook saves its figures, `*` where a task is filled in."""
    calls = [node for node in nodes(notebook, ast.Call) if ast.unparse(node.func) == "results.save_figure"]
    return [re.sub(r"\{task\}", "*", ast.literal_eval(_plain(call.args[1]))) for call in calls]


def _plain(name: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(name).removeprefix("f"), mode="eval").body


def test_figures_of_the_paper():
    """F1 to F9, each under one name only, by a notebook that runs per task just where the name has the task."""
    names = [name for notebook in NOTEBOOKS for name in figures(notebook)]
    assert len(set(names)) == len(names)
    assert {name.split("-")[0] for name in names} >= {f"F{number}" for number in range(1, 10)}
    for notebook in NOTEBOOKS:
        assert all(("-*" in name) == ("task" in declared(notebook)) for name in figures(notebook))


# --- profiles and Make -----------------------------------------------------------------------------------


def test_defaults_are_those_of_the_profile_offline(notebook: str):
    """Run All in Jupyter then does what `make reproduce` does."""
    assert parameters(notebook, "offline") == declared(notebook)


@pytest.mark.parametrize("paper", PAPERS)
def test_shared_parameters_share_their_defaults(paper: str):
    """The notebooks of one paper agree; papers differ in their tasks, sizes and recipes."""
    defaults: dict[str, set[str]] = {}
    for name in PAPERS[paper]:
        for key, value in declared(name).items():
            defaults.setdefault(key, set()).add(repr(value))
    assert {key for key, values in defaults.items() if len(values) > 1} == set()


@pytest.mark.parametrize("paper", PAPERS)
def test_shared_parameters_are_set_for_all_notebooks_of_a_paper(paper: str):
    """If a profile set one of them for a single notebook, the notebooks would disagree."""
    for profile in PROFILES:
        values = [parameters(name, profile) for name in PAPERS[paper]]
        for key in {key for own in values for key in own} - {"tasks"}:  # a question may leave some out
            assert len({repr(own[key]) for own in values if key in own}) == 1, (profile, key)


@pytest.mark.parametrize("profile", PROFILES)
def test_every_notebook_runs(profile: str):
    """An undefined variable of the Makefile is an empty list, and its runs would silently be missing."""
    assert {run.split("-")[0] for run in runs_of(profile)} == set(NOTEBOOKS)


# --- environment -----------------------------------------------------------------------------------------


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def dependencies() -> dict[str, Requirement]:
    found = [Requirement(text) for text in project()["dependencies"]]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def locked() -> dict[str, str]:
    """The pinned version of every package in requirements.lock."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [re.split("[;#]", line)[0].strip() for line in lines]
    return {canonicalize_name(name): version for name, version in (pin.split("==") for pin in pins if pin)}


def imported(folder: str) -> set[str]:
    """Distributions that the files of a folder import, the standard library and the study itself left out."""
    names = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(node.module.split(".")[0])
    homes = packages_distributions()
    outside = names - set(sys.stdlib_module_names) - {"analysis"}
    return {canonicalize_name(homes[name][0]) for name in outside}


@pytest.mark.parametrize("folder", ["analysis", "notebooks"])
def test_imported_packages_are_dependencies(folder: str):
    extras = {extra: texts for extra, texts in project()["optional-dependencies"].items() if extra != "test"}
    optional = {
        canonicalize_name(Requirement(text).name) for texts in extras.values() for text in texts
    }  # notebooks that need an extra say so if it is missing
    assert imported(folder) - set(dependencies()) - optional == set()


def test_dependencies_are_locked_to_a_version_that_they_allow():
    pins = locked()
    optional = [Requirement(text) for text in project()["optional-dependencies"]["test"]]
    wanted = dependencies() | {canonicalize_name(requirement.name): requirement for requirement in optional}
    assert set(wanted) - set(pins) == set()
    assert {name: pins[name] for name, r in wanted.items() if not r.specifier.contains(pins[name])} == {}


def test_lock_pins_and_nothing_else():
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[\w.-]+==[\w.]+( ; [\w.'= ]+)?(\s+#.*)?", line)] == []
    assert len(locked()) == len(pins)


def test_environment_of_conda_installs_the_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert "-r requirements.lock" in pip
    assert [line for line in pip if line.startswith(("-e .", "--no-deps -e ."))]


def test_package_data_is_installed():
    """Packages and their data are found by rules; the first installed copy would lack any that the rules miss."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    packages = find_packages(str(ROOT), include=tool["packages"]["find"]["include"])
    (patterns,) = tool["package-data"].values()
    for path in (ROOT / "analysis").rglob("*.*"):
        if path.parent.name != "__pycache__":
            assert ".".join(path.parent.relative_to(ROOT).parts) in packages
            assert path.suffix == ".py" or any(Path(path.name).match(pattern) for pattern in patterns), (
                path.name
            )
