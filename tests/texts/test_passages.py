"""Passages: paragraphs of every source, budgets that survive a second tokenisation, the same for the same seed."""

from pathlib import Path
from random import Random

import datasets
import pytest
from architectures import byte_level_tokenizer

from analysis.encoders.layout import layouts
from analysis.encoders.models import load_tokenizer
from analysis.texts.passages import Article, Chunk, chunks, documents, load_passages, passage

TOKENIZER = load_tokenizer("tiny")
WORDS = (
    "unhesitatingly the antidisestablishmentarian cat said nothing whatsoever about photosynthesis".split()
)
WIKITEXT = (
    " = First Article = \r\n \r\n A well @-@ known cat , 1 @,@ 200 years old . \r\n = = Section = = \r\n"
    " It weighed 3 @.@ 5 kg ( a lot ) . She did n't care . \r\n \r\n = Second = \r\n"
    ' He said " yes " . It \'s so . \r\n = = = Deeper = = = \r\n One more ; really ! \r\n'
)


def text(words: int, seed: int = 0) -> str:
    return " ".join(Random(seed).choices(WORDS, k=words)) + "."


def test_chunks_fill_the_budget_with_consecutive_paragraphs():
    units = [text(length, seed) for seed, length in enumerate((5, 9, 4, 30, 2, 6, 3))]
    found = chunks(Article("doc", [[unit] for unit in units]), TOKENIZER, 40, "paragraph")
    assert [unit for chunk in found for unit in chunk.units] == units[: sum(len(c.units) for c in found)]
    for chunk in found[:-1]:
        sizes = [len(TOKENIZER.tokenize(unit)) for unit in chunk.units]
        assert sum(sizes) >= 40
        assert sum(sizes[:-1]) < 40 or len(sizes) == 2
    assert [chunk.name for chunk in found] == [f"doc-{number}" for number in range(len(found))]


@pytest.mark.parametrize("kind", ["wordpiece", "byte-level"])
@pytest.mark.parametrize("budget", [12, 25, 60])
def test_passages_keep_their_pieces_when_they_are_tokenised_again(kind: str, budget: int):
    tokenizer = TOKENIZER if kind == "wordpiece" else byte_level_tokenizer()
    special = tokenizer.num_special_tokens_to_add(pair=True)
    for seed in range(20):
        chunk = Chunk(f"{seed}", [text(20, seed), text(20, seed + 100), text(3, seed + 200)])
        found = passage(chunk, tokenizer, budget, Random(seed))
        if found is None:
            continue
        (layout,) = layouts(tokenizer, [found], budget + special)
        assert layout.cut == 0
        whole = " ".join(chunk.units)
        assert all(part in whole for part in found.texts)
        if kind == "wordpiece":  # whole words: what is left are pieces of the whole text, in a row
            before, after = TOKENIZER.tokenize(whole), TOKENIZER.tokenize(found.text_b)
            assert any(before[i : i + len(after)] == after for i in range(len(before)))
            assert not after[0].startswith("##")


def test_cuts_take_from_both_ends_of_the_longer_text():
    chunk = Chunk("long", ["cat " * 10, " ".join(f"a{number}" for number in range(100))])
    ends = [passage(chunk, TOKENIZER, 60, Random(seed)).text_b.split() for seed in range(10)]
    assert all(found[0] != "a0" and found[-1] != "a99" for found in ends)
    assert len({found[0] for found in ends}) > 3
    assert passage(chunk, TOKENIZER, 60, Random(0)).text_a.split() == ["cat"] * 10


def test_the_division_is_random_and_no_text_is_empty():
    chunk = Chunk("many", [f"Sentence {number}." for number in range(6)])
    found = {passage(chunk, TOKENIZER, 100, Random(seed)).text_a for seed in range(40)}
    assert found == {" ".join(chunk.units[:end]) for end in range(1, 6)}


def test_wikitext(tmp_path: Path):
    path = tmp_path / "wiki.test.raw"
    path.write_bytes(WIKITEXT.encode())
    found = list(documents(path, None, 0))
    assert [one.name for one in found] == ["wiki.test-1", "wiki.test-2"]
    assert [[" ".join(p) for p in one.paragraphs] for one in found] == [
        ["A well-known cat, 1,200 years old.", "It weighed 3.5 kg (a lot). She did n't care."],
        ['He said "yes". It\'s so.', "One more; really!"],
    ]


def test_bundled():
    found = load_passages("bundled", 8, 0, TOKENIZER, 64)
    assert len(found) == len({one.id for one in found}) == 8
    assert found == load_passages("bundled", 8, 0, TOKENIZER, 64)
    assert found != load_passages("bundled", 8, 1, TOKENIZER, 64)


def test_all_bundled_passages_if_there_are_no_more():
    every = load_passages("bundled", None, 0, TOKENIZER, unit="sentence")
    assert load_passages("bundled", 10**6, 0, TOKENIZER, unit="sentence") == every
    assert len(load_passages("bundled", 201, 0, TOKENIZER, 64, "sentence")) == 201


def test_hub(monkeypatch):
    """One passage an article, streamed; headings and lists are left out."""
    articles = [
        {"id": f"{number}", "text": f"It was {number}.\n\nHistory\n\nIt went on.\n\nA list item\n\nThe end."}
        for number in range(9)
    ]
    asked = []

    def load_dataset(name: str, *arguments, **options):
        asked.append((name, *arguments, options["streaming"]))
        return datasets.IterableDataset.from_generator(lambda: iter(articles))

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    found = load_passages("hub", 4, 0, TOKENIZER)
    assert asked == [("wikimedia/wikipedia", "20231101.en", True)]
    assert len(found) == len({one.id.split("-")[1] for one in found}) == 4
    number = found[0].id.split("-")[1]
    assert " ".join(found[0].texts) == f"It was {number}. It went on. The end."


def test_real_wikitext(data_dir: Path):
    found = list(documents(data_dir / "wikitext2_raw_test" / "wiki.test.raw", None, 0))
    assert len(found) == 62
    assert sum(len(one.paragraphs) for one in found) == 2185
    text = " ".join(paragraph[0] for one in found for paragraph in one.paragraphs)
    assert not [mark for mark in ("@-@", "@,@", "@.@", "\r") if mark in text]
