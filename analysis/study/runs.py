"""One execution of a notebook: its name, its folder, and how the notebook learns of both."""

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from analysis.errors import InputError
from analysis.study.folders import STATES
from analysis.study.profiles import declared, notebook_names, parameters
from analysis.texts.tasks import TASKS

# A notebook with these parameters is executed once for each of their values.
RUNS_PER = {"task": tuple(TASKS), "state": STATES}
VARIABLE = "STUDY_RUN"  # the environment variable with the run of a kernel
LONGEST = 100  # characters of a folder's name


class Run(NamedTuple):
    """The notebook and the parameters of a run; `scratch` names its folder unless the run is the profile's own.

    `stage` is the folder to which it writes until it ends.
    """

    notebook: str
    parameters: Mapping[str, Any]
    scratch: str | None = None
    stage: str | None = None

    @property
    def values(self) -> list[str]:
        """The task and the state of the run, if it has them."""
        return [str(self.parameters[key]) for key in RUNS_PER if key in self.parameters]

    @property
    def name(self) -> str:
        """The name of the executed copy, such as `01_extract-mrpc-finetuned`."""
        return "-".join([self.notebook, *self.values])


def parse_name(name: str) -> tuple[str, dict[str, str]]:
    """The notebook and the settings in the name of a run: `03_test-mrpc` has the task mrpc.

    Raises InputError for a name that no run has.
    """
    notebook, _, rest = name.partition("-")
    keys = [key for key in RUNS_PER if key in declared(notebook)]
    runs = {
        "-".join(values): dict(zip(keys, values, strict=True)) for values in product(*map(RUNS_PER.get, keys))
    }
    if rest and rest not in runs:
        names = [f"{notebook}-{run}" if run else notebook for run in runs]
        names = [known for known in names if known.startswith(f"{name}-")] or names
        raise InputError(f"there is no run {name}: choose from {', '.join(names)}")
    return notebook, runs[rest] if rest else {}


def run_of(notebook: str, values: Mapping[str, Any], keep: bool = False) -> Run:
    """The run of a notebook with these parameters; the profile's own if `keep` and all values are the profile's."""
    defaults = parameters(notebook, values["profile"])
    changed = {key: values[key] for key in defaults if key not in RUNS_PER and values[key] != defaults[key]}
    run = Run(notebook, values)
    return run if keep and not changed else run._replace(scratch=_scratch_name(run.name, changed))


def _scratch_name(run: str, changed: Mapping[str, Any]) -> str:
    """The folder of a run with changed values, such as `03_test-mrpc-tau=2.5`."""
    texts = {key: value if isinstance(value, list) else [value] for key, value in changed.items()}
    name = "-".join([run, *(f"{key}={'+'.join(map(str, values))}" for key, values in texts.items())])
    allowed = re.sub(r"[^\w.+=-]", "_", name)
    if allowed == name and len(name) <= LONGEST:
        return name
    return f"{allowed[:LONGEST]}-{hashlib.sha256(repr([run, changed]).encode()).hexdigest()[:8]}"


def current_run(profile: str) -> Run:
    """The run of this process: the one that `analysis.run` announces, else a session in Jupyter or a script.

    In Jupyter the name of the session gives the notebook if the server tells it, and the parameters have the values of
    the variables in the kernel.
    """
    if VARIABLE in os.environ:
        return Run(**json.loads(os.environ[VARIABLE]))
    notebook = Path(os.environ.get("JPY_SESSION_NAME", "")).stem
    if notebook not in notebook_names():
        name = "jupyter" if in_jupyter() else "python"
        return Run(name, {"profile": profile}, name)
    names = vars(sys.modules["__main__"])
    defaults = parameters(notebook, profile)
    return run_of(
        notebook, {key: names.get(key, value) for key, value in defaults.items()} | {"profile": profile}
    )


def in_jupyter() -> bool:
    """Whether this process is a kernel in which a person works."""
    interactive = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return VARIABLE not in os.environ and hasattr(interactive, "kernel")
