from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from analysis.cache import digest
from analysis.encoders.finetuning import finetune
from analysis.encoders.interventions import predict
from analysis.encoders.models import load_encoder
from analysis.papers.michel2019.pruning import course
from analysis.texts.glue import load_examples

module = import_module("analysis.papers.michel2019.pruning")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A course after four tenths and all of the steps, and the arguments that made it."""
    folder = tmp_path_factory.mktemp("course")
    train, dev = (load_examples("toy-mrpc", split=split, n=24, seed=0) for split in ("train", "dev"))
    finetune("tiny", "toy-mrpc", train, dev, folder / "mrpc-0", epochs=1, batch_size=4, learning_rate=1e-3)
    arguments = ("tiny", "toy-mrpc", folder / "mrpc-0", None, dev, train[:6], [0.4, 1.0], folder / "cache")
    return course(*arguments), arguments


def test_course_is_that_of_the_checkpoint(run):
    answers, (_, task, checkpoint, _, dev, *_, folder) = run
    assert answers.dims == ("fraction", "intervention", "sequence", "class")
    last = predict(load_encoder(checkpoint, task=task), dev, []).sel(intervention="none")
    whole = answers.sel(intervention="none")
    assert np.abs(whole.sel(fraction=1.0) - last).max() < 1e-5
    assert np.abs(whole.sel(fraction=0.4) - last).max() > 1e-3
    assert not [path for path in folder.iterdir() if path.is_dir()]  # the classifiers are gone


def test_course_is_cached_by_all_that_it_depends_on(run, monkeypatch):
    _, (*before, dev_sample, train_sample, fractions, folder) = run
    monkeypatch.setattr(module, "cached", lambda folder, name, parts, make: {"logits": digest(parts)})

    def key(texts=dev_sample, **options):
        return course(*before, texts, train_sample, fractions, folder, **options)

    other = [replace(dev_sample[0], text_a="Other words."), *dev_sample[1:]]
    keys = [key(), key(other), key(precision="bfloat16"), key(device="cuda")]
    for library in (module.torch, module.transformers):
        monkeypatch.setattr(library, "__version__", "0")
        keys.append(key())
    assert len({*keys}) == 6
