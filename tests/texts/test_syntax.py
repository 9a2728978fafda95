"""Relations from gold, CoNLL-U and spaCy, and the word pieces they point at."""

import json
from pathlib import Path

import numpy as np
import pytest
from architectures import byte_level_tokenizer

from analysis.encoders.layout import Layout, layouts, piece_ranges, token_pairs
from analysis.encoders.models import load_tokenizer
from analysis.errors import InputError
from analysis.texts import pipelines, syntax
from analysis.texts.bundled import bundled_examples
from analysis.texts.examples import Example, Relation
from analysis.texts.syntax import canonical, parse, read_conllu, sentence_text, surface, tags

# A contraction, an empty node, the same word twice, and a sentence without `# text` whose blanks are in MISC.
SENTENCES = """\
# sent_id = first
# text = She didn't see the cat, the cat ran.
1\tShe\tshe\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdid\tdo\tAUX\tVBD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tsee\tsee\tVERB\tVB\t_\t0\troot\t_\t_
5\tthe\tthe\tDET\tDT\t_\t6\tdet\t_\t_
6\tcat\tcat\tNOUN\tNN\t_\t4\tobj\t_\tSpaceAfter=No
7\t,\t,\tPUNCT\t,\t_\t10\tpunct\t_\t_
8\tthe\tthe\tDET\tDT\t_\t9\tdet\t_\t_
9\tcat\tcat\tNOUN\tNN\t_\t10\tnsubj\t_\t_
9.1\tthat\tthat\tPRON\tWP\t_\t_\t_\t10:nsubj\t_
10\tran\trun\tVERB\tVBD\t_\t4\tparataxis\t_\tSpaceAfter=No
11\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

1\tRed\tred\tADJ\tJJ\t_\t2\tamod\t_\t_
2\tcars\tcar\tNOUN\tNNS\t_\t0\troot\t_\tSpaceAfter=No
3\t!\t!\tPUNCT\t.\t_\t2\tpunct\t_\t_

# text = va au lit
1\tva\taller\tVERB\t_\t_\t0\troot\t_\t_
2-3\tau\t_\t_\t_\t_\t_\t_\t_\t_
2\tà\tà\tADP\t_\t_\t4\tcase\t_\t_
3\tle\tle\tDET\t_\t_\t4\tdet\t_\t_
4\tlit\tlit\tNOUN\t_\t_\t1\tobl\t_\t_

"""
FIRST = "She didn't see the cat, the cat ran."


def write(folder: Path, content: str | bytes = SENTENCES) -> Path:
    """A CoNLL-U file."""
    path = folder / "parses.conllu"
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


def spelt(text: str, relation: Relation) -> tuple[str, str, str]:
    """Label and spelling of dependent and head."""
    return relation.label, text[slice(*relation.dependent)], text[slice(*relation.head)]


def error_of(*arguments, **options) -> str:
    """The message of the InputError that parsing raises, checked to be one line."""
    with pytest.raises(InputError) as raised:
        parse(*arguments, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_gold_relations_come_with_the_examples():
    relations = (Relation("nsubj", 0, (0, 1), (2, 5)),)
    assert parse([Example("a", "I ran", relations=relations), Example("b", "x", relations=())]) == {
        "a": relations,
        "b": (),
    }


def test_conllu_relations_by_hand(tmp_path: Path):
    examples = [Example("one", FIRST), Example("two", "Red cars!", FIRST)]
    found = parse(examples, write(tmp_path))
    expected = [
        ("nsubj", "She", "see"),
        ("aux", "did", "see"),
        ("advmod", "n't", "see"),
        ("det", "the", "cat"),
        ("dobj", "cat", "see"),
        ("punct", ",", "ran"),
        ("det", "the", "cat"),
        ("nsubj", "cat", "ran"),
        ("parataxis", "ran", "see"),
        ("punct", ".", "see"),
    ]
    assert [spelt(FIRST, relation) for relation in found["one"]] == expected
    assert {relation.text for relation in found["one"]} == {0}
    by_label = {relation.label: relation for relation in found["one"]}
    assert by_label["dobj"].dependent == (19, 22)
    assert by_label["nsubj"].dependent == (28, 31)
    assert [spelt("Red cars!", r) for r in found["two"] if r.text == 0] == [
        ("amod", "Red", "cars"),
        ("punct", "!", "cars"),
    ]
    assert [relation._replace(text=0) for relation in found["two"] if relation.text == 1] == list(
        found["one"]
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            SENTENCES.replace("\t4\tnsubj", "\t44\tnsubj"),
            "sentence first: word 1 has head 44, which is no word",
        ),
        (
            SENTENCES.replace("\t4\tnsubj", "\t_\tnsubj"),
            "sentence first: word 1 has head None, which is no word",
        ),
        (SENTENCES.replace("\t4\tnsubj", "\tsee\tnsubj"), "is not readable as CoNLL-U"),
        (SENTENCES.replace("obj\t_\tSpaceAfter=No", "obj\t_"), "lacks columns: CoNLL-U has 10"),
        (SENTENCES.replace("\t", " "), "is not readable as CoNLL-U"),
        (SENTENCES.replace("# text = She", "# text = He"), "sentence first: 'She' is not in its text"),
        (SENTENCES.encode("utf-16"), "is not readable as CoNLL-U"),
        ("", "holds no sentence"),
    ],
)
def test_broken_conllu(tmp_path: Path, content: str | bytes, message: str):
    path = write(tmp_path, content)
    found = error_of([Example("one", FIRST)], path)
    assert message in found
    assert found.startswith(str(path))


