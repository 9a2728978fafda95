"""Executed copies: folded set-up, alternative texts, links, prose brought up to date; working copies for JupyterLab."""

import re

import nbformat
import pytest
from consistency import cells_with_extra_pictures, dead_links
from studies import Study, error_of

from analysis.run import run
from analysis.study.copies import described, linked, refresh, update_workbook


def test_a_picture_without_a_caption_has_the_heading_above_as_alternative_text():
    picture = nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="})
    captioned = nbformat.from_dict(picture | {"metadata": {"image/png": {"alt": "Darker is more."}}})
    cells = [nbformat.v4.new_markdown_cell("## Layers?\n\nHeads by layer.")]
    cells += [nbformat.v4.new_code_cell("draw()", outputs=[output]) for output in (captioned, picture)]
    described(notebook := nbformat.v4.new_notebook(cells=cells))
    texts = [cell.outputs[0].metadata["image/png"]["alt"] for cell in notebook.cells[1:]]
    assert texts == ["Darker is more.", "Layers?"]


def test_a_cell_that_shows_more_pictures_than_it_saves_is_found(tmp_path):
    """An empty figure that stays open is shown as well."""
    picture = nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="})
    saved = 'figure = theme.empty("none")\nresults.save_figure(figure, "F1")'
    cells = [nbformat.v4.new_code_cell(saved, outputs=[picture] * count) for count in (0, 1, 2)]
    (tmp_path / "notebooks").mkdir()
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "notebooks" / "06_a.ipynb")
    assert cells_with_extra_pictures(tmp_path) == ["06_a [2]"]


ORDER = ["01_first-mrpc", "02_second", "99_last"]


@pytest.mark.parametrize(
    ("name", "links"),
    [("01_first-mrpc", ["../README.md", "02_second.ipynb"]),
     ("02_second", ["01_first-mrpc.ipynb", "../README.md", "99_last.ipynb"]),
     ("99_last", ["02_second.ipynb", "../README.md"])],
)  # fmt: skip
def test_links_to_the_neighbours(name: str, links: list[str]):
    cells = linked(nbformat.v4.new_notebook(), name, ORDER, 12.3).cells
    for cell in cells:  # above and below
        assert re.findall(r"\]\((.*?)\)", cell.source) == links
    assert cells[0].source.endswith("a run without its cache takes 12 CPU seconds")
    above = linked(nbformat.v4.new_notebook(), name, ORDER, 12.3, "Made up.").cells[0].source
    assert above.split("\n\n") == [cells[0].source, "Made up."]
    assert not linked(nbformat.v4.new_notebook(), name, [], 0).cells  # outside of the profile


def test_links_lead_to_the_copies_that_there_are(tmp_path):
    """Those of a task, where a notebook runs once for each; without one the text stays."""
    text = "[roles](01_first.ipynb), [sums](02_second.ipynb), [more](03_third.ipynb), [page](https://a.b/01_first.ipynb)"
    cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell(f"# {text}")]
    notebook = linked(nbformat.v4.new_notebook(cells=cells), "99_last", ORDER, 1)
    page = "[page](https://a.b/01_first.ipynb)"
    assert notebook.cells[1].source == f"[roles](01_first-mrpc.ipynb), [sums](02_second.ipynb), more, {page}"
    assert notebook.cells[2].source == f"# {text}"
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").touch()
    nbformat.write(notebook, tmp_path / "notebooks/99_last.ipynb")
    assert dead_links(tmp_path) == {"99_last: 01_first-mrpc.ipynb", "99_last: 02_second.ipynb"}


def test_prose_is_rewritten_and_nothing_else(study: Study, monkeypatch):
    """A text more or less makes no difference; code and outputs stay, and code that has changed is named."""
    monkeypatch.setenv("STUDY_RUNS", "01_first-mrpc 02_second")
    script = "1 + 1\n\n# %% [markdown]\n# ## Two\n\n# %%\nprint(n)"
    study.notebook("01_first", script)
    path = run("01_first", "quick", {}, keep=True)
    executed = path.read_bytes()
    refresh("quick")
    assert path.read_bytes() == executed
    study.notebook("01_first", f"{script.replace('Two', 'Three')}\n\n# %% [markdown]\n# The end")
    refresh("quick")
    copy, before = nbformat.read(path, as_version=4), nbformat.reads(executed.decode(), as_version=4)
    prose = [cell.source for cell in copy.cells if cell.cell_type == "markdown"]
    above, below = before.cells[0].source, before.cells[-1].source
    assert prose == [above, "# A notebook", "## Three", "The end", below]
    code, code_before = ([c for c in item.cells if c.cell_type == "code"] for item in (copy, before))
    assert [(c.source, c.outputs) for c in code] == [(c.source, c.outputs) for c in code_before]
    refreshed = path.read_bytes()
    study.notebook("01_first", "1 + 2")
    message = error_of(refresh, "quick")
    assert message.startswith("the code of 01_first-mrpc differs from notebooks/: run make reprod")
    assert path.read_bytes() == refreshed


def test_a_copy_follows_its_script_until_it_is_changed(study: Study, capsys):
    folder = study.folder / "workbook"
    path = folder / "01_first.ipynb"
    study.notebook("01_first", "1 + 1")
    update_workbook(folder)
    copy = nbformat.read(path, as_version=4)
    assert copy.cells[-1].source == "1 + 1"
    assert copy.metadata.kernelspec.name == "python3"
    copy.cells[-1].outputs = [nbformat.v4.new_output("stream", text="2")]  # a run alone is no change
    nbformat.write(copy, path)
    executed = path.read_bytes()
    update_workbook(folder)
    assert path.read_bytes() == executed
    study.notebook("01_first", "1 + 2")
    update_workbook(folder)
    copy = nbformat.read(path, as_version=4)
    assert copy.cells[-1].source == "1 + 2"
    copy.cells[-1].source = "1 + 3"
    nbformat.write(copy, path)
    changed = path.read_bytes()
    update_workbook(folder)
    assert capsys.readouterr().out == ""
    study.notebook("01_first", "1 + 4")
    update_workbook(folder)
    assert path.read_bytes() == changed
    line = "workbook/01_first.ipynb stays as you changed it, and its script is newer"
    assert capsys.readouterr().out.startswith(line)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"nbformat": 4, "cells": [{}]}'])
def test_a_damaged_copy_is_named_and_left_and_the_others_are_made(study: Study, capsys, text: str):
    folder = study.folder / "workbook"
    for name in ("01_first", "02_second"):
        study.notebook(name, "1 + 1")
    folder.mkdir()
    (folder / "01_first.ipynb").write_text(text)
    update_workbook(folder)
    line = capsys.readouterr().out
    assert line.startswith("workbook/01_first.ipynb is no notebook (")
    assert line.endswith(") and stays: delete it for a new copy\n")
    assert (folder / "01_first.ipynb").read_text() == text
    assert (folder / "02_second.ipynb").exists()


def test_where_there_is_nothing_to_copy_or_to_rewrite_this_is_said(study: Study, capsys):
    assert "has no notebooks: " in error_of(update_workbook, study.folder / "workbook")
    assert "has no executed copies: run make reproduce PROFILE=quick" in error_of(refresh, "quick")
    study.notebook("01_first")
    (study.folder / "workbook").touch()
    assert "workbook is a file, where a folder is needed" in error_of(
        update_workbook, study.folder / "workbook"
    )
    run("01_first", "quick", {}, keep=True)
    capsys.readouterr()
    refresh("quick")
    assert capsys.readouterr().out.startswith("the prose of all 1 copies in ")
