"""Executed copies: folded set-up, alternative texts, links to the neighbours."""

import re

import nbformat
import pytest
from nbconvert import HTMLExporter

from analysis.files import ROOT
from analysis.study.copies import described, linked, prepared


def test_set_up_is_folded_in_a_web_page():
    """What the cell printed stays."""
    cells = [nbformat.v4.new_code_cell(text) for text in ("n = 1", "import numpy")]
    cells[0].metadata["tags"] = ["parameters"]
    cells[1].outputs = [nbformat.v4.new_output("stream", name="stdout", text="300 sequences")]
    page, _ = HTMLExporter().from_notebook_node(prepared(nbformat.v4.new_notebook(cells=cells)))
    text = page[page.index("<main") :]
    assert "numpy" not in text
    assert "300 sequences" in text


def test_a_picture_has_an_alternative_text():
    """The heading above it and the first sentence below the heading, also in a web page."""
    picture = nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="})
    headings = [
        "Prose.\n\n## F1. Heads\n\nWhich heads do?\nAll. More.",
        "## F2. Layers?\n\nHeads by\nlayer. More.",
    ]
    notebook = nbformat.v4.new_notebook()
    for text in headings:
        notebook.cells.append(nbformat.v4.new_markdown_cell(text))
        notebook.cells.append(nbformat.v4.new_code_cell("1", outputs=[nbformat.from_dict(picture)]))
    described(notebook)
    texts = [notebook.cells[place].outputs[0].metadata["image/png"]["alt"] for place in (1, 3)]
    assert texts == ["F1. Heads. Which heads do? All.", "F2. Layers? Heads by layer."]
    pages = HTMLExporter(extra_template_basedirs=[str(ROOT / "tools")], template_name="report")
    assert f'alt="{texts[1]}"' in pages.from_notebook_node(notebook)[0]


ORDER = ["01_first-mrpc", "02_second", "99_last"]


@pytest.mark.parametrize(
    ("name", "links"),
    [("01_first-mrpc", ["../README.md", "02_second.ipynb"]),
     ("02_second", ["01_first-mrpc.ipynb", "../README.md", "99_last.ipynb"]),
     ("99_last", ["02_second.ipynb", "../README.md"])],
)  # fmt: skip
def test_links_to_the_neighbours(name: str, links: list[str]):
    notebook = linked(nbformat.v4.new_notebook(), name, ORDER)
    assert re.findall(r"\]\((.*?)\)", notebook.cells[-1].source) == links
    assert not linked(nbformat.v4.new_notebook(), name, []).cells  # outside of the profile
