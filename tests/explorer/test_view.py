"""The explorer of a study, and of a text in a notebook."""

import html
import json
import re

import numpy as np
import pytest
from studies import error_of

from analysis import head_view as public
from analysis.explorer.packing import pack
from analysis.explorer.view import HeadView, about, explorer, head_view
from analysis.scores.sieves import SIEVES, rows, sieve
from analysis.texts.bundled import bundled_examples
from analysis.texts.examples import Example, Relation

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


def test_tasks_states_and_roles_keep_their_order(tables, sentences):
    found = payload_of(explorer(tables, sentences))
    assert found["tasks"] == ["mrpc", "sst-2"]
    assert found["states"] == ["pretrained", "finetuned"]
    assert [role["name"] for role in found["roles"]] == ["local", "delimiter", "nsubj", "block"]
    assert (found["format"], found["version"]) == ("head-explorer", 1)
    assert (found["layers"], found["heads"]) == (3, 4)


def test_tables_and_sentences_of_different_encoders(tables, sentences):
    assert "2 x 4 and 3 x 4" in error_of(lambda: explorer(tables[tables["layer"] < 2], sentences))


def test_nothing_to_show():
    assert "neither" in error_of(lambda: explorer(None))


def test_text_of_a_cell(tiny):
    view = head_view(tiny, *PAIR)
    [sentence] = payload_of(view)["sentences"]
    assert (sentence["a"], sentence["b"]) == PAIR
    assert sentence["scores"].keys() == {"local", "delimiter", "block"}
    assert payload_of(view)["scores"] == {}


def test_relations_of_a_text(tiny, unpacked_mask):
    relations = [Relation("nsubj", 0, (2, 5), (6, 10))]
    view = head_view(tiny, PAIR[0], relations=relations, roles=("nsubj",))
    [sentence] = payload_of(view)["sentences"]
    mask = unpacked_mask(sentence["masks"]["nsubj"], len(sentence["tokens"]))
    assert mask.any()
    assert mask[:, :2].sum() == 0


def test_own_sieve_is_a_role(tiny, own_sieve, unpacked_mask):
    found = payload_of(head_view(tiny, PAIR[0], roles=("previous", "local")))
    [sentence] = found["sentences"]
    mask = unpacked_mask(sentence["masks"]["previous"], len(sentence["tokens"]))
    assert (mask == np.eye(len(mask), k=-1, dtype=bool)).all()
    assert {role["name"]: role["about"] for role in found["roles"]}["previous"] == "The token before."


def test_unknown_role(tiny):
    assert "'nosuch'" in error_of(lambda: head_view(tiny, "A dog .", roles=("nosuch",)))


def test_table_beside_a_text(tiny, tables):
    one = tables[(tables["task"] == "mrpc") & (tables["state"] == "finetuned")]
    found = payload_of(head_view(tiny, "A dog .", table=one.drop(columns="task")))
    assert found["states"] == ["finetuned"]
    assert [*found["sentences"][0]["attention"]] == ["finetuned"]
    both = payload_of(head_view(tiny, "A dog .", table=tables[tables["task"] == "mrpc"]))
    assert [*both["sentences"][0]["attention"]] == ["tiny"], "not said to be of one of the table's states"


def test_a_cell_shows_a_frame_and_a_text(tiny):
    shown = head_view(tiny, "A dog .", height=500)._repr_html_()
    frame = re.search(r'<iframe sandbox="([^"]*)" title="[^"]+" style="([^"]*)" srcdoc="([^"]*)">', shown)
    assert "allow-same-origin" not in frame[1]
    assert "height: 500px" in frame[2]
    assert html.unescape(frame[3]) == head_view(tiny, "A dog .").page
    assert "trust the notebook" in re.search(r"<p[^>]*>(.*?)</p>", shown)[1]
    assert " id=" not in shown.split("srcdoc")[0]


def test_views_do_not_share_a_style(tiny):
    names = [re.search('class="(.*?)"', head_view(tiny, text)._repr_html_())[1] for text in PAIR]
    assert names[0] != names[1]


def test_a_view_prints_short(tiny):
    assert len(repr(head_view(tiny, "A dog ."))) < 200


def test_saved_as_a_file(tiny, tmp_path):
    view = head_view(tiny, "A dog .")
    path = view.save(tmp_path / "new" / "view.html")
    assert path.read_text(encoding="utf-8") == view.page
    assert [*path.parent.iterdir()] == [path]


def test_every_registered_role_says_what_it_is():
    assert all(about(role).endswith(".") for role in ("local", "syntactic", "nsubj", "block", "cls", "sep"))


def test_public_name():
    assert public is head_view


def test_sentences_of_the_study_are_bundled_ones():
    """The notebook that builds the page takes sentences from the bundled corpus, whatever data the scores come from."""
    from analysis.study.profiles import source

    text = source("98_explorer").read_text(encoding="utf-8")
    assert re.findall(r"load_examples\(([^)]*)\)", text)
    assert all('"bundled"' in call for call in re.findall(r"load_examples\(([^)]*)\)", text))


def test_sentences_keep_their_text(tiny):
    example = bundled_examples("mrpc", 1, 0, "dev")[0]
    [sentence] = pack(tiny, [Example("x", *example.texts)])
    assert (sentence["a"], sentence["b"]) == example.texts
