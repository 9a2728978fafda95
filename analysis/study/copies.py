"""Executed copies of notebooks: set-up folded, small pictures, links, and the same bytes for every run."""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.figures.pictures import in_palette
from analysis.figures.words import FINDING
from analysis.statistics.judge import VERDICTS

PARAMETERS = "parameters"  # the tag of the cell
SHOWN = {"text/html", "text/plain"}
# Random names: those that pandas gives to styled tables, and addresses of objects.
CHANCE = re.compile(r"(?<=\bT_)[0-9a-f]{5}(?=_|\b)|(?<= at )0x[0-9a-f]+")
# A heading and the first sentence below it.
SECTION = re.compile(r"^#+ +(.+)\n*((?:[^.#][^.]*\.)?)", re.MULTILINE)
# The verdict in the last cell of a row of a table of claims.
VERDICT = re.compile(rf"\| ({'|'.join(VERDICTS)})[^|\n]* \|$", re.MULTILINE)
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
    """The executed notebook with small pictures that have alternative texts, without times, chance and progress bars.

    Two copies with the same results are equal.
    """
    notebook.metadata.pop("papermill", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not _is_noise(output)]
            for shown in (output.data for output in cell.outputs if "data" in output):
                shown |= {kind: CHANCE.sub(str(number), shown[kind]) for kind in SHOWN & shown.keys()}
                if "image/png" in shown:
                    shown["image/png"] = b64encode(in_palette(b64decode(shown["image/png"]))).decode()
    described(notebook)
    return notebook


def described(notebook) -> None:
    """Gives every picture its alternative text: the heading above it, and the finding below it.

    A table with verdicts is a finding too: how many of each. Without a finding before the next heading, the alternative
    text is the first sentence below the heading.
    """
    heading, sentence, waiting = "", "", []
    for cell in notebook.cells:
        text = "".join(cell.source)
        if cell.cell_type == "markdown":
            for title, below in SECTION.findall(text):
                heading, sentence, waiting = title.strip("* "), " ".join(below.split()), []
            continue
        for output in cell.get("outputs", []):
            shown = output.get("data", {})
            if "image/png" in shown:
                place = output.setdefault("metadata", {}).setdefault("image/png", {})
                place["alt"] = _sentences(heading, sentence)
                waiting.append((place, heading))
            said = "".join(shown.get("text/markdown", ""))
            if verdicts := VERDICT.findall(said):
                told = (f"{verdict} {verdicts.count(verdict)}" for verdict in VERDICTS if verdict in verdicts)
                said = f"{FINDING}{', '.join(told)}."
            if waiting and said.startswith(FINDING):
                for place, title in waiting:
                    place["alt"] = _sentences(title, said.removeprefix(FINDING))
                waiting = []


def _sentences(title: str, text: str) -> str:
    """A title and what is said of it, as sentences."""
    return f"{title}{'' if title.endswith('?') else '.'} {text}".strip()


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
    shown = output.get("data", {}).get("text/plain", "")
    bar = "<progress" in output.get("data", {}).get("text/html", "")
    return bar or output.get("name") == "stderr" or shown.startswith(("PosixPath(", "WindowsPath("))
