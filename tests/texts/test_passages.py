from pathlib import Path
from random import Random

import pytest
from architectures import byte_level_tokenizer
from treebanks import write

from analysis.encoders.layout import layouts
from analysis.encoders.models import load_tokenizer
from analysis.texts.passages import Paragraphs, bundled_documents, chunks, documents, load_passages, passage

TOKENIZER = load_tokenizer("tiny")
WORDS = "unhesitatingly the antidisestablishmentarian cat said nothing about photosynthesis".split()
WIKITEXT = (
    " = First Article = \r\n \r\n A well @-@ known cat , 1 @,@ 200 years old . \r\n = = Section = = \r\n"
    " It weighed 3 @.@ 5 kg ( a lot ) . She did n't care . \r\n \r\n = Second = \r\n"
    ' He said " yes " . It \'s so . \r\n = = = Deeper = = = \r\n One more ; really ! \r\n'
)


def text(words: int, seed: int = 0) -> str:
    return " ".join(Random(seed).choices(WORDS, k=words)) + "."


def test_chunks_fill_the_budget_with_consecutive_paragraphs():
    units = [text(length, seed) for seed, length in enumerate((5, 9, 4, 30, 2, 6, 3))]
    result = chunks(Paragraphs("doc", units), TOKENIZER, 40)
    assert [unit for chunk in result for unit in chunk.texts] == units[: sum(len(c.texts) for c in result)]
    for chunk in result[:-1]:
        sizes = [len(TOKENIZER.tokenize(unit)) for unit in chunk.texts]
        assert sum(sizes) >= 40
        assert sum(sizes[:-1]) < 40 or len(sizes) == 2
    assert [chunk.name for chunk in result] == [f"doc-{number}" for number in range(len(result))]


@pytest.mark.parametrize("kind", ["wordpiece", "byte-level"])
@pytest.mark.parametrize("budget", [12, 25, 60])
def test_passages_keep_their_pieces_when_they_are_tokenised_again(kind: str, budget: int):
    tokenizer = TOKENIZER if kind == "wordpiece" else byte_level_tokenizer()
    special = tokenizer.num_special_tokens_to_add(pair=True)
    for seed in range(20):
        chunk = Paragraphs(f"{seed}", [text(20, seed), text(20, seed + 100), text(3, seed + 200)])
        example = passage(chunk, tokenizer, budget, Random(seed))
        if example is None:
            continue
        (layout,) = layouts(tokenizer, [example], budget + special)
        assert layout.cut == 0
        whole = " ".join(chunk.texts)
        assert all(part in whole for part in example.texts)
        if kind == "wordpiece":  # whole words: what is left are pieces of the whole text, in a row
            before, after = TOKENIZER.tokenize(whole), TOKENIZER.tokenize(example.text_b)
            assert any(before[i : i + len(after)] == after for i in range(len(before)))
            assert not after[0].startswith("##")


def test_cuts_take_from_both_ends_of_the_longer_text():
    chunk = Paragraphs("long", ["cat " * 10, " ".join(f"a{number}" for number in range(100))])
    ends = [passage(chunk, TOKENIZER, 60, Random(seed)).text_b.split() for seed in range(10)]
    assert all(words[0] != "a0" and words[-1] != "a99" for words in ends)
    assert len({words[0] for words in ends}) > 3
    assert passage(chunk, TOKENIZER, 60, Random(0)).text_a.split() == ["cat"] * 10


def test_the_division_is_random_and_no_text_is_empty():
    chunk = Paragraphs("many", [f"Sentence {number}." for number in range(6)])
    first_texts = {passage(chunk, TOKENIZER, 100, Random(seed)).text_a for seed in range(40)}
    assert first_texts == {" ".join(chunk.texts[:end]) for end in range(1, 6)}


def test_wikitext(tmp_path: Path):
    path = tmp_path / "wiki.test.raw"
    path.write_bytes(WIKITEXT.encode())
    first = ["A well-known cat, 1,200 years old.", "It weighed 3.5 kg (a lot). She did n't care."]
    second = ['He said "yes". It\'s so.', "One more; really!"]
    assert list(documents(path, None, 0)) == [("wiki.test-1", first), ("wiki.test-2", second)]


def test_bundled():
    passages, again, others = (load_passages("bundled", 8, seed, TOKENIZER, 64) for seed in (0, 0, 1))
    assert len(passages) == len({example.id for example in passages}) == 8
    assert passages == again != others
    whole = load_passages("bundled", None, 0, TOKENIZER)
    assert load_passages("bundled", 10**6, 0, TOKENIZER) == whole


def test_bundled_paragraphs_are_those_of_the_trees(tmp_path: Path):
    path = write(tmp_path, bundled_documents(5, "dev", 0))
    assert list(documents("bundled", 5, 0)) == list(documents(path, None, 0))


def test_real_wikitext(data_dir: Path):
    articles = list(documents(data_dir / "wikitext2_raw_test" / "wiki.test.raw", None, 0))
    paragraphs = [paragraph for article in articles for paragraph in article.texts]
    assert (len(articles), len(paragraphs)) == (62, 2185)
    text = " ".join(paragraphs)
    assert not [mark for mark in ("@-@", "@,@", "@.@", "\r") if mark in text]
