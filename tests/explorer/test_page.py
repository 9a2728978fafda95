"""The page of a study, and of a text in a notebook: its contents, and texts that must not end its script."""

import html
import json
import re

import numpy as np
from headtables import HEADS, LAYERS, unpacked_mask

from analysis.explorer.packing import pack
from analysis.explorer.payload import scores_of
from analysis.explorer.view import explorer, head_view
from analysis.scores.sieves import SIEVES, Sieve, rows
from analysis.study.profiles import source
from analysis.texts.examples import Example


def payload_of(page: str) -> dict:
    """The data of a page, read as a browser reads them."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_nothing_of_a_text_or_title_ends_the_script(tiny):
    text = "</script><script>alert(1)</script> <!-- {{style}} &amp; dog"
    page = explorer(None, pack(tiny, [Example("x", text)]), title="<b>{{data}}</b>").page
    assert page.count("</script>") == 2
    assert payload_of(page)["sentences"][0]["a"] == text
    assert "<b>" not in page
    assert "&lt;b&gt;{{data}}" in page


def test_not_applicable_and_absent_are_not_the_same(tables):
    entry = scores_of(tables, (LAYERS, HEADS))["sst-2"]["pretrained"]["block"]
    assert entry["published"] == "?" * 12
    assert entry["status"][0].startswith("not applicable: ")
    assert (entry["mean"], entry["n"]) == ([None] * 12, 0)
    part = tables[(tables["layer"] > 0) & (tables["role"] == "local")]
    assert scores_of(part, (LAYERS, HEADS))["mrpc"]["pretrained"]["local"]["published"].startswith("----")


def test_own_sieve_is_a_role(tiny, monkeypatch):
    def previous(layout, pairs):
        """The token before.

        More of it.
        """
        return rows(np.eye(len(layout), k=-1, dtype=bool))

    monkeypatch.setitem(SIEVES, "previous", Sieve(previous))
    payload = payload_of(head_view(tiny, "A dog sees the cat .", roles=("previous", "local")).page)
    [sentence] = payload["sentences"]
    mask = unpacked_mask(sentence["masks"]["previous"], len(sentence["tokens"]))
    assert (mask == np.eye(len(mask), k=-1, dtype=bool)).all()
    assert {role["name"]: role["about"] for role in payload["roles"]}["previous"] == "The token before."


def test_a_cell_shows_a_frame_and_a_text(tiny):
    cell = head_view(tiny, "A dog .")._repr_html_()
    frame = re.search(r'<iframe sandbox="([^"]*)" title="[^"]+" style="([^"]*)" srcdoc="([^"]*)">', cell)
    assert "allow-same-origin" not in frame[1]
    assert "height: 760px" in frame[2]
    assert html.unescape(frame[3]) == head_view(tiny, "A dog .").page
    assert "trust the notebook" in re.search(r"<p[^>]*>(.*?)</p>", cell)[1]
    assert " id=" not in cell.split("srcdoc")[0]


def test_sentences_of_the_study_are_those_of_toy_tasks():
    """The notebook that builds the page takes made-up sentences, whatever data the scores come from."""
    text = source("98_explorer").read_text(encoding="utf-8")
    assert {*re.findall(r"load_examples\((.*?)\(", text)} == {"toy"}
