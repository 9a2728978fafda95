"""One execution of a notebook: its name, its changed parameters, and how the notebook learns of them."""

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analysis.study.profiles import notebook_names, parameters

RUNS_PER = ("task", "state")  # a notebook with these parameters is executed once for each of their values
VARIABLE = "STUDY_RUN"  # the environment variable with the context of the run
LONGEST = 100  # characters of a folder's name


class Run(NamedTuple):
    """One execution of a notebook, with its values of RUNS_PER."""

    notebook: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The name of the executed copy: the notebook and its values."""
        return "-".join([self.notebook, *(value for _, value in self.settings)])


class Context(NamedTuple):
    """The notebook and the parameters of a run; `scratch` names its folder unless the run is the profile's own."""

    notebook: str
    parameters: Mapping[str, Any]
    scratch: str | None


def run_of(notebook: str, values: Mapping[str, Any]) -> Run:
    """The run of a notebook with these parameters."""
    return Run(notebook, tuple((key, values[key]) for key in RUNS_PER if key in values))


def changes(notebook: str, profile: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that differ from the profile's; those of RUNS_PER do not count."""
    own = parameters(notebook, profile)
    return {key: values[key] for key in own if key not in RUNS_PER and values[key] != own[key]}


def scratch_name(run: Run, changed: Mapping[str, Any]) -> str:
    """The name of the folder of a run with changed values, such as `03_test-mrpc-tau=2.5`."""
    name = "-".join([run.name, *(f"{key}={_plain(value)}" for key, value in changed.items())])
    kept = re.sub(r"[^\w.+=-]", "_", name)
    if kept == name and len(name) <= LONGEST:
        return name
    return f"{kept[:LONGEST]}-{hashlib.sha256(repr([run, changed]).encode()).hexdigest()[:8]}"


def _plain(value: Any) -> str:
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def context(profile: str) -> Context:
    """The run of this process: the one that `execution` announces, else a session in Jupyter or a script.

    In Jupyter the name of the session gives the notebook if the server tells it, and the parameters have the values of
    the variables in the kernel.
    """
    if VARIABLE in os.environ:
        return Context(**json.loads(os.environ[VARIABLE]))
    notebook = Path(os.environ.get("JPY_SESSION_NAME", "")).stem
    if notebook not in notebook_names():
        name = "jupyter" if in_jupyter() else "python"
        return Context(name, {"profile": profile}, name)
    names = vars(sys.modules["__main__"])
    values = {key: names.get(key, value) for key, value in parameters(notebook, profile).items()}
    changed = changes(notebook, profile, values)
    return Context(notebook, values, scratch_name(run_of(notebook, values), changed))


def announced(found: Context) -> dict[str, str]:
    """The environment variable that tells a notebook the context of its run."""
    return {VARIABLE: json.dumps(found._asdict())}


def in_jupyter() -> bool:
    """Whether this process is a kernel in which a person works."""
    interactive = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return VARIABLE not in os.environ and hasattr(interactive, "kernel")
