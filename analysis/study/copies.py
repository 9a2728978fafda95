"""Copies of notebooks: executed ones, with the same bytes for every run, and those that a reader may change."""

import hashlib
import json
import re
import sys
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from analysis.errors import InputError, exit_status
from analysis.figures.pictures import in_palette
from analysis.files import ROOT, write_text
from analysis.study.parameters import notebook_names, source
from analysis.study.profiles import command
from analysis.study.runs import NOTEBOOKS, Folders, short

INJECTED = "injected-parameters"  # the tag of the cell with papermill's parameters
LINK = re.compile(r"\[([^\[\]]+)\]\(([0-9]\w+)\.ipynb\)")  # to another notebook
LINKS = ("links-above", "links-below")  # ids of the first and the last cell
TEXTS = {"text/html", "text/plain"}
# Random names: those that pandas gives to styled tables, and addresses of objects.
RANDOM = re.compile(r"(?<=\bT_)[0-9a-f]{5}(?=_|\b)|(?<= at )0x[0-9a-f]+")
HEADING = re.compile(r"^#+ +(.+)", re.MULTILINE)
WORKBOOK = ROOT / "workbook"
# For JupyterLab, Jupyter Book, and nbconvert with nbviewer. The output of folded code stays visible.
FOLDED = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"], "transient": {"remove_source": True}}


def prepared(notebook):
    """A notebook with its second code cell, the set-up below the parameters, folded."""
    for cell in [cell for cell in notebook.cells if cell.cell_type == "code"][1:2]:
        cell.metadata.update(FOLDED)
    return notebook


def cleaned(notebook):
    """The executed notebook with described pictures, without times, random names, warnings, progress bars and paths."""
    notebook.metadata.pop("papermill", None)
    for number, cell in enumerate(notebook.cells):
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
    """Numbers cells, and gives pictures without a caption the heading above as their alternative text."""
    text = ""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        if cell.cell_type == "markdown":
            text = (HEADING.findall(cell.source) or [text])[-1]
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.metadata.setdefault("image/png", {}).setdefault("alt", text)


def with_links(notebook, runs: Collection[str]):
    """The notebook with links to the executed copies of `runs`; where there is none, the text stays without a link.

    In a script a link names the notebook, whose copies are named after their tasks too: `03_test-mrpc.ipynb`.
    """

    def to_copy(link: re.Match) -> str:
        copies = [run for run in runs if run == link[2] or run.startswith(f"{link[2]}-")]
        return f"[{link[1]}]({copies[0]}.ipynb)" if copies else link[1]

    for cell in notebook.cells if runs else ():
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(to_copy, cell.source)
    return notebook


def linked(notebook, name: str, order: Sequence[str], cpu_seconds: float, note: str = ""):
    """The notebook between links to the previous one in `order`, the index and the next; above, its cost and a note."""
    with_links(notebook, order)
    if name in order:
        place = order.index(name)
        before = [f"[← {other}]({other}.ipynb)" for other in order[max(place - 1, 0) : place]]
        after = [f"[{other} →]({other}.ipynb)" for other in order[place + 1 : place + 2]]
        links = " · ".join([*before, "[index](../README.md)", *after])
        cost = f"a run without its cache takes {cpu_seconds:.0f} CPU seconds"
        above = nbformat.v4.new_markdown_cell(
            "\n\n".join(filter(None, [f"{links} · {cost}", note])), id=LINKS[0]
        )
        below = nbformat.v4.new_markdown_cell(links, id=LINKS[1])
        notebook.cells = [above, *notebook.cells, below]
    return notebook


def _is_noise(output: Mapping[str, Any]) -> bool:
    """Whether an output is a warning, a progress bar (also that of the trainer), or a path."""
    data = output.get("data", {})
    path = data.get("text/plain", "").startswith(("PosixPath(", "WindowsPath("))
    return path or output.get("name") == "stderr" or "<progress" in data.get("text/html", "")


def refresh(profile: str) -> None:
    """Rewrites the prose of a profile's executed copies from notebooks/, without running anything.

    Raises InputError that names the copies whose code differs from their scripts, which are left alone; and if there
    are no copies.
    """
    folder, changed_code = Folders(profile).notebooks, []
    paths = sorted(folder.glob("*.ipynb"))
    if not paths:
        raise InputError(f"{short(folder)} has no executed copies: run make reproduce PROFILE={profile}")
    for path in paths:
        copy = nbformat.read(path, as_version=4)
        script = jupytext.read(source(path.stem.partition("-")[0]))
        if code_of(copy) != code_of(script):
            changed_code.append(path.stem)
            continue
        script = with_links(script, [path.stem for path in paths])
        text = nbformat.writes(with_prose(copy, script)) + "\n"
        if text != path.read_text(encoding="utf-8"):
            write_text(path, text)
            print(f"{short(path)}: prose rewritten")
    if changed_code:
        names = ", ".join(changed_code)
        raise InputError(f"the code of {names} differs from notebooks/: run make reproduce PROFILE={profile}")
    print(f"the prose of all {len(paths)} copies in {short(folder)} is that of notebooks/")


def code_of(notebook) -> list[str]:
    """The code cells of a notebook, without the one of papermill's parameters."""
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    return [cell.source for cell in cells if INJECTED not in cell.metadata.get("tags", [])]


def with_prose(copy, script):
    """An executed copy with the prose of its script around its code."""
    executed = [cell for cell in copy.cells if cell.cell_type == "code"]
    links = [cell for cell in copy.cells if cell.get("id") in LINKS]
    copy.cells = []
    for cell in script.cells:
        if cell.cell_type == "markdown":
            prose = nbformat.v4.new_markdown_cell(cell.source, metadata={"tags": [], **cell.metadata})
            copy.cells.append(prose)
            continue
        copy.cells.append(executed.pop(0))
        if executed and INJECTED in executed[0].metadata.get("tags", []):
            copy.cells.append(executed.pop(0))
    described(copy)
    copy.cells = [*links[:1], *copy.cells, *links[1:]]
    return copy


def digest_of(notebook) -> str:
    """A digest of the cells of a notebook, without their outputs."""
    cells = [(cell.cell_type, cell.source) for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def update_workbook(folder: Path = WORKBOOK) -> None:
    """Makes the missing working copies, and those of changed scripts again; prints which others stay.

    Raises InputError if there are no notebooks.
    """
    if not notebook_names():
        raise InputError(
            f"{short(NOTEBOOKS)} has no notebooks: run make notebook in a clone of the repository"
        )
    for name in notebook_names():
        path, notebook = folder / f"{name}.ipynb", jupytext.read(source(name))
        original = digest_of(notebook)
        if path.exists():
            place = path.relative_to(folder.parent)
            try:
                copy = nbformat.read(path, as_version=4)
                made_from, present = copy.metadata.get("study", {}).get("script"), digest_of(copy)
            except Exception as error:  # of any type: of JSON, of nbformat, of a field that is missing
                reason = " ".join(str(error).split())[:80] or type(error).__name__
                print(f"{place} is no notebook ({reason}) and stays: delete it for a new copy")
                continue
            if made_from == original:
                continue
            if present != made_from:
                print(f"{place} stays as you changed it, and its script is newer: delete it for a new copy")
                continue
        notebook.metadata["study"] = {"script": original}
        write_text(path, nbformat.writes(notebook))


if __name__ == "__main__":
    if "--workbook" in sys.argv:
        sys.exit(exit_status(update_workbook))
    command(refresh)
