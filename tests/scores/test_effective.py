"""Effective attention leaves the head's output unchanged; it agrees with a null space from another decomposition."""

import numpy as np
import pytest
import torch

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.tap import Reading, ValueReader, read_layers
from analysis.scores.extraction import extract
from analysis.scores.maps import find_source, mean_row_entropy
from analysis.statistics.roles import compose
from analysis.statistics.significance import UNDEFINED, role_table
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse

SOURCES = ["effective", "effective_sum"]
SIZE = 12  # of the value vectors of the tiny encoder
WORDS = "the old dog saw a red cat and the cat saw it and ran to the house again ."


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load_encoder("tiny")


@pytest.fixture(scope="module")
def batch(tiny: Encoder) -> list[Layout]:
    """Sequences with fewer tokens than a value vector has entries, with equally many, one more, and many more."""
    words = WORDS.split()
    texts = [" ".join(words[:count]) for count in (4, SIZE - 2, SIZE - 1, len(words))]
    found = layouts(tiny.tokenizer, [Example(f"{number}", text) for number, text in enumerate(texts)])
    assert [len(layout) for layout in found] == [6, SIZE, SIZE + 1, len(words) + 2]
    return found


def read(encoder: Encoder, batch: list[Layout], source: str) -> torch.Tensor:
    found: list[torch.Tensor] = []
    find_source(source)(encoder, batch, lambda _, maps: found.append(maps), check=True)
    return torch.stack(found)


def readings(encoder: Encoder, batch: list[Layout]) -> list[Reading]:
    found: list[Reading] = []
    read_layers(encoder, batch, ValueReader(lambda _, reading: found.append(reading)))
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_the_head_gives_the_same(tiny: Encoder, batch, source: str):
    for maps, reading in zip(read(tiny, batch, source), readings(tiny, batch), strict=True):
        for number, layout in enumerate(batch):
            size = len(layout)
            given = maps[number, :, :size, :size] @ reading.values[number, :, :size]
            assert (given - reading.context[number, :, :size]).abs().max() < 1e-5


@pytest.mark.parametrize("source", SOURCES)
def test_against_the_null_space_by_singular_values(tiny: Encoder, batch, source: str):
    for maps, reading in zip(read(tiny, batch, source), readings(tiny, batch), strict=True):
        for (number, layout), head in [
            (each, head) for each in enumerate(batch) for head in range(tiny.heads)
        ]:
            size = len(layout)
            attention, values = (part[number, head, :size].double().numpy() for part in reading[:2])
            attention = attention[:, :size]
            values = np.hstack([values, np.ones((size, 1))]) if source == "effective_sum" else values
            left, _, _ = np.linalg.svd(values)
            null = left[:, values.shape[1] :]
            expected = attention - attention @ null @ null.T
            np.testing.assert_allclose(maps[number, head, :size, :size], expected, atol=1e-5)


@pytest.mark.parametrize("source", SOURCES)
def test_padding_has_nothing_and_changes_nothing(tiny: Encoder, batch, source: str):
    together = read(tiny, batch, source)
    for number, layout in enumerate(batch):
        size = len(layout)
        assert together[:, number, :, :size, size:].abs().sum() == 0
        alone = read(tiny, [layout], source)[:, 0]
        torch.testing.assert_close(together[:, number, :, :size, :size], alone, atol=1e-5, rtol=0)


def test_rows_are_no_distributions_but_may_keep_their_sums(tiny: Encoder, batch):
    found, sums = (read(tiny, batch, source)[:, -1] for source in SOURCES)
    assert found.min() < -1e-3
    assert sums.min() < -1e-3
    assert (found.sum(-1) - 1).abs().max() > 0.01
    torch.testing.assert_close(sums.sum(-1), torch.ones(sums.shape[:-1]), atol=1e-5, rtol=0)


def test_entropies_are_undefined(tiny: Encoder):
    examples = load_examples("mrpc", "bundled", "dev", 6)
    relations = parse(examples)
    scores = extract(
        tiny, examples, relations, maps="effective", statistics={"entropy": mean_row_entropy}, progress=False
    )
    assert scores.attrs["undefined"] == "block, entropy"
    for name in ("block", "entropy"):
        assert scores.sel(role=name).isnull().all()
        assert (scores.units.sel(role=name) == 0).all()
    assert scores.sel(role=["own_sentence", "sep"]).notnull().all()
    table = role_table(compose(scores), minimum=2, resamples=99)
    block = table[table["role"] == "block"]
    assert (block["status"] == UNDEFINED).all()
    assert block[["mean", "t", "p"]].isna().all(axis=None)
    assert block["assigned"].isna().all()
    assert (table.loc[table["role"] == "sep", "status"] == "tested").all()
    unweighted = role_table(compose(scores, weighted_block=False), minimum=2, resamples=99)
    assert (unweighted.loc[unweighted["role"] == "block", "status"] == "tested").all()
    attention = extract(tiny, examples, relations, progress=False)
    assert "undefined" not in attention.attrs
