"""One notebook with one profile: parameters and their errors, failed runs, and the rules for Make."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from analysis import run
from analysis.errors import InputError
from analysis.store import ROOT

HEADER = """# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A notebook

"""
PARAMETERS = """# %% tags=["parameters"]
profile = "quick"
task = "mrpc"  # with a comment
n = 3
rate = 1e-4
flag = False
checkpoint = None
words = ["a", "b"]
"""


class Study:
    """A folder of notebooks and one of profiles that the runner takes for its own."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder, self.notebooks, self.profiles = folder, folder / "notebooks", folder / "profiles"
        for name, path in (("NOTEBOOKS", self.notebooks), ("PROFILES", self.profiles)):
            path.mkdir()
            monkeypatch.setattr(run, name, path)
        monkeypatch.setenv("RESULTS_DIR", str(folder / "results"))
        self.profile("quick", "common:\n  n: 5\n")

    def notebook(self, name: str, *cells: str, parameters: str = PARAMETERS) -> None:
        text = HEADER + parameters + "".join(f"\n# %%\n{cell}\n" for cell in cells)
        (self.notebooks / f"{name}.py").write_text(text)

    def profile(self, name: str, text: str) -> Path:
        path = self.profiles / f"{name}.yaml"
        path.write_text(text)
        return path

    def files(self) -> set[str]:
        results = self.folder / "results"
        return {str(path.relative_to(results)) for path in results.rglob("*") if path.is_file()}


@pytest.fixture
def study(tmp_path: Path, monkeypatch) -> Study:
    """An empty study with one profile, `quick`."""
    return Study(tmp_path, monkeypatch)


def error_of(function, *arguments) -> str:
    """The message of the InputError that a call raises, checked to be one line."""
    with pytest.raises(InputError) as caught:
        function(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- parameters ------------------------------------------------------------------------------------------


def test_declared_parameters(study: Study):
    study.notebook("01_first", "n = 7", "other = 8")
    assert run.declared("01_first") == {
        "profile": "quick",
        "task": "mrpc",
        "n": 3,
        "rate": 1e-4,
        "flag": False,
        "checkpoint": None,
        "words": ["a", "b"],
    }


@pytest.mark.parametrize("statement", ["n = 2 * 3", "n = range(3)", "n = other", "a, b = 1, 2", "n = ("])
def test_parameters_that_are_no_plain_values(study: Study, statement: str):
    study.notebook("01_first", parameters=PARAMETERS + statement + "\n")
    message = error_of(run.declared, "01_first")
    assert message.startswith(f"{study.notebooks}/01_first.py: write name = value in the parameters cell")


@pytest.mark.parametrize("cells", [0, 2])
def test_one_cell_of_parameters(study: Study, cells: int):
    study.notebook("01_first", parameters=PARAMETERS * cells)
    assert f"01_first.py has {cells} cells tagged parameters" in error_of(run.declared, "01_first")


def test_unknown_notebook(study: Study):
    study.notebook("01_first")
    study.notebook("02_second")
    assert (
        error_of(run.declared, "03_third") == "unknown notebook '03_third': choose from 01_first, 02_second"
    )


def test_notebooks_in_reading_order(study: Study):
    for name in ("10_last", "02_second", "01_first", "draft"):
        study.notebook(name)
    assert run.notebook_names() == ["01_first", "02_second", "10_last"]


def test_precedence(study: Study):
    """Each layer wins over those before it, and leaves alone what it does not name."""
    study.notebook("01_first")
    study.notebook("02_second", parameters=PARAMETERS + "elsewhere = 0\n")
    study.profile("quick", "common: {n: 10, rate: 0.5, elsewhere: 9}\n01_first: {n: 20, flag: true}\n")
    values = run.parameters("01_first", "quick", {"n": 30})
    assert values == run.declared("01_first") | {"n": 30, "rate": 0.5, "flag": True}
    assert run.parameters("01_first", "quick")["n"] == 20
    assert run.parameters("02_second", "quick")["n"] == 10
    assert run.declared("01_first")["n"] == 3


def test_profile_parameter_is_the_profile_in_use(study: Study):
    study.notebook("01_first")
    study.profile("other", "")
    assert run.parameters("01_first", "other") == run.declared("01_first") | {"profile": "other"}


def test_null_in_a_profile(study: Study):
    study.notebook("01_first")
    study.profile("quick", "common: {n: null}")
    assert run.parameters("01_first", "quick")["n"] is None


@pytest.mark.parametrize("name", ["m", "profile", "N"])
def test_unknown_setting(study: Study, name: str):
    study.notebook("01_first")
    message = error_of(run.parameters, "01_first", "quick", {name: "x"})
    assert message == (
        f"01_first has no parameter {name!r}: choose from task, n, rate, flag, checkpoint, words"
    )


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("task", 3, "a text"),
        ("task", None, "a text"),
        ("n", "many", "a number"),
        ("n", True, "a number"),
        ("rate", "1e-4", "1e-4 is written 1.0e-4"),
        ("flag", 1, "true or false"),
        ("flag", "yes", "true or false"),
        ("words", "a", "a list"),
        ("checkpoint", 5, "a text"),
    ],
)
def test_value_of_another_kind(study: Study, name: str, value: object, wanted: str):
    """YAML reads 1e-4 as text: a number that silently became text would fail far from its cause."""
    study.notebook("01_first")
    for settings, text in (({name: value}, ""), ({}, yaml.safe_dump({"common": {name: value}}))):
        study.profile("quick", text)
        message = error_of(run.parameters, "01_first", "quick", settings)
        assert message.startswith(f"01_first: parameter {name} is {value!r}: give ")
        assert wanted in message


