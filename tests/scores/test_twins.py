"""Twins: maps of relative position alone, against loops, on heads that are such maps and on heads that are not."""

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.scores.extraction import extract
from analysis.scores.maps import MAPS, Source, find_source, twin
from analysis.statistics.significance import published_table
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse
from analysis.texts.treebank import treebank_examples

Head = Callable[[Layout], np.ndarray]


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def singles():
    return load_examples("sst-2", "bundled", "dev", 5)


@pytest.fixture(scope="module")
def examples(singles):
    """Pairs and single texts of several lengths."""
    return [*load_examples("mrpc", "bundled", "dev", 5), *singles]


def planted(head: Head) -> Source:
    """Heads that all attend as `head` says for a sequence; no model runs."""

    def read_planted(encoder, batch, read, check=False):
        longest = max(map(len, batch))
        maps = torch.zeros(len(batch), encoder.heads, longest, longest)
        for own, layout in zip(maps, batch, strict=True):
            own[:, : len(layout), : len(layout)] = torch.from_numpy(head(layout)).float()
        for layer in range(encoder.layers):
            read(layer, maps)

    return Source("planted", read_planted)


def maps_of(encoder: Encoder, sequences: list[Layout], source: str | Source, budget: int = 2048):
    """The maps of every sequence, (layer, head, token, token), made in batches of one."""
    ready, found = find_source(source).prepared(encoder, sequences, budget, progress=False), []
    for layout in sequences:
        layers = []
        ready(encoder, [layout], lambda _, maps, layers=layers: layers.append(maps[0].numpy()))
        found.append(np.stack(layers))
    return found


def kind(layout: Layout, position: int) -> str:
    return {"[CLS]": "cls", "[SEP]": "sep"}.get(layout.tokens[position], "word")


def place(layout: Layout, row: int, column: int) -> tuple:
    special = kind(layout, column)
    return kind(layout, row), special if special != "word" else column - row


def looped(sequences: list[Layout], maps: list[np.ndarray]) -> list[np.ndarray]:
    """The twins of these maps, cell by cell."""
    seen = defaultdict(list)
    for layout, found in zip(sequences, maps, strict=True):
        for row, column in np.ndindex(found.shape[2:]):
            seen[place(layout, row, column)].append(found[:, :, row, column])
    means = {where: np.mean(values, axis=0) for where, values in seen.items()}
    result = []
    for layout in sequences:
        size = range(len(layout))
        cells = np.array([[means[place(layout, row, column)] for column in size] for row in size])
        result.append(np.moveaxis(cells / cells.sum(axis=1, keepdims=True), (2, 3), (0, 1)))
    return result


@pytest.mark.parametrize("of", ["attention", "shuffled"])
def test_twins_equal_loops(tiny, examples, of):
    sequences = layouts(tiny.tokenizer, examples)
    expected = looped(sequences, maps_of(tiny, sequences, of))
    for found, own in zip(maps_of(tiny, sequences, twin(of=of)), expected, strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-4, atol=1e-7)


def test_rows_sum_to_one_with_nothing_on_padding(tiny, examples):
    sequences = layouts(tiny.tokenizer, examples)
    found = []
    MAPS["twin"].prepared(tiny, sequences, progress=False)(tiny, sequences, lambda *read: found.append(read))
    assert [layer for layer, _ in found] == list(range(tiny.layers))
    longest = max(map(len, sequences))
    for _, maps in found:
        assert maps.shape == (len(sequences), tiny.heads, longest, longest)
        torch.testing.assert_close(maps.sum(-1), torch.ones(maps.shape[:3]))
        for layout, own in zip(sequences, maps, strict=True):
            assert (own[..., len(layout) :] == 0).all()


def at(layout: Layout, *marks: np.ndarray) -> np.ndarray:
    """Every token attends to the marked ones, the same to all marks of a kind and the same to each kind."""
    return np.mean([np.tile(mark / mark.sum(), (len(layout), 1)) for mark in marks], axis=0)


