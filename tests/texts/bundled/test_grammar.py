"""Frames -> words with relations, against parses worked by hand."""

import pytest

from analysis.errors import InputError
from analysis.texts.bundled.grammar import build, sentence
from analysis.texts.bundled.notation import parse_frame, slots


def parsed(notation, **fillings):
    """Text and (form, head form, label) of every word."""
    said = sentence(build(notation, fillings))
    forms = ["ROOT", *(word.form for word in said.words)]
    return said.text, [(word.form, forms[word.head], word.label) for word in said.words]


def test_passive_with_agent():
    frame = "(nsubj:pass the/det {noun.plural}) be.past/aux:pass {verb.participle} (obl:agent by/case {name}) ./punct"
    text, arcs = parsed(frame, noun="bill", verb="write", name="Maria")
    assert text == "The bills were written by Maria."
    assert arcs == [
        ("The", "bills", "det"),
        ("bills", "written", "nsubj:pass"),
        ("were", "written", "aux:pass"),
        ("written", "ROOT", "root"),
        ("by", "Maria", "case"),
        ("Maria", "written", "obl:agent"),
        (".", "written", "punct"),
    ]


def test_contraction_is_two_words_with_adjoining_spans():
    said = sentence(build("(nsubj she) do.present/aux n't/advmod sing.base ./punct", {}))
    text, words = said.text, said.words
    assert len(said) == len(words) == 5
    assert text == "She doesn't sing."
    assert [(word.form, word.lemma, word.upos, text[slice(*word.span)]) for word in words[1:3]] == [
        ("does", "do", "AUX", "does"),
        ("n't", "not", "PART", "n't"),
    ]
    assert words[1].span[1] == words[2].span[0]


def test_possessive_attaches_without_space():
    text, arcs = parsed("(nmod:poss Norway 's/case) old/amod minister")
    assert text == "Norway's old minister"
    assert ("'s", "Norway", "case") in arcs
    assert ("Norway", "minister", "nmod:poss") in arcs


@pytest.mark.parametrize(
    ("subject", "verb"),
    [("{noun}", "sings"), ("{noun.plural}", "sing"), ("they", "sing"), ("a/det {noun}", "sings")],
)
def test_verb_agrees_with_its_subject(subject, verb):
    assert parsed(f"(nsubj {subject}) sing.present", noun="boy")[0].endswith(verb)


def test_relative_clause_agrees_with_its_antecedent():
    frame = "(nsubj the/det boy.plural (acl:relcl who/nsubj be.present/cop late.ADJ)) sing.present"
    assert parsed(frame)[0] == "The boys who are late sing"


def test_coordinated_subjects_are_plural():
    assert (
        parsed("(nsubj the/det boy (conj and/cc the/det girl)) sing.present")[0]
        == "The boy and the girl sing"
    )


def test_empty_slot_removes_its_bracket():
    text, arcs = parsed("(nsubj she) sing.past (obl in/case {place}) ./punct", place=None)
    assert text == "She sang."
    assert [label for _, _, label in arcs] == ["nsubj", "root", "punct"]


def test_no_comma_before_another_mark():
    assert (
        parsed("(nsubj she) smile.past (advcl ,/punct wave.gerund ,/punct) ./punct")[0]
        == "She smiled, waving."
    )


def test_article_follows_the_next_word():
    assert parsed("a/det old/amod dog")[0] == "An old dog"
    assert parsed("a/det dog")[0] == "A dog"


def test_compound_and_particle_become_dependents():
    _, arcs = parsed("(nsubj {noun}) {verb.past} (obj it)", noun="oil_company", verb="give_up")
    assert ("Oil", "company", "compound") in arcs
    assert ("up", "gave", "compound:prt") in arcs


def test_slots_in_order_without_features():
    assert slots("(nsubj {who}) {verb.past} {who}/obj") == ("who", "verb")


@pytest.mark.parametrize("frame", ["(nsubj the/det) run.past", "(nsubj dog cat) run.past"])
def test_a_bracket_without_exactly_one_head_is_refused(frame):
    with pytest.raises(InputError, match="exactly one"):
        parse_frame(frame)
