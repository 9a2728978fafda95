"""Notebooks that a reader runs in Jupyter: which notebook the open file is a copy of, and the folder of its results."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from analysis.study.parameters import check_values, declared, notebook_names, parse_name, source
from analysis.study.provenance import print_older_runs
from analysis.study.runs import Run


def session_run(profile: str) -> Run:
    """The run of the open file, with checked parameters and a folder named after the file and the task.

    Which notebook the file is a copy of is seen from its code, not from its name.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    variables = shell.user_ns if shell else {}
    path = os.environ.get("JPY_SESSION_NAME") or variables.get("__vsc_ipynb_file__")
    cells = _code_in(Path(path)) if path else []
    notebook = _script_of([*cells, *variables.get("In", [])])
    if path and not cells and notebook is None:  # the file lies elsewhere
        notebook = Path(path).stem.partition("-")[0]
    name = Path(path).stem if path else notebook or "python"
    if path and not Path(path).exists():
        print(f"{Path(path).name} is not there any more: if you renamed it, restart the kernel")
    if notebook not in notebook_names():
        return Run(name, {"profile": profile}, scratch=name)
    values = {key: variables.get(key, default) for key, default in declared(notebook).items()}
    check_values(notebook, values)
    run = Run(notebook, values | {"profile": profile})
    parse_name(run.name)  # raises for a task that is unknown
    print_older_runs(run.name, profile)
    return run._replace(scratch=name if name.startswith(run.name) else name + run.name.removeprefix(notebook))


def _code_in(path: Path) -> list[str]:
    """The code cells of a notebook or a script; none if the file is not there or damaged."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".ipynb":
            return text.split("\n# %%")
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    except (OSError, ValueError, LookupError, TypeError):
        return []


def _script_of(cells: Sequence[str]) -> str | None:
    """The notebook whose script holds most of the text of cells; None if none holds half of it."""
    cells = [cell for cell in cells if len(cell) > 100]  # a short one could be of any notebook
    sizes = {None: sum(map(len, cells)) // 2}
    for name in notebook_names() if cells else ():
        text = source(name).read_text(encoding="utf-8")
        sizes[name] = sum(len(cell) for cell in cells if cell in text)
    return max(sizes, key=sizes.__getitem__)