@pytest.mark.parametrize(
    ("name", "value"), [("n", 2.5), ("rate", 1), ("checkpoint", "x"), ("words", []), ("n", None)]
)
def test_value_of_the_same_kind(study: Study, name: str, value: object):
    study.notebook("01_first")
    assert run.parameters("01_first", "quick", {name: value})[name] == value


# --- profiles --------------------------------------------------------------------------------------------


def test_unknown_profile(study: Study):
    study.profile("another", "")
    for name in ("absent", "../profiles/quick", ""):
        assert error_of(run.load_profile, name) == f"unknown profile {name!r}: choose from another, quick"


@pytest.mark.parametrize(
    "text", ["", "# only a comment\n", "common:\n", "common:\n01_first:\n", "common: {}\n"]
)
def test_empty_profiles_leave_the_defaults(study: Study, text: str):
    study.notebook("01_first")
    study.profile("quick", text)
    assert run.parameters("01_first", "quick") == run.declared("01_first")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("comon: {n: 1}", "unknown section 'comon': choose from 01_first, 02_second, common"),
        ("03_third: {n: 1}", "unknown section '03_third': choose from 01_first, 02_second, common"),
        ("common: {m: 1}", "unknown key 'm' in section 'common': choose from checkpoint, elsewhere, flag, n"),
        ("01_first: {elsewhere: 1}", "unknown key 'elsewhere' in section '01_first': choose from checkpoint"),
        ("common: {profile: x}", "unknown key 'profile' in section 'common': choose from checkpoint"),
        ("common: [n]", "section 'common' is ['n']: write indented lines 'name: value'"),
        ("common: n", "section 'common' is 'n': write indented lines 'name: value'"),
        ("common: {n: 1", "is not valid YAML: while parsing"),
        ("common:\n\tn: 1", "is not valid YAML: while scanning"),
        ("n: 1", "unknown section 'n': choose from 01_first, 02_second, common"),
        ("[common]", "has no sections"),
        ("common", "has no sections"),
    ],
)
def test_wrong_profile(study: Study, text: str, expected: str):
    study.notebook("01_first")
    study.notebook("02_second", parameters=PARAMETERS + "elsewhere = 0\n")
    path = study.profile("quick", text)
    message = error_of(run.load_profile, "quick")
    assert message.startswith(str(path))
    assert expected in message


def test_profile_that_is_no_text(study: Study):
    study.notebook("01_first")
    study.profile("quick", "").write_bytes(b"common: \xff\xfe")
    assert "is not valid YAML" in error_of(run.load_profile, "quick")


# --- executing -------------------------------------------------------------------------------------------


def execute(study: Study, *cells: str, **settings: object) -> nbformat.NotebookNode:
    """The executed copy of a notebook of these cells."""
    study.notebook("01_first", *cells)
    return nbformat.read(run.run("01_first", "quick", settings), as_version=4)


def printed(notebook: nbformat.NotebookNode) -> str:
    """What the last cell printed."""
    return notebook.cells[-1].outputs[0].text.strip()


def test_run_injects_the_parameters_and_keeps_only_the_executed_copy(study: Study):
    cell = "import os\nprint(profile, task, n, rate, flag, checkpoint, words, os.getcwd())"
    executed = execute(study, cell, task="sst-2", words=["c"])
    assert printed(executed) == f"quick sst-2 5 0.0001 False None ['c'] {ROOT}"
    assert study.files() == {"quick/notebooks/01_first-sst-2.ipynb"}


