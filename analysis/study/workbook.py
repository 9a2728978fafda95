"""Working copies for JupyterLab: `python -m analysis.study.workbook` makes workbook/<notebook>.ipynb from each script.

JupyterLab saves what a reader changes, and a saved script would be the study of the next `make reproduce`. A copy that
nobody has changed follows its script; one that somebody has changed stays as it is.
"""

import hashlib
import json
import sys
from pathlib import Path

import jupytext
import nbformat

from analysis.errors import exit_status
from analysis.files import ROOT, write_text
from analysis.study import profiles

WORKBOOK = ROOT / "workbook"


def digest_of(notebook: nbformat.NotebookNode) -> str:
    """A digest of the cells of a notebook, without their outputs."""
    cells = [(cell.cell_type, cell.source) for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def update(folder: Path = WORKBOOK) -> None:
    """Makes the missing copies, and those of changed scripts again; prints which changed copies stay."""
    for name in profiles.notebook_names():
        path = folder / f"{name}.ipynb"
        notebook = jupytext.read(profiles.source(name))
        original = digest_of(notebook)
        if path.exists():
            copy = nbformat.read(path, as_version=4)
            made_from = copy.metadata.get("study", {}).get("script")
            if made_from == original:
                continue
            if digest_of(copy) != made_from:
                place = path.relative_to(folder.parent)
                print(f"{place} stays as you changed it, and its script is newer: delete it for a new copy")
                continue
        notebook.metadata["study"] = {"script": original}
        write_text(path, nbformat.writes(notebook))


if __name__ == "__main__":
    sys.exit(exit_status(update))
