"""Executed copies: folded set-up, small pictures, links to the neighbours."""

import re
from base64 import b64decode, b64encode
from io import BytesIO

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter
from PIL import Image

from analysis.files import ROOT
from analysis.study.copies import cleaned, described, linked, prepared


def notebook(*cells: str) -> nbformat.NotebookNode:
    """Code cells, the first tagged as parameters."""
    found = [nbformat.v4.new_code_cell(cell) for cell in cells]
    found[0].metadata["tags"] = ["parameters"]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), *found])


def test_set_up_is_folded_everywhere():
    """By what JupyterLab reads, and in a web page, where what the cell printed stays."""
    found = prepared(notebook("n = 1", "import numpy", "n + 1"))
    assert [cell.metadata.get("jupyter") for cell in found.cells] == [
        None,
        None,
        {"source_hidden": True},
        None,
    ]
    found.cells[2].outputs = [nbformat.v4.new_output("stream", name="stdout", text="300 sequences")]
    nbformat.validate(found)
    page, _ = HTMLExporter().from_notebook_node(found)
    text = page[page.index("<main") :]
    assert "numpy" not in text
    assert "300 sequences" in text


def test_pictures_are_small():
    """Noise on a white ground, as a notebook shows it: fewer bytes, the same size, colours hardly moved."""
    pixels = np.full((60, 80, 3), 255, np.uint8)
    pixels[20:40] = np.random.default_rng(0).integers(0, 8, (20, 80, 1)) * 36
    raw = BytesIO()
    Image.fromarray(pixels).save(raw, "PNG", compress_level=0)
    output = nbformat.v4.new_output("display_data", {"image/png": b64encode(raw.getvalue()).decode()})
    cell = nbformat.v4.new_code_cell("figure", outputs=[output])
    found = cleaned(nbformat.v4.new_notebook(cells=[cell]))
    small = b64decode(found.cells[0].outputs[0].data["image/png"])
    assert len(small) < len(raw.getvalue()) / 3
    with Image.open(BytesIO(small)) as image:
        shown = np.asarray(image.convert("RGB")).astype(int)
    assert np.abs(shown - pixels).max() <= 2


def test_a_picture_has_its_finding_as_alternative_text():
    """The finding below it; without one, the first sentence below the heading."""
    pictures = [nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="}) for _ in "12"]
    said = nbformat.v4.new_output("execute_result", {"text/markdown": "**Finding.** 3 of 4 heads do."})
    found = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("Prose.\n\n## F1. Heads\n\nWhich heads do?\nAll. More."),
            nbformat.v4.new_code_cell("1", outputs=pictures[:1]),
            nbformat.v4.new_code_cell("2", outputs=[said]),
            nbformat.v4.new_markdown_cell("## F2. Layers\n\nHeads by\nlayer. More."),
            nbformat.v4.new_code_cell("3", outputs=pictures[1:]),
        ]
    )
    described(found)
    texts = [found.cells[n].outputs[0].metadata["image/png"]["alt"] for n in (1, 4)]
    assert texts == ["F1. Heads. 3 of 4 heads do.", "F2. Layers. Heads by layer."]
    pages = HTMLExporter(extra_template_basedirs=[str(ROOT / "tools")], template_name="report")
    assert 'alt="F1. Heads. 3 of 4 heads do."' in pages.from_notebook_node(found)[0]


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
    nbformat.validate(notebook)


def test_runs_outside_of_the_profile_have_no_links():
    assert not linked(nbformat.v4.new_notebook(), "02_second", []).cells
