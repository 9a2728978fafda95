"""The generated documents: valid trees, coreference chains that agree, and text that is decided by the arguments."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random

import conllu
import pytest
from treebanks import write

from analysis.errors import InputError
from analysis.papers.clark2019.coreference import answers, coreference_table
from analysis.papers.clark2019.dependencies import arcs
from analysis.texts.bundled.cast import draw_cast, said_of, words_of
from analysis.texts.bundled.discourse import find_slots
from analysis.texts.bundled.documents import brackets, extents, generate_documents
from analysis.texts.bundled.grammar import build, sentence
from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.notation import slots
from analysis.texts.bundled.splits import belongs
from analysis.texts.chains import ANY, Chains, read_documents
from analysis.texts.syntax import UNIVERSAL, canonical
from analysis.texts.treebank import Treebank, read_treebank

N, FEW = 20, 4
SCORED = """prep pobj det compound nsubj nsubj:pass amod obj iobj advmod aux aux:pass nummod cc conj nmod:poss
    possessive cop mark ccomp xcomp advcl appos acl acl:relcl compound:prt obl:unmarked""".split()
PRONOUN_TAGS = {"subject": "PRP", "object": "PRP", "possessive": "PRP$", "reflexive": "PRP"}


@cache
def generated(split: str = "dev", seed: int = 0, n: int = N) -> str:
    return generate_documents(n, split, seed)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("documents"), generated(), "documents.conllu")


@pytest.fixture(scope="module")
def corpus(path: Path) -> Chains:
    return read_documents(path)


@pytest.fixture(scope="module")
def treebank(path: Path) -> Treebank:
    return read_treebank(path)


def texts(split: str, seed: int, n: int) -> set[str]:
    """Every document of a call, as the text of its sentences."""
    found: list[list[str]] = []
    for line in generated(split, seed, n).splitlines():
        if line.startswith("# newdoc"):
            found.append([])
        if line.startswith("# text = "):
            found[-1].append(line)
    return {"\n".join(lines) for lines in found}


def test_same_arguments_same_bytes_in_any_process():
    code = "from analysis.texts.bundled import generate_documents; print(generate_documents(3, 'test', 5), end='')"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout == generate_documents(3, "test", 5)


def test_seeds_differ_and_splits_share_no_document():
    train, dev, test = texts("train", 1, FEW), texts("dev", 0, N), texts("test", 2, FEW)
    assert (len(train), len(dev), len(test)) == (FEW, N, FEW)
    assert not train & dev
    assert not train & test
    assert not dev & test
    assert not texts("dev", 1, FEW) & dev


@pytest.mark.parametrize(
    ("arguments", "named"), [((0, "dev", 0), "n is 0"), ((3, "all", 0), "unknown split 'all'")]
)
def test_wrong_arguments_are_named(arguments, named):
    with pytest.raises(InputError, match=named) as raised:
        generate_documents(*arguments)
    assert "\n" not in str(raised.value)


def test_size_of_documents(corpus: Chains):
    for text in corpus.documents:
        assert 60 <= len(text.words) <= 200
    assert len(corpus.documents) == N


def test_paragraphs_and_their_sentences():
    for document in generated().split("# newdoc id = ")[1:]:
        paragraphs = [part.count("# sent_id") for part in document.split("# newpar\n")[1:]]
        assert len(paragraphs) in {2, 3, 4}
        assert all(3 <= count <= 6 for count in paragraphs)


def test_no_sentence_is_said_twice_and_many_are_distinct():
    found = [text.splitlines() for text in texts("dev", 0, N)]
    assert all(len(set(lines)) == len(lines) for lines in found)
    assert len({line for lines in found for line in lines}) > 8 * N


def test_splits_go_by_the_first_sentence():
    """So that a text of another split is dropped before the rest of it is written."""
    firsts = [text.splitlines()[0].removeprefix("# text = ") for text in texts("train", 1, FEW)]
    assert all(belongs(first.lower(), "train") for first in firsts)


def test_trees_are_universal(treebank: Treebank):
    words = treebank.words
    labels = {canonical(label.split(":")[0]) for label in words["relation"]}
    assert labels <= UNIVERSAL | {"root"}
    roots = words[words["head"] == 0]
    assert (roots["relation"] == "root").all()
    assert len(roots) == words["sentence"].nunique() == (words["relation"] == "root").sum()
    assert treebank.left_out == {"multiword tokens": 0, "empty nodes": 0}


def test_function_words_have_no_dependents_of_content(treebank: Treebank):
    """UD attaches content words to content words: no word depends on an article, a mark, a conjunction or a comma."""
    words = treebank.words
    heads = words.set_index(["sentence", "word"])["relation"]
    dependents = words[words["head"] > 0]
    above = heads.reindex(list(zip(dependents["sentence"], dependents["head"] - 1, strict=True)))
    assert not set(above) & {"det", "case", "mark", "cc", "punct", "aux", "aux:pass", "cop"}


def test_tags_suit_parts_of_speech_and_relations(treebank: Treebank):
    words = treebank.words
    tags = {
        "DET": {"DT", "PDT"}, "PRON": {"PRP", "PRP$", "WP", "WDT", "NN"}, "NUM": {"CD"}, "ADJ": {"JJ", "JJR"},
        "NOUN": {"NN", "NNS"}, "PROPN": {"NNP"}, "ADP": {"IN", "RP"}, "SCONJ": {"IN"}, "CCONJ": {"CC"},
        "VERB": {"VB", "VBD", "VBN", "VBG", "VBZ"}, "AUX": {"VB", "VBD", "VBN", "VBZ", "VBP", "MD"},
        "ADV": {"RB", "RBR", "WRB"}, "PART": {"TO", "RB", "POS"}, "PUNCT": {",", "."},
    }  # fmt: skip
    assert [row for row in zip(words["upos"], words["xpos"], strict=True) if row[1] not in tags[row[0]]] == []
    possessors = words[(words["relation"] == "nmod:poss") & (words["upos"] == "PRON")]
    assert (possessors["xpos"] == "PRP$").all()
    assert (words.loc[words["form"].isin(["'s", "'"]), "relation"] == "case").all()
    assert (words.loc[words["xpos"] == "RP", "relation"] == "compound:prt").all()


def test_every_relation_of_the_study_occurs(treebank: Treebank):
    counts = arcs(treebank.words)["relation"].value_counts()
    assert [label for label in SCORED if counts.get(label, 0) < 3] == []


def test_text_is_spelled_by_forms_and_spaces():
    for tree in conllu.parse(generated()):
        spaces = [(token["misc"] or {}).get("SpaceAfter") != "No" for token in tree]
        spelled = "".join(token["form"] + " " * space for token, space in zip(tree, spaces, strict=True))
        assert spelled.strip() == tree.metadata["text"]


def test_chains_agree_and_have_two_mentions(corpus: Chains):
    for text in corpus.documents:
        for _, chain in text.mentions.groupby("chain"):
            assert len(chain) >= 2
            assert len(set(chain["number"]) - {ANY}) == 1, chain
            assert len(set(chain["gender"]) - {ANY}) <= 1, chain


def test_proper_names_have_the_gender_of_their_pronouns(corpus: Chains):
    for text in corpus.documents:
        for _, chain in text.mentions.groupby("chain"):
            genders = set(chain["gender"]) & {"masculine", "feminine"}
            said = {word for string in chain["string"] for word in string.split()}
            for gender, other in (("feminine", "masculine"), ("masculine", "feminine")):
                if gender in genders:
                    assert not said & {word.lower() for word in said_of(other)}


def test_mentions_hold_no_preposition_and_no_comma_at_their_ends(corpus: Chains):
    for text in corpus.documents:
        ends = text.words.iloc[[*text.mentions["start"], *text.mentions["end"]]]
        assert not set(ends["upos"]) & {"ADP", "PUNCT", "CCONJ", "SCONJ", "AUX"}


def test_no_rule_finds_all_antecedents_or_none(corpus: Chains):
    table = coreference_table(answers(corpus.documents)).set_index("system")
    kinds = table[["all", "pronoun", "proper", "nominal"]]
    assert ((kinds > 0.02) & (kinds < 0.98)).all(axis=None)
    assert table.loc["nearest", "all"] < table.loc["head match", "all"] < table.loc["rule-based", "all"]


def test_extents_of_nested_and_coordinated_mentions():
    """Worked by hand: Maria's brother, his old dog and Clara, with brackets as OntoNotes sets them."""
    maria = build("Maria 's/case", {})._replace(entity="a")
    dog = build("{owner}/nmod:poss old/amod dog", {"owner": maria})._replace(entity="b")
    clara = build("Clara (appos ,/punct a/det nurse ,/punct)", {})._replace(entity="c")
    frame = "(nsubj {clara}) walk.past (obl with/case {dog} (conj and/cc Hugo)) ./punct"
    said = sentence(build(frame, {"clara": clara, "dog": dog}))
    assert said.text == "Clara, a nurse, walked with Maria's old dog and Hugo."
    found = extents(said)
    assert sorted(found) == [(0, 3, "c"), (7, 8, "a"), (7, 10, "b")]
    assert brackets(found) == {0: "(c", 3: "c)", 7: "(b(a", 8: "a)", 10: "b)"}


