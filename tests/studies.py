"""Small studies for tests: a folder that the runner treats as its own, and a copy in which Make works."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from analysis.errors import InputError
from analysis.files import ROOT
from analysis.study import parameters, profiles, runs
from analysis.study.results import UNITS

HOUR = 3600  # seconds: limits only end a hang, and no slow machine or load may reach one
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
profile: str = "quick"
task: str = "mrpc"  # with a comment
n: int = 3
rate: float = 1e-4
flag: bool = False
checkpoint: str | None = None
words: list[str] = ["a", "b"]
"""


def write_notebook(path: Path, *cells: str, parameters: str) -> None:
    """Writes a notebook of these cells below the one with its parameters."""
    text = HEADER + parameters + "".join(f"\n# %%\n{cell}\n" for cell in cells)
    path.write_text(text, encoding="utf-8")


def shell_script(path: Path, text: str) -> Path:
    """A program, often in the place of Python."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


class Study:
    """A folder of notebooks and one of profiles that the runner takes for its own."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder, self.notebooks, self.profiles = folder, folder / "notebooks", folder / "profiles"
        for module, name, path in (
            (runs, "NOTEBOOKS", self.notebooks),
            (profiles, "PROFILES", self.profiles),
        ):
            path.mkdir()
            monkeypatch.setattr(module, name, path)
        monkeypatch.setenv("RESULTS_DIR", str(folder / "results"))
        self.profile("quick", "common:\n  n: 5\n")

    def notebook(self, name: str, *cells: str, parameters: str = PARAMETERS) -> None:
        write_notebook(self.notebooks / f"{name}.py", *cells, parameters=parameters)

    def profile(self, name: str, text: str) -> Path:
        path = self.profiles / f"{name}.yaml"
        path.write_text(text)
        return path

    def files(self) -> set[str]:
        results = self.folder / "results"
        return {str(path.relative_to(results)) for path in results.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class Tree:
    """A copy of the parts of the study, in which Make works, and the folder with its results."""

    repository: Path
    results: Path
    profile: str = "smoke"
    python: str = sys.executable

    @classmethod
    def new(cls, folder: Path, *parts: str, **fields) -> "Tree":
        """A copy of the parts of the checkout that are named, beside the package and the Makefile.

        Their compiled files come along: a fresh copy would take seconds to make them again.
        """
        for name in ("analysis", "data", "docs", *parts):
            unfinished = shutil.ignore_patterns("*.pyc.*", "*.tmp.*")  # another process is writing them
            shutil.copytree(ROOT / name, folder / "repository" / name, ignore=unfinished)
        for name in ("Makefile", "pyproject.toml", "requirements.lock"):
            shutil.copy2(ROOT / name, folder / "repository")
        return cls(folder / "repository", folder / "results", **fields)

    def copied(self, folder: Path) -> "Tree":
        """This study in another place, for a test that damages it: links to its files, and copies of its results."""
        shutil.copytree(self.repository, folder / "repository", copy_function=os.link)
        if self.results.exists():
            shutil.copytree(self.results, folder / "results")
        return Tree(folder / "repository", folder / "results", self.profile, self.python)

    @property
    def folder(self) -> Path:
        return self.results / self.profile

    def start(self, *arguments: str, profile: str | None = None) -> subprocess.Popen:
        """Make at work, in a process group of its own."""
        values = {"PROFILE": profile or self.profile, "PYTHON": self.python, "RESULTS_DIR": self.results}
        variables = [f"{name}={value}" for name, value in values.items()]
        # An outer `make test` would pass its options and its jobs down; PYTHONPATH would name another package.
        left_out = ("MAKE", "MFLAGS", "PYTHONPATH")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        return subprocess.Popen(
            ["make", *arguments, *variables],
            cwd=self.repository, env=environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def make(self, *arguments: str, profile: str | None = None) -> subprocess.CompletedProcess:
        """One call of Make that has ended."""
        running = self.start(*arguments, profile=profile)
        try:
            out, err = running.communicate(timeout=HOUR)
        finally:
            if running.returncode is None:
                os.killpg(running.pid, signal.SIGKILL)
        return subprocess.CompletedProcess(running.args, running.returncode, out, err)

    def would_run(self, *arguments: str) -> set[str]:
        return started(self.make("-n", *arguments, "study"))


def started(done: subprocess.CompletedProcess) -> set[str]:
    """The runs that Make started, by what they say, or would start under -n; named like their executed copies."""
    names = re.findall(r"^(\d\S+) started$|analysis.run (\S+) .*--keep", done.stdout, re.MULTILINE)
    return {said or planned for said, planned in names}


def runs_of(profile: str) -> list[str]:
    """The runs of a profile, in reading order, as the Makefile lists them."""
    with TemporaryDirectory() as folder:
        names = ("PATH", "HOME")
        done = subprocess.run(
            ["make", "--no-print-directory", "runs", f"PROFILE={profile}", f"PYTHON={sys.executable}",
             f"RESULTS_DIR={folder}"],
            cwd=ROOT, env={name: os.environ[name] for name in names}, capture_output=True, text=True, check=True,
        )  # fmt: skip
    return done.stdout.split()


def saved(notebook: str, kind: str) -> tuple[set[str], set[str]]:
    """The names of the tables or figures that a notebook always saves, and of those that it saves under a condition.

    `*` stands where a name is filled in.
    """
    tree = ast.parse(parameters.source(notebook).read_text(encoding="utf-8"))
    conditional = {inner for node in ast.walk(tree) if isinstance(node, ast.If) for inner in ast.walk(node)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    saving_calls = [node for node in calls if ast.unparse(node.func) == f"results.save_{kind}"]
    names = {node: ast.unparse(node.args[1]).removeprefix("f").strip("\"'") for node in saving_calls}
    plain = {node: re.sub(r"\{\w+\}", "*", name) for node, name in names.items()}
    always = {plain[node] for node in saving_calls if node not in conditional}
    if kind == "table" and any(ast.unparse(node.func) == "results.save_claim" for node in calls):
        always.add(UNITS + notebook)
    return always, {*plain.values()} - always


def values_of(copy) -> dict[str, Any]:
    """The parameters of an executed copy: the defaults, and the values that papermill has set."""
    tagged = ("parameters", "injected-parameters")
    cells = (cell.source for cell in copy.cells if {*tagged} & {*cell.metadata.get("tags", [])})
    statements = ast.parse("\n".join(cells)).body
    targets = [s.target if isinstance(s, ast.AnnAssign) else s.targets[0] for s in statements]
    return {target.id: ast.literal_eval(s.value) for target, s in zip(targets, statements, strict=True)}


def error_of(function, *arguments, **options) -> str:
    """The message of the InputError that a call raises, checked to be one line."""
    with pytest.raises(InputError) as caught:
        function(*arguments, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message
