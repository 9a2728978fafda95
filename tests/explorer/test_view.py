"""The explorer of a study, and of a text in a notebook."""

import html
import json
import re

import numpy as np
import pytest

from analysis.explorer.view import HeadView, head_view
from analysis.scores.sieves import SIEVES, rows, sieve

PAIR = "A dog sees the cat .", "The cat runs ."


def payload_of(view: HeadView) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', view.page, re.DOTALL)[1])


@pytest.fixture
def own_sieve():
    @sieve("previous")
    def previous(layout, pairs):
        """The token before.

        More of it.
        """
        return rows(np.eye(len(layout), k=-1, dtype=bool))

    yield
    del SIEVES["previous"]


def test_own_sieve_is_a_role(tiny, own_sieve, unpacked_mask):
    found = payload_of(head_view(tiny, PAIR[0], roles=("previous", "local")))
    [sentence] = found["sentences"]
    mask = unpacked_mask(sentence["masks"]["previous"], len(sentence["tokens"]))
    assert (mask == np.eye(len(mask), k=-1, dtype=bool)).all()
    assert {role["name"]: role["about"] for role in found["roles"]}["previous"] == "The token before."


def test_a_cell_shows_a_frame_and_a_text(tiny):
    shown = head_view(tiny, "A dog .", height=500)._repr_html_()
    frame = re.search(r'<iframe sandbox="([^"]*)" title="[^"]+" style="([^"]*)" srcdoc="([^"]*)">', shown)
    assert "allow-same-origin" not in frame[1]
    assert "height: 500px" in frame[2]
    assert html.unescape(frame[3]) == head_view(tiny, "A dog .").page
    assert "trust the notebook" in re.search(r"<p[^>]*>(.*?)</p>", shown)[1]
    assert " id=" not in shown.split("srcdoc")[0]


def test_saved_as_a_file(tiny, tmp_path):
    view = head_view(tiny, "A dog .")
    path = view.save(tmp_path / "new" / "view.html")
    assert path.read_text(encoding="utf-8") == view.page
    assert [*path.parent.iterdir()] == [path]


def test_sentences_of_the_study_are_bundled_ones():
    """The notebook that builds the page takes sentences from the bundled corpus, whatever data the scores come from."""
    from analysis.study.profiles import source

    text = source("98_explorer").read_text(encoding="utf-8")
    assert re.findall(r"load_examples\(([^)]*)\)", text)
    assert all('"bundled"' in call for call in re.findall(r"load_examples\(([^)]*)\)", text))
