import html
import json
import re

import numpy as np
import pytest
from classifiers import classifier
from headtables import HEADS, LAYERS, unpacked_mask, value_tables

from analysis.encoders.redirection import redirect
from analysis.explorer.packing import (
    DOSES,
    dials,
    illustrative,
    pack,
    scores_of,
    unpacked_attention,
    values_of,
)
from analysis.explorer.view import explorer, head_view
from analysis.scores.extraction import extract, read_attention, read_sieves
from analysis.scores.sieves import SIEVES, Sieve, rows
from analysis.statistics.effects import match_logit
from analysis.study.parameters import source
from analysis.texts.examples import Example, Relation
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse


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


def test_other_numbers_are_medians_over_runs():
    tables = value_tables()
    medians = tables["ablation effect"].groupby(["layer", "head"])["value"].median()
    packed = values_of(tables, (LAYERS, HEADS))
    assert packed["ablation effect"] == {"mrpc": pytest.approx(medians.tolist(), rel=1e-3)}
    assert packed["norm"] == {"": pytest.approx(tables["norm"]["value"].tolist(), rel=1e-3)}


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


ROLES = ("local", "nsubj", "block")
LARGEST = 0.004  # of all errors that eight bits make


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return load_examples("toy-mrpc", split="dev", n=3, seed=0)


@pytest.fixture(scope="module")
def packed(tiny, examples):
    return pack(tiny, examples, parse(examples), ROLES, "pretrained", "mrpc")


def test_packed_attention_masks_and_scores_are_those_of_the_encoder(tiny, examples, packed):
    """Masks are where sieves weigh."""
    scores = extract(tiny, examples, parse(examples), ROLES, progress=False)
    for example, sentence in zip(examples, packed, strict=True):
        layout, attention = read_attention(tiny, example)
        result = unpacked_attention(sentence["attention"]["pretrained"], attention.shape)
        assert attention.shape[:2] == (LAYERS, HEADS)
        assert np.abs(result - attention).max() <= LARGEST
        assert sentence["tokens"] == [*layout.tokens]
        assert [i for i, token in enumerate(sentence["tokens"]) if token == "[SEP]"] == sentence["sep"]
        assert [number < 0 for number in sentence["text"]] == (layout.cls | layout.sep).tolist()
        sieves = read_sieves(tiny, example, parse([example]), ROLES)
        assert sentence["masks"].keys() == sieves.keys()
        for role, sieve in sieves.items():
            assert (unpacked_mask(sentence["masks"][role], len(sieve)) == (sieve > 0)).all()
        for role, states in sentence["scores"].items():
            expected = scores.sel(sequence=sentence["id"], role=role).values.ravel()
            assert states["pretrained"] == pytest.approx(expected.tolist(), rel=1e-3)


def test_illustrative_sentences_show_many_relations_in_few_words():
    texts = ("A dog barks at the old cat .", "Dogs bark .", "Dogs bark at cats .")
    examples = [Example(str(number), text) for number, text in enumerate(texts)]
    subject, modifier, article = (Relation(label, 0, (0, 1), (2, 3)) for label in ("nsubj", "amod", "det"))
    relations = {"0": (subject, modifier), "1": (subject,), "2": (article,)}
    assert illustrative(examples, relations, ["nsubj", "amod"], 2) == examples[:2]


def test_dials_are_answers_of_the_classifier(examples):
    """At every dose the log odds of the class, with the attention of the heads moved in both directions."""
    encoder, heads = classifier("bert", 2, num_hidden_layers=2), [(1, 1), (0, 0)]
    turned = dials(encoder, examples, heads, 1)
    assert [*turned] == [example.id for example in examples]
    for direction, to in {"across": "other text", "own": "own text"}.items():
        logits = redirect(encoder, examples, {"both": heads}, to=to, dose=DOSES[3], progress=False).values
        expected = match_logit(logits, 1)
        for place, dial in enumerate(turned.values()):
            assert dial["heads"] == ["0-0", "1-1"]
            assert len(dial[direction]) == len(dial["doses"]) == len(DOSES)
            result = [dial[direction][0], dial[direction][3]]
            assert result == pytest.approx(expected[:, place], rel=1e-3, abs=1e-6)
        assert any(dial[direction][0] != dial[direction][-1] for dial in turned.values())
    assert dials(encoder, examples, [], 1) == {}
