import numpy as np

from analysis.encoders.models import Encoder
from analysis.encoders.tap import read_layers
from analysis.papers.pascual2021.maps import MapStore
from analysis.scores.extraction import extract
from analysis.scores.maps import Source, twin
from analysis.texts.glue import load_examples


def test_scores_are_those_of_the_source_and_maps_are_made_once(tiny: Encoder):
    examples = load_examples("toy-mrpc", n=6)
    made: list[str] = []

    def counted(encoder, batch, read, check=False):
        made.extend(layout.id for layout in batch)
        read_layers(encoder, batch, read, check)

    store = MapStore(Source("counted", counted))
    options = {"roles": ["window_2", "cls", "block"], "progress": False}
    real = extract(tiny, examples, **options)
    for budget in (2048, 100):
        result = extract(tiny, examples, maps=store.source, budget=budget, **options)
        np.testing.assert_allclose(result, real, rtol=1e-4)
    own_rows, other = (
        extract(tiny, examples, maps=twin(of=of), **options) for of in (store.source, "attention")
    )
    np.testing.assert_allclose(own_rows, other, rtol=1e-4)
    assert sorted(made) == sorted(example.id for example in examples)
    assert result.attrs["maps"] == "counted"
