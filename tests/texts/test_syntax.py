import shutil
from pathlib import Path

import pytest
import spacy
from studies import error_of
from treebanks import write

from analysis.encoders.layout import layouts, token_pairs
from analysis.encoders.models import load_tokenizer
from analysis.texts import pipelines
from analysis.texts.examples import Example, Relation
from analysis.texts.parses import Parse
from analysis.texts.syntax import parse, tags
from analysis.texts.treebank import read_sentences

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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path, SENTENCES)


def spelt(text: str, relation: Relation) -> tuple[str, str, str]:
    return relation.label, text[slice(*relation.dependent)], text[slice(*relation.head)]


def test_conllu_relations_by_hand(path: Path):
    relations = parse([Example("one", FIRST), Example("two", "Red cars!", FIRST)], path)
    expected = [
        ("nsubj", "She", "see"), ("aux", "did", "see"), ("advmod", "n't", "see"), ("det", "the", "cat"),
        ("dobj", "cat", "see"), ("punct", ",", "ran"), ("det", "the", "cat"), ("nsubj", "cat", "ran"),
        ("parataxis", "ran", "see"), ("punct", ".", "see"),
    ]  # fmt: skip
    assert [spelt(FIRST, relation) for relation in relations["one"]] == expected
    assert [relation.dependent for relation in relations["one"][4::3]] == [(19, 22), (28, 31)]  # cat, cat
    second = [relation for relation in relations["two"] if relation.text == 0]
    assert [spelt("Red cars!", relation) for relation in second] == [
        ("amod", "Red", "cars"), ("punct", "!", "cars"),
    ]  # fmt: skip
    assert relations["two"] == (*second, *(relation._replace(text=1) for relation in relations["one"]))


def test_relations_have_one_name_in_all_schemes():
    labels = ("obj", "dobj", "nsubjpass", "nsubj:pass", "iobj")
    relations = Parse([(label, 0, 1, 2, 3) for label in labels], []).relations()
    assert [relation.label for relation in relations] == "dobj dobj nsubj:pass nsubj:pass iobj".split()


def test_word_pieces_of_contractions_and_repeated_words(path: Path):
    example = Example("one", FIRST)
    relations = parse([example], path)["one"]
    layout = layouts(load_tokenizer("tiny"), [example])[0]
    assert " ".join(layout.tokens) == "[CLS] she didn ' t see the cat , the cat ran . [SEP]"
    located = token_pairs(layout, relations)
    for label, expected in {
        "nsubj": [([1], [5]), ([10], [11])],
        "advmod": [([2, 3, 4], [5])],
        "aux": [([2], [5])],
    }.items():
        assert [(dependent.tolist(), head.tolist()) for dependent, head in located[label]] == expected


def test_treebank_words_are_found_where_they_stand(data_dir: Path):
    path = data_dir / "ud_english_ewt" / "en_ewt-ud-dev.conllu"
    sentences = read_sentences(path)
    assert len(sentences) == 2001
    assert sum(len(sentence.words) for sentence in sentences) == 25147
    for sentence in sentences:
        spans = [tuple(span) for _, *span in sentence.parse.words]
        for word, span in zip(sentence.words, spans, strict=True):
            assert sentence.text[slice(*span)] == word.form or spans.count(span) > 1
        # Between the tokens as written there is nothing but spaces.
        covered = {position for start, end in spans for position in range(start, end)}
        assert all(sentence.text[position].isspace() for position in {*range(len(sentence.text))} - covered)


SPACY_EXAMPLES = [
    Example("one", "The old dog quickly chased the cat ."),
    Example("two", "She runs .", "He didn't eat it ."),
]


def test_spacy_relations(spacy_parser: str, tmp_path: Path):
    relations = parse(SPACY_EXAMPLES, spacy_parser)
    text = SPACY_EXAMPLES[0].text_a
    first = [spelt(text, relation) for relation in relations["one"]]
    expected = {("nsubj", "dog", "chased"), ("dobj", "cat", "chased"), ("amod", "old", "dog")}
    assert {*expected, ("advmod", "quickly", "chased")} <= set(first)
    assert len(first) == len(text.split()) - 1
    text, in_second = SPACY_EXAMPLES[1].text_b, [item for item in relations["two"] if item.text == 1]
    second = {spelt(text, relation) for relation in in_second}
    assert {("nsubj", "He", "eat"), ("advmod", "n't", "eat"), ("dobj", "it", "eat")} <= second
    for _ in range(2):  # written, then read
        assert parse(SPACY_EXAMPLES, spacy_parser, tmp_path) == relations


def pipeline(folder: Path, *components: str) -> Path:
    """A new spaCy pipeline of rules alone."""
    rules = spacy.blank("en")
    for component in components:
        rules.add_pipe(component)
    rules.to_disk(folder)
    return folder


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path):
    path = pipeline(tmp_path / "rules", "sentencizer")
    message = error_of(parse, SPACY_EXAMPLES, path, tmp_path / "cache")
    assert "rules' gives no relations: none of its components (sentencizer)" in message
    assert not (tmp_path / "cache").exists()


def test_the_cache_tells_texts_and_pipelines_of_one_name_and_version_apart(tmp_path: Path, monkeypatch):
    parsed = []

    def record(path: str, texts: list[str]) -> dict:
        parsed.append((Path(path).name, len(texts)))
        return dict.fromkeys(texts, Parse([], []))

    monkeypatch.setattr(pipelines, "_parse_texts", record)
    first, other = pipeline(tmp_path / "first"), pipeline(tmp_path / "other", "sentencizer")
    copied = Path(shutil.copytree(first, tmp_path / "copy"))
    for path in (first, other, copied, first):
        parse(SPACY_EXAMPLES, path, tmp_path / "cache")
    parse(SPACY_EXAMPLES[::-1], first, tmp_path / "cache")
    parse(SPACY_EXAMPLES[:1], first, tmp_path / "cache")
    assert parsed == [("first", 3), ("other", 3), ("first", 1)]
    for damaged in ("", "[1]"):
        for path in (tmp_path / "cache").iterdir():
            path.write_text(damaged)
        parse(SPACY_EXAMPLES, first, tmp_path / "cache")
    assert parsed[3:] == [("first", 3)] * 2


def test_tags_of_conllu_words_and_of_those_within_a_multiword(path: Path):
    texts = ("Red cars!", FIRST)
    [words] = tags([Example("one", *texts)], path).values()
    spelt_out = [(tag.text, texts[tag.text][slice(*tag.word)], tag.upos) for tag in words]
    assert spelt_out[:3] == [(0, "Red", "ADJ"), (0, "cars", "NOUN"), (0, "!", "PUNCT")]
    assert spelt_out[3:7] == [(1, "She", "PRON"), (1, "did", "AUX"), (1, "n't", "PART"), (1, "see", "VERB")]
    assert len(words) == 3 + 11


def test_choices_are_parsed_as_their_sequences(path: Path):
    relations = parse([Example("q", "Red cars!", choices=("Red cars!", FIRST))], path)
    assert list(relations) == ["q#0", "q#1"]
    assert {relation.text for relation in relations["q#1"]} == {0, 1}
