"""The static site of a profile: an index, the executed notebooks, the figures and the head explorer."""

import re
from urllib.parse import unquote

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image
from studies import error_of

from analysis.study.folders import Folders
from analysis.study.report import main, write_site

TITLE = "# 1. Roles & <heads>\n\n**Question.** Which *heads*\nhave `roles`?\n\nMore prose."


@pytest.fixture
def results(tmp_path, monkeypatch) -> Folders:
    """Two executed notebooks, two figures and an explorer."""
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    found = Folders("quick")
    found.notebooks.mkdir(parents=True)
    found.figures.mkdir()
    shown = new_output("display_data", {"text/html": "<b>shown</b>"})
    for name in ("01_extract-mrpc", "99_summary"):
        cells = [new_markdown_cell(TITLE), new_code_cell("1 + 1", outputs=[shown])]
        nbformat.write(new_notebook(cells=cells), found.notebooks / f"{name}.ipynb")
    for name in ("F1-sieves.png", "F2-heads.png"):
        Image.new("RGB", (4, 4)).save(found.figures / name)
    (found.figures / "F1-sieves.svg").write_text("<svg/>")
    (found.folder / "explorer.html").write_text("<!doctype html>")
    return found


def links(page: str) -> set[str]:
    return {unquote(link) for link in re.findall(r'(?:href|src)="([^"#]+)"', page)}


def test_every_link_of_the_index_leads_to_a_file(results):
    index = write_site("quick")
    found = links(index.read_text(encoding="utf-8"))
    assert found == {
        "explorer.html",
        "notebooks/01_extract-mrpc.html",
        "notebooks/99_summary.html",
        "figures/F1-sieves.png",
        "figures/F1-sieves.svg",
        "figures/F2-heads.png",
    }
    assert all((index.parent / link).is_file() for link in found)


def test_titles_and_questions_stand_in_the_index(results):
    text = write_site("quick").read_text(encoding="utf-8")
    assert "1. Roles &amp; &lt;heads&gt;" in text
    assert ">mrpc</a>" in text
    assert "Which heads have roles?" in text
    assert "More prose" not in text


def test_a_notebook_leads_back_and_shows_its_outputs(results):
    page = (write_site("quick").parent / "notebooks" / "99_summary.html").read_text(encoding="utf-8")
    assert '<a href="../index.html">' in page
    assert "<b>shown</b>" in page
    assert "require.min.js" not in page


def test_what_is_gone_does_not_stay(results):
    index = write_site("quick")
    (results.figures / "F2-heads.png").unlink()
    (results.folder / "explorer.html").unlink()
    assert "F2-heads" not in write_site("quick").read_text(encoding="utf-8")
    assert not (index.parent / "figures" / "F2-heads.png").exists()
    assert "explorer" not in index.read_text(encoding="utf-8")


def test_nothing_has_run(results, capsys):
    for path in results.notebooks.iterdir():
        path.unlink()
    assert "make reproduce" in error_of(write_site, "quick")
    assert main(["--profile", "quick"]) == 1
    assert capsys.readouterr().err.startswith("error: ")