IDEAL = {
    "sep": lambda layout: at(layout, layout.sep),
    "cls": lambda layout: at(layout, layout.cls),
    "itself": lambda layout: np.eye(len(layout)),
    "uniform words": lambda layout: at(layout, layout.text >= 0),
}


@pytest.mark.parametrize("name", IDEAL)
def test_ideal_heads_of_position_equal_their_twins(tiny, examples, singles, name):
    if name in ("itself", "uniform words"):  # the only [SEP], or as many words, in all sequences
        examples = singles if name == "itself" else singles[:1]
    source, relations = planted(IDEAL[name]), parse(examples)
    real, control = (
        extract(tiny, examples, relations, maps=of, progress=False) for of in (source, twin(source))
    )
    np.testing.assert_allclose(control, real, rtol=1e-6, atol=1e-6)


def previous(layout: Layout) -> np.ndarray:
    """Every token attends to the one before it, [CLS] to itself."""
    found = np.eye(len(layout), k=-1)
    found[0, 0] = 1
    return found


def test_the_first_word_leaves_its_mark_on_a_previous_token_head(tiny, singles):
    """Its first word attends to [CLS], so that all words of the twin attend to it a little."""
    real, control = (
        extract(tiny, singles, roles=["offset_-1"], maps=of, progress=False)
        for of in (planted(previous), twin(planted(previous)))
    )
    tokens = real["tokens"].values
    leaked = len(singles) / (tokens - 2).sum()
    others = (tokens - 3) / (1 + leaked)  # of the words; the first one and [SEP] know one token alone
    expected = tokens / (tokens - 1) * (2 + others)
    np.testing.assert_allclose(control[:, 0, 2, 3], expected, rtol=1e-5)
    assert (control > 0.85 * real).all()
    np.testing.assert_allclose(real, (real["tokens"] + 0 * real).transpose(*real.dims), rtol=1e-6)


def test_a_head_that_follows_the_tree_beats_its_twin(tiny, examples):
    relations = parse(examples)

    def follow(layout: Layout) -> np.ndarray:
        found = np.zeros((len(layout), len(layout)))
        for relation in relations[layout.id]:
            dependent, head = (
                (layout.text == relation.text) & (layout.spans[:, 0] < end) & (layout.spans[:, 1] > start)
                for start, end in (relation.dependent, relation.head)
            )
            found += np.outer(dependent, head)
        found[found.sum(axis=1) == 0] = layout.cls
        return found / found.sum(axis=1, keepdims=True)

    source = planted(follow)
    roles = ["nsubj", "dobj", "syntactic"]
    real, control = (
        extract(tiny, examples, relations, roles, maps=of, progress=False) for of in (source, twin(source))
    )
    reached = real.sel(role="nsubj") / real["tokens"]  # 1, or less where a word has two heads
    assert (reached > 0.4).all()
    assert (reached.median("sequence") > 0.8).all()
    share = control.mean("sequence") / real.mean("sequence")
    assert (share < 0.7).all()
    assert (control < real).where(real.notnull(), True).all()


RATIOS = {
    "syntactic": 0.65,
    "nsubj": 0.55,
    "dobj": 0.49,
    "amod": 0.68,
    "advmod": 0.63,
    "det": 0.42,
    "case": 0.37,
}


def test_heads_of_relations_keep_a_part_of_their_score_for_position_alone(data_dir: Path):
    """Of the labelled heads of all 400 sentences, the twins have the median shares in RATIOS."""
    examples = treebank_examples(data_dir / "ud_english_ewt" / "en_ewt-ud-dev.conllu", 120)
    encoder, relations = load_encoder("minilm"), parse(examples)
    real, control = (
        extract(encoder, examples, relations, [*RATIOS], maps=maps, progress=False)
        for maps in ("attention", "twin")
    )
    heads, copies = (published_table(found).set_index(["role", "layer", "head"]) for found in (real, control))
    labelled = heads["assigned"].fillna(False).astype(bool)
    share = (copies["mean"] / heads["mean"])[labelled].groupby("role").median()
    for role, ratio in RATIOS.items():
        assert share[role] == pytest.approx(ratio, abs=0.15), role
    assert copies["assigned"].sum() < labelled.sum() / 2
