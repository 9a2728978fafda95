"""The page as a file: its contents, its limit of size, and texts that must not end its script."""

import json
import re

import pytest

from analysis.explorer.packing import pack
from analysis.explorer.view import explorer
from analysis.texts.examples import Example

SVG_NAMESPACE = "http://www.w3.org/2000/svg"


def payload_of(page: str) -> dict:
    """The data of a page, read as a browser reads them."""
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
    )


@pytest.fixture(scope="module")
def view(tables, sentences):
    return explorer(tables, sentences)


def test_no_address_but_that_of_the_drawing_format(view):
    assert {*re.findall(r"https?://[^\s\"'`<]*", view.page)} == {SVG_NAMESPACE}


def test_the_browser_may_load_nothing(view):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', view.page)[1]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert "*" not in policy


def test_nothing_of_a_text_ends_the_script(tiny):
    text = "</script><script>alert(1)</script> <!-- {{style}} &amp; dog"
    page = explorer(None, pack(tiny, [Example("x", text)])).page
    assert page.count("</script>") == 2
    assert payload_of(page)["sentences"][0]["a"] == text


def test_titles_are_escaped(tables):
    page = explorer(tables, title="<b>{{data}}</b>").page
    assert "<b>" not in page
    assert "&lt;b&gt;{{data}}" in page


def test_a_page_keeps_its_limit(tables, sentences, view, caplog):
    longest = max(sentences, key=lambda sentence: len(sentence["tokens"]))
    limit = len(view.page.encode()) - 10
    small = explorer(tables, sentences, limit=limit)
    found = payload_of(small.page)
    assert len(small.page.encode()) <= limit
    assert [sentence["id"] for sentence in found["left_out"]] == [longest["id"]]
    assert [s["id"] for s in found["sentences"]] == [s["id"] for s in sentences if s["id"] != longest["id"]]
    assert longest["id"] in caplog.text