def test_run_twice_gives_the_same_bytes(study: Study):
    """Times, ids, progress bars and saved paths are not in the executed copy; what was computed is."""
    cells = [
        "import sys, pathlib, warnings",
        "print('on the way', file=sys.stderr)\nwarnings.warn('careful')\nprint('result')",
        "pathlib.Path('/somewhere/figure.png')",
        "1 + 1",
        "import pandas\npandas.DataFrame({'a': [1]}).style.set_properties(color='red')",
    ]
    first = execute(study, *cells)
    path = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    before = path.read_bytes()
    execute(study, *cells)
    assert path.read_bytes() == before
    outputs = [
        [output.get("text", output.get("data")) for output in cell.outputs] for cell in first.cells[-4:-1]
    ]
    assert outputs == [["result\n"], [], [{"text/plain": "2"}]]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        (
            "from analysis.errors import InputError\nraise InputError('row 3 is empty: fill it')",
            "row 3 is empty: fill it",
        ),
        ("this is no Python", "SyntaxError: invalid syntax"),
    ],
)
def test_failing_notebook(study: Study, cell: str, reason: str):
    """Nothing is left where the executed copy belongs, not even an earlier good one, which would be stale."""
    target = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text("an earlier run")
    study.notebook("01_first", "print('got here')", cell, "print('not here')")
    message = error_of(run.run, "01_first", "quick", {})
    assert message.startswith(f"01_first-mrpc: {reason}")
    failed = study.folder / "results/quick/cache/failed/01_first-mrpc.ipynb"
    assert message.endswith(f"(executed so far: {failed})")
    assert study.files() == {"quick/cache/failed/01_first-mrpc.ipynb"}
    outputs = [output for c in nbformat.read(failed, as_version=4).cells for output in c.get("outputs", [])]
    assert "got here\n" in [output.get("text") for output in outputs]
    assert "error" in [output.output_type for output in outputs]


def test_kernel_that_dies(study: Study):
    """As when the system kills it for its memory."""
    study.notebook("01_first", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    message = error_of(run.run, "01_first", "quick", {})
    assert message.startswith("01_first-mrpc: Kernel died: is there enough memory?")
    assert study.files() == {"quick/cache/failed/01_first-mrpc.ipynb"}


def test_success_clears_the_failed_copy(study: Study):
    failed = study.folder / "results/quick/cache/failed/01_first-mrpc.ipynb"
    failed.parent.mkdir(parents=True)
    failed.write_text("of a run that was killed")
    execute(study, "print(n)")
    assert study.files() == {"quick/notebooks/01_first-mrpc.ipynb"}


def test_wrong_setting_leaves_the_earlier_copy(study: Study):
    target = study.folder / "results/quick/notebooks/01_first-mrpc.ipynb"
    target.parent.mkdir(parents=True)
    target.write_text("an earlier run")
    study.notebook("01_first")
    error_of(run.run, "01_first", "quick", {"m": 3})
    assert target.read_text() == "an earlier run"


# --- command line ----------------------------------------------------------------------------------------


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "analysis.run", *arguments],
        cwd=ROOT,
        env=os.environ | {"RESULTS_DIR": str(folder)},
        capture_output=True,
        text=True,
    )


WRONG = {
    "01_extract --profile absent": "error: unknown profile 'absent': choose from ",
    "05_absent --profile smoke": "error: unknown notebook '05_absent': choose from 00_finetune, ",
    "--profile smoke": "error: name a notebook: 00_finetune, ",
    "--rules --profile absent": "error: unknown profile 'absent': choose from ",
    "01_extract --profile smoke --set m=3": "error: 01_extract has no parameter 'm': choose from task, ",
    "01_extract --profile smoke --set n=abc": "error: 01_extract: parameter n is 'abc': give a number",
}


@pytest.mark.parametrize("arguments", WRONG)
def test_wrong_command(tmp_path: Path, monkeypatch, capsys, arguments: str):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    assert run.main(arguments.split()) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(WRONG[arguments])
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_wrong_command_in_a_shell(tmp_path: Path):
    done = command("01_extract", "--profile", "absent", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch("error: unknown profile 'absent': choose from .*smoke.*\n", done.stderr)


@pytest.mark.parametrize("setting", ["n", "n=[1", "n: 3"])
def test_setting_that_is_not_one(capsys, setting: str):
    with pytest.raises(SystemExit) as caught:
        run.main(["01_extract", "--set", setting])
    assert caught.value.code == 2
    assert f"error: argument --set: {setting!r}" in capsys.readouterr().err


def test_error_in_a_notebook_is_the_last_line(tmp_path: Path):
    """What the notebook itself refuses reaches the command line as one line, without a traceback."""
    done = command("01_extract", "--profile", "smoke", "--set", "task=nonsense", folder=tmp_path)
    failed = tmp_path / "smoke/cache/failed/01_extract-nonsense-pretrained.ipynb"
    assert done.returncode == 1
    assert "Traceback" not in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1] == (
        "error: 01_extract-nonsense-pretrained: task 'nonsense' is unknown; choose one of mrpc, qqp, sst-2, qnli "
        f"(executed so far: {failed})"
    )
    assert [line.startswith("error: ") for line in done.stderr.splitlines()].count(True) == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [failed]


