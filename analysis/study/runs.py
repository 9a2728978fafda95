"""One execution of a notebook: its name, its parameters, and how the kernel learns of both."""

import json
import os
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from analysis.errors import InputError
from analysis.study.folders import STATES
from analysis.study.profiles import declared
from analysis.texts.tasks import TASKS

# A notebook with these parameters is executed once for each of their values.
RUNS_PER = {"task": tuple(TASKS), "state": STATES}
MACHINE_ROOM = ("00_finetune", "01_extract", "08_attribution")  # executed copies that git ignores
VARIABLE = "STUDY_RUN"  # the environment variable with the run of a kernel


class Run(NamedTuple):
    """The notebook and the parameters of a run; `scratch` names its folder unless the run is the profile's own.

    `stage` is the folder to which it writes until it ends.
    """

    notebook: str
    parameters: Mapping[str, Any]
    scratch: str | None = None
    stage: str | None = None

    @property
    def title(self) -> str:
        """The notebook, and the task and the state of the run if it has them: `01_extract mrpc finetuned`."""
        values = [self.parameters[key] for key in RUNS_PER if key in self.parameters]
        return " ".join([self.notebook, *values])

    @property
    def name(self) -> str:
        """The name of the executed copy, such as `01_extract-mrpc-finetuned`."""
        return self.title.replace(" ", "-")


def parse_name(name: str) -> tuple[str, dict[str, str]]:
    """The notebook and the parameters in the name of a run: `03_test-mrpc` has the task mrpc.

    Raises InputError for a name that no run has.
    """
    notebook = name.partition("-")[0]
    keys = [key for key in RUNS_PER if key in declared(notebook)]
    choices = product(*(RUNS_PER[key] for key in keys))
    runs = {"-".join([notebook, *values]): dict(zip(keys, values, strict=True)) for values in choices}
    if name not in (notebook, *runs):
        raise InputError(f"there is no run {name}: choose from {', '.join(runs)}")
    return notebook, runs.get(name, {})


def current_run(profile: str) -> Run:
    """The run that `analysis.run` announces to its kernel; elsewhere one named after the notebook open in Jupyter."""
    if VARIABLE in os.environ:
        return Run(**json.loads(os.environ[VARIABLE]))
    session = Path(os.environ.get("JPY_SESSION_NAME", "python")).stem
    return Run(session, {"profile": profile}, scratch=session)