def test_direct_object_has_one_name_in_all_schemes():
    assert canonical("obj") == canonical("dobj") == "dobj"
    assert canonical("nsubjpass") == canonical("nsubj:pass") == "nsubj:pass"
    assert canonical("iobj") == "iobj"


def test_word_pieces_of_contractions_and_repeated_words(tmp_path: Path):
    example = Example("one", FIRST)
    relations = parse([example], write(tmp_path))["one"]
    layout = layouts(load_tokenizer("tiny"), [example])[0]
    assert " ".join(layout.tokens) == "[CLS] she didn ' t see the cat , the cat ran . [SEP]"
    pairs = {
        label: [(d.tolist(), h.tolist()) for d, h in found]
        for label, found in token_pairs(layout, relations).items()
    }
    assert pairs["nsubj"] == [([1], [5]), ([10], [11])]
    assert pairs["dobj"] == [([7], [5])]
    assert pairs["advmod"] == [([2, 3, 4], [5])]
    assert pairs["aux"] == [([2], [5])]
    assert pairs["det"] == [([6], [7]), ([9], [10])]


def test_word_pieces_of_the_second_text_and_of_byte_level_tokens():
    texts = ("The cat saw it .", "A cat barked at the cat .")
    layout = layouts(byte_level_tokenizer(), [Example("pair", *texts)])[0]
    for text in (0, 1):
        for start, word in [(texts[text].rindex(word), word) for word in ("cat", ".")]:
            found = pieces(layout, text, (start, start + len(word)))
            assert len(found)
            assert set(layout.text[found]) == {text}
            assert "".join(texts[text][a:b] for a, b in layout.spans[found]) == word


def test_pieces_of_every_word_are_all_its_pieces_and_no_others():
    text = "Mélanie unhesitatingly ate crêpes , quasi-raw"
    layout = layouts(load_tokenizer("tiny"), [Example("one", text)])[0]
    position, taken = 0, []
    for word in text.split():
        start = text.index(word, position)
        position = start + len(word)
        found = pieces(layout, 0, (start, position))
        assert "".join(text[a:b] for a, b in layout.spans[found]) == word
        taken += found.tolist()
    assert taken == list(range(1, len(layout) - 1))


def test_pairs_of_words_that_truncation_took_are_left_out():
    example = Example("one", "We saw him before the big dog ran")
    layout = layouts(load_tokenizer("tiny"), [example], max_tokens=8)[0]
    relations = [Relation("nsubj", 0, (0, 2), (3, 6)), Relation("amod", 0, (22, 25), (26, 29))]
    found = token_pairs(layout, relations)
    assert list(found) == ["nsubj"]
    assert np.concatenate(found["nsubj"][0]).tolist() == [1, 2]


def pieces(layout: Layout, text: int, span: tuple[int, int]) -> np.ndarray:
    """Positions of the tokens of one text that overlap a character span."""
    [found] = piece_ranges(layout, text, np.array([span]))
    return np.arange(*found)


def test_treebank_words_are_found_where_they_stand(data_dir: Path):
    path = data_dir / "ud_english_ewt" / "en_ewt-ud-dev.conllu"
    sentences = read_conllu(path)
    assert len(sentences) == 2001
    words = 0
    for sentence in sentences:
        text = sentence_text(sentence)
        spans = syntax._word_spans(sentence, str(path))
        simple = [word for word in sentence if isinstance(word["id"], int)]
        assert list(spans) == [word["id"] for word in simple]
        starts = [spans[word["id"]][0] for word in simple]
        assert starts == sorted(starts)
        words += len(simple)
        divided = {token["id"] for token in surface(sentence) if isinstance(token["id"], int)}
        for word in simple:
            written = text[slice(*spans[word["id"]])]
            assert written == word["form"] or word["id"] not in divided
        # Between the tokens as written there is nothing but blanks.
        covered = {position for start, end in spans.values() for position in range(start, end)}
        assert all(text[position].isspace() for position in set(range(len(text))) - covered)
    assert words == 25147