def test_settings_are_read_as_yaml(study: Study, monkeypatch, capsys):
    seen = {}
    monkeypatch.setattr(run, "run", lambda notebook, profile, values: seen.update(values) or study.folder)
    study.notebook("01_first")
    options = [
        "--set",
        "n=3",
        "--set",
        "rate=0.5",
        "--set",
        "task=a=b",
        "--set",
        "words=[x, y]",
        "--set",
        "flag=true",
    ]
    assert run.main(["01_first", "--profile", "quick", *options]) == 0
    assert seen == {"n": 3, "rate": 0.5, "task": "a=b", "words": ["x", "y"], "flag": True}
    assert capsys.readouterr().out.strip() == os.path.relpath(study.folder)


# --- dependencies ----------------------------------------------------------------------------------------


OWN = re.compile(r"^\s*from (?:analysis\.|\.+)(\w+)|^\s*from (?:analysis|\.+) import (\w+)", re.MULTILINE)


def reachable(notebook: str) -> set[str]:
    """Oracle: the modules in the lines that import from the package, followed until none is new."""
    found, waiting = set(), [ROOT / "notebooks" / f"{notebook}.py"]
    while waiting:
        names = {name or other for name, other in OWN.findall(waiting.pop().read_text())}
        new = {name for name in names - found if run.module_file(name).exists()}
        for name in new:
            folder = run.PACKAGE / name
            waiting += folder.glob("*.py") if folder.is_dir() else [run.PACKAGE / f"{name}.py"]
        found |= new
    return found


@pytest.mark.parametrize("notebook", [path.stem for path in sorted((ROOT / "notebooks").glob("[0-9]*.py"))])
def test_modules_of_the_real_notebooks(notebook: str):
    assert run.imported_modules(run.source(notebook)) == reachable(notebook)


def test_indirect_imports():
    test, extract = (run.imported_modules(run.source(name)) for name in ("03_test", "01_extract"))
    assert {"significance", "roles", "store", "theme", "errors", "grids", "overlaps"} <= test
    assert {"models", "extract", "tap", "torch"} & test == set()
    assert {"extract", "tap", "sieves", "layout", "corpus", "examples"} <= extract
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
    assert expected in run.imported_modules(script)


@pytest.mark.parametrize(
    "statement", ["import os", "from analysis_of_tap import tap", "import analysis", "import tap"]
)
def test_imports_of_other_packages(tmp_path: Path, statement: str):
    script = tmp_path / "script.py"
    script.write_text(statement + "\n")
    assert run.imported_modules(script) == set()


def test_code_that_cannot_be_read(study: Study):
    study.notebook("01_first", "print('fine')", "def broken(:")
    line = (study.notebooks / "01_first.py").read_text().split("def broken")[0].count("\n") + 1
    message = error_of(run.imported_modules, run.source("01_first"))
    assert message == f"{study.notebooks}/01_first.py, line {line}: invalid syntax: correct the Python code"


@pytest.fixture
def rules(study: Study):
    """Writes the rules of a study with two notebooks and returns them line by line."""
    study.notebook("01_first", "from analysis import published", "from analysis.corpus import generate")
    study.notebook("03_test_all", parameters=PARAMETERS + 'tasks = ["mrpc"]\n')
    study.profile("quick", "common: {tasks: [sst-2, qnli]}")

    def written() -> dict[str, list[str]]:
        lines = run.write_rules("quick").read_text().splitlines()
        return {name: value.split() for name, value in (line.split(" := ") for line in lines)}

    return written


def test_rules(rules, study: Study):
    """Tasks, and for each notebook its script, its modules with their data, and its parameters."""
    found = rules()
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
    assert values == run.parameters("01_first", "quick")


def test_parameter_files_change_only_with_their_parameters(rules, study: Study):
    rules()
    folder = study.folder / "results/quick/cache/parameters"
    for path in folder.iterdir():
        os.utime(path, (1000, 1000))
    times = lambda: {path.stem: path.stat().st_mtime == 1000 for path in folder.iterdir()}  # noqa: E731
    study.profile("quick", "# a comment\ncommon: {tasks: [sst-2, qnli]}\n01_first:")
    rules()
    assert times() == {"01_first": True, "03_test_all": True}
    study.profile("quick", "common: {tasks: [sst-2, qnli]}\n01_first: {n: 4}")
    rules()
    assert times() == {"01_first": False, "03_test_all": True}


def test_rules_refuse_a_wrong_list_of_tasks(rules, study: Study):
    study.profile("quick", "common: {tasks: mrpc}")
    assert "parameter tasks is 'mrpc': give a list" in error_of(run.write_rules, "quick")
