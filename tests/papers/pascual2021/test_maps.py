import numpy as np
import pytest
import torch

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder
from analysis.encoders.tap import Reading, ValueReader, read_layers
from analysis.papers.pascual2021.attribution import MAPS, MapStore
from analysis.scores.extraction import extract
from analysis.scores.maps import Source, by_batch, twin
from analysis.statistics.roles import compose
from analysis.statistics.significance import UNDEFINED, Rule, role_table
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse

SIZE = 12  # of the value vectors of the tiny encoder
WORDS = "the old dog saw a red cat and the cat saw it and ran to the house again ."


@pytest.fixture(scope="module")
def batch(tiny: Encoder) -> list[Layout]:
    """Sequences with fewer tokens than a value vector has entries, with equally many, one more, and many more."""
    words = WORDS.split()
    texts = [" ".join(words[:count]) for count in (4, SIZE - 2, SIZE - 1, len(words))]
    result = layouts(tiny.tokenizer, [Example(f"{number}", text) for number, text in enumerate(texts)])
    assert [len(layout) for layout in result] == [6, SIZE, SIZE + 1, len(words) + 2]
    return result


@pytest.mark.parametrize("source", ["effective", "effective_sum"])
def test_against_the_null_space_by_singular_values(tiny: Encoder, batch, source: str):
    layers: list[torch.Tensor] = []
    MAPS[source].prepare(tiny, batch)(batch, lambda _, maps: layers.append(maps), check=True)
    readings: list[Reading] = []
    read_layers(tiny, batch, ValueReader(lambda _, reading: readings.append(reading)))
    for maps, reading in zip(layers, readings, strict=True):
        for number, head in np.ndindex(len(batch), tiny.heads):
            size = len(batch[number])
            result = maps[number, head, :size].double().numpy()
            attention, values = (part[number, head, :size].double().numpy() for part in reading[:2])
            attention = attention[:, :size]
            basis = np.hstack([values, np.ones((size, 1))]) if source == "effective_sum" else values
            left, _, _ = np.linalg.svd(basis)
            null = left[:, basis.shape[1] :]
            expected = attention - attention @ null @ null.T
            np.testing.assert_allclose(result[:, :size], expected, atol=1e-5)
            np.testing.assert_allclose(result[:, :size] @ values, attention @ values, atol=1e-5)
            assert not result[:, size:].any()


def test_entropies_are_undefined(tiny: Encoder):
    examples = load_examples("toy-mrpc", split="dev", n=6)
    relations = parse(examples)
    scores = extract(tiny, examples, relations, maps="effective", progress=False)
    assert scores.attrs["undefined"] == "block"
    assert scores.sel(role="block").isnull().all()
    assert (scores.units.sel(role="block") == 0).all()
    assert scores.sel(role=["own_sentence", "sep"]).notnull().all()
    for weighted, status in ((True, UNDEFINED), (False, "tested")):
        table = role_table(compose(scores, weighted_block=weighted), Rule(minimum=2, resamples=99))
        assert (table.loc[table["role"] == "block", "status"] == status).all()
        assert (table.loc[table["role"] == "sep", "status"] == "tested").all()


def test_scores_are_those_of_the_source_and_maps_are_made_once(tiny: Encoder):
    examples = load_examples("toy-mrpc", n=6)
    made: list[str] = []

    def counted(encoder, batch, read, check=False):
        made.extend(layout.id for layout in batch)
        read_layers(encoder, batch, read, check)

    store = MapStore(Source("counted", by_batch(counted)))
    options = {"roles": ["window_2", "cls", "block"], "progress": False}
    real = extract(tiny, examples, **options)
    for budget in (2048, 100):
        result = extract(tiny, examples, maps=store.source, budget=budget, **options)
        np.testing.assert_allclose(result, real, rtol=1e-4)
    twins = [extract(tiny, examples, maps=twin(of=of), **options) for of in (store.source, "attention")]
    np.testing.assert_allclose(*twins, rtol=1e-4)
    assert sorted(made) == sorted(example.id for example in examples)
    assert result.attrs["maps"] == "counted"