def test_treebank_relations_are_as_many_as_its_words_with_a_head(data_dir: Path):
    path = data_dir / "ud_english_ewt" / "en_ewt-ud-dev.conllu"
    sentences = [s for s in read_conllu(path) if s.metadata["text"]][:50]
    examples = [Example(s.metadata["sent_id"], s.metadata["text"]) for s in sentences]
    found = parse(examples, path)
    for sentence in sentences:
        labels = [w["deprel"] for w in sentence if isinstance(w["id"], int) and w["head"]]
        expected = ["dobj" if label == "obj" else label for label in labels]
        assert [relation.label for relation in found[sentence.metadata["sent_id"]]] == expected


SPACY_EXAMPLES = [
    Example("one", "The old dog quickly chased the cat ."),
    Example("two", "She runs .", "He didn't eat it ."),
]


def test_spacy_relations(spacy_parser: str):
    found = parse(SPACY_EXAMPLES, spacy_parser)
    text = SPACY_EXAMPLES[0].text_a
    relations = [spelt(text, relation) for relation in found["one"]]
    expected = {("nsubj", "dog", "chased"), ("dobj", "cat", "chased"), ("amod", "old", "dog")}
    assert {*expected, ("advmod", "quickly", "chased")} <= set(relations)
    assert "obj" not in {label for label, _, _ in relations}
    assert len(relations) == len(text.split()) - 1
    second = {spelt(SPACY_EXAMPLES[1].text_b, relation) for relation in found["two"] if relation.text == 1}
    assert {("nsubj", "He", "eat"), ("advmod", "n't", "eat"), ("dobj", "it", "eat")} <= second


def test_cache_is_used_and_equals_a_fresh_parse(spacy_parser: str, tmp_path: Path, monkeypatch):
    fresh = parse(SPACY_EXAMPLES, spacy_parser)
    assert parse(SPACY_EXAMPLES, spacy_parser, tmp_path / "cache") == fresh
    (stored,) = (tmp_path / "cache").iterdir()

    def refuse(*_):
        raise AssertionError("the texts are parsed again")

    with monkeypatch.context() as patch:
        patch.setattr(pipelines, "_parse_texts", refuse)
        assert parse(SPACY_EXAMPLES, spacy_parser, tmp_path / "cache") == fresh
        assert parse(SPACY_EXAMPLES[::-1], spacy_parser, tmp_path / "cache") == fresh
        with pytest.raises(AssertionError, match="parsed again"):
            parse([*SPACY_EXAMPLES, Example("three", "It is new .")], spacy_parser, tmp_path / "cache")
    parse(SPACY_EXAMPLES[:1], spacy_parser, tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert set(json.loads(stored.read_text())) == {text for one in SPACY_EXAMPLES for text in one.texts}


def test_tags_of_conllu_words_and_of_those_within_a_multiword(tmp_path: Path):
    path = tmp_path / "trees.conllu"
    path.write_text(SENTENCES)
    text = "She didn't see the cat, the cat ran."
    [found] = tags([Example("one", "Red cars!", text)], path).values()
    spelt_out = [(tag.text, (("Red cars!", text)[tag.text])[slice(*tag.word)], tag.upos) for tag in found]
    assert spelt_out[:3] == [(0, "Red", "ADJ"), (0, "cars", "NOUN"), (0, "!", "PUNCT")]
    assert spelt_out[3:7] == [(1, "She", "PRON"), (1, "did", "AUX"), (1, "n't", "PART"), (1, "see", "VERB")]
    assert len(found) == 3 + 11


def test_gold_tags_of_the_bundled_corpus_cover_its_words():
    [example] = bundled_examples("mrpc", 1, 0)
    found = tags([example])[example.id]
    assert found == example.tags
    assert {tag.text for tag in found} == {0, 1}
    words = {(relation.text, relation.dependent) for relation in example.relations}
    assert words < {(tag.text, tag.word) for tag in found}
    assert {"NOUN", "VERB", "PUNCT"} <= {tag.upos for tag in found}


def test_choices_are_parsed_as_their_sequences(tmp_path: Path):
    path = tmp_path / "trees.conllu"
    path.write_text(SENTENCES)
    example = Example("q", "Red cars!", choices=("Red cars!", "She didn't see the cat, the cat ran."))
    found = parse([example], path)
    assert list(found) == ["q#0", "q#1"]
    assert {relation.text for relation in found["q#1"]} == {0, 1}