def test_slots_know_their_case_and_their_clause():
    complement = (
        "(ccomp that/mark (nsubj {whom}) wash.past (obj {whom2.self}) (obl in/case {who2}/nmod:poss car))"
    )
    frame = f"(nsubj {{who}}) say.past {complement}"
    found = {slot.name: (slot.case, slot.clause) for slot in find_slots(frame)}
    assert found == {
        "who": ("subject", 0), "whom": ("subject", 1), "whom2": ("reflexive", 1), "who2": ("possessive", 1)
    }  # fmt: skip


def test_people_of_a_cast_are_told_apart():
    for seed, setting in enumerate(read("stories")["settings"] * 3):
        people = draw_cast(setting, ["public"], Random(seed))["person"]
        for number, member in enumerate(people):
            others = words_of(people[:number])
            own = {
                word for name in ("given", "surname", "adjective") for word in member.content[name].options
            }
            assert not own & others


@pytest.mark.parametrize("plot", read("stories")["plots"])
def test_frames_use_known_roles_and_second_mentions_follow_first_ones(plot):
    parts = read("stories")["plots"][plot]["parts"]
    frames = [frame for part in parts for listed in part.values() for frame in listed]
    for frame in frames + read("stories")["remarks"]:
        roles = [
            name for name in slots(frame) if name.rstrip("2") in {"who", "whom", "group", "thing", "place"}
        ]
        assert all(name.rstrip("2") in roles[: roles.index(name)] for name in roles if name.endswith("2")), (
            frame
        )
        build(f"{frame} ./punct", dict.fromkeys(slots(frame), "Maria"))


@pytest.mark.parametrize("pronouns", read("stories")["pronouns"].values(), ids=read("stories")["pronouns"])
def test_pronouns_are_tagged_by_their_case(pronouns):
    for case, form in pronouns.items():
        label = {"subject": "nsubj", "possessive": "nmod:poss"}.get(case, "obj")
        (word,) = [
            word for word in sentence(build(f"({label} {form}) thing", {})).words if word.label == label
        ]
        assert (word.upos, word.xpos) == ("PRON", PRONOUN_TAGS[case])
