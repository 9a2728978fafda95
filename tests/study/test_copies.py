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


def test_a_picture_has_its_finding_as_alternative_text():
    """The finding below it, or the verdicts there; without them, the first sentence below the heading."""
    pictures = [nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="}) for _ in "123"]
    rows = ("supported † (no spread)", "inconclusive", "supported")
    verdicts = "\n".join(f"| a claim | 0.3 | {verdict} |" for verdict in rows)
    said = nbformat.v4.new_output("execute_result", {"text/markdown": "**Finding.** 3 of 4 heads do."})
    found = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell("Prose.\n\n## F1. Heads\n\nWhich heads do?\nAll. More."),
            nbformat.v4.new_code_cell("1", outputs=pictures[:1]),
            nbformat.v4.new_code_cell("2", outputs=[said]),
            nbformat.v4.new_markdown_cell("## F2. Layers\n\nHeads by\nlayer. More."),
            nbformat.v4.new_code_cell("3", outputs=pictures[1:2]),
            nbformat.v4.new_markdown_cell("## Claims\n\nEach."),
            nbformat.v4.new_code_cell("4", outputs=pictures[2:]),
            nbformat.v4.new_code_cell(
                "5", outputs=[nbformat.v4.new_output("display_data", {"text/markdown": verdicts})]
            ),
        ]
    )
    described(found)
    texts = [found.cells[n].outputs[0].metadata["image/png"]["alt"] for n in (1, 4, 6)]
    assert texts == [
        "F1. Heads. 3 of 4 heads do.",
        "F2. Layers. Heads by layer.",
        "Claims. supported 2, inconclusive 1.",
    ]
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
    assert not linked(nbformat.v4.new_notebook(), name, []).cells  # outside of the profile
