"""Executed copies: parameters as they ran, folded set-up, small pictures."""

from base64 import b64decode, b64encode
from io import BytesIO

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter
from PIL import Image

from analysis.study.copies import cleaned, prepared, with_values

CODE = """n = 3  # sequences
flag = (
    False  # a long comment
)
words = ["é", "b"]; rate = 1e-4
checkpoint = None"""


def test_values_that_do_not_change_stay_as_they_are_written():
    values = {"n": 3, "flag": False, "words": ["é", "b"], "rate": 0.0001, "checkpoint": None}
    assert with_values(CODE, values) == CODE


def test_changed_values():
    values = {"n": 30, "flag": True, "words": ["x", 'y"z'], "rate": 0.5, "checkpoint": "é/{task}"}
    text = with_values(CODE, values)
    found: dict = {}
    exec(text, found)  # noqa: S102
    assert {name: found[name] for name in values} == values
    assert text.startswith("n = 30  # sequences\nflag = (\n    True  # a long comment\n)\n")
    assert '["x", "y\\"z"]; rate = 0.5' in text


@pytest.mark.parametrize(
    ("value", "written"), [("", '""'), ([], "[]"), ([1, "a"], '[1, "a"]'), (1e-5, "1e-05")]
)
def test_how_values_are_written(value: object, written: str):
    assert with_values("n = 0  # why", {"n": value}) == f"n = {written}  # why"


def notebook(*cells: str) -> nbformat.NotebookNode:
    """Code cells, the first tagged as parameters."""
    found = [nbformat.v4.new_code_cell(cell) for cell in cells]
    found[0].metadata["tags"] = ["parameters"]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Title"), *found])


def test_set_up_is_folded_everywhere():
    """By what JupyterLab reads, and in a web page, where what the cell printed stays."""
    found = prepared(notebook("n = 1", "import numpy", "n + 1"), {"n": 2})
    assert [cell.metadata.get("jupyter") for cell in found.cells] == [
        None,
        None,
        {"source_hidden": True},
        None,
    ]
    assert found.cells[1].source == "n = 2"
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
