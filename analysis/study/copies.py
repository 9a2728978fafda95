"""Executed copies of notebooks: set-up folded, small pictures, links, and the same bytes for every run."""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.figures.pictures import in_palette

PARAMETERS = "parameters"  # the tag of the cell
TEXTS = {"text/html", "text/plain"}
# Random names: those that pandas gives to styled tables, and addresses of objects.
RANDOM = re.compile(r"(?<=\bT_)[0-9a-f]{5}(?=_|\b)|(?<= at )0x[0-9a-f]+")
# A heading and the first sentence below it.
SECTION = re.compile(r"^#+ +(.+)\n*((?:[^.#][^.]*\.)?)", re.MULTILINE)
# For JupyterLab, Jupyter Book, and nbconvert with nbviewer. The output of folded code stays visible.
FOLDED = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"], "transient": {"remove_source": True}}


def prepared(notebook):
    """A notebook with the set-up cell below its parameters folded."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    place = next(number for number, cell in enumerate(code) if PARAMETERS in cell.metadata.get("tags", []))
    for cell in code[place + 1 : place + 2]:
        cell.metadata.update(FOLDED)
    return notebook


def cleaned(notebook):
    """The executed notebook with described pictures, without times, random names and progress bars.

    Two copies with the same results are equal.
    """
    notebook.metadata.pop("papermill", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_noise(output)]
            for data in (output.data for output in cell.outputs if "data" in output):
                data |= {kind: RANDOM.sub(str(number), data[kind]) for kind in TEXTS & data.keys()}
                if "image/png" in data:
                    data["image/png"] = b64encode(in_palette(b64decode(data["image/png"]))).decode()
    described(notebook)
    return notebook


def described(notebook) -> None:
    """Gives every picture its alternative text: the heading above it and the first sentence below the heading."""
    text = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for title, sentence in SECTION.findall("".join(cell.source)):
                title = title.strip("* ")
                text = f"{title}{'' if title.endswith('?') else '.'} {' '.join(sentence.split())}".strip()
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.setdefault("metadata", {}).setdefault("image/png", {})["alt"] = text


def linked(notebook, name: str, order: Sequence[str]):
    """The notebook with a last cell that links to the previous one in `order`, the index and the next one."""
    import nbformat

    if name in order:
        place = order.index(name)
        before = [f"[← {other}]({other}.ipynb)" for other in order[max(place - 1, 0) : place]]
        after = [f"[{other} →]({other}.ipynb)" for other in order[place + 1 : place + 2]]
        cell = nbformat.v4.new_markdown_cell(" · ".join([*before, "[index](../README.md)", *after]))
        cell.id = "links"
        notebook.cells.append(cell)
    return notebook


def _is_noise(output: Mapping[str, Any]) -> bool:
    """Whether an output is a warning, a progress bar (also that of the trainer), or a path."""
    data = output.get("data", {})
    path = data.get("text/plain", "").startswith(("PosixPath(", "WindowsPath("))
    return path or output.get("name") == "stderr" or "<progress" in data.get("text/html", "")
