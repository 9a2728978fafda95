"""The course of fine-tuning with a tiny encoder: it is that of the checkpoint, and it is kept."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from analysis.cache import digest
from analysis.encoders.finetuning import finetune
from analysis.encoders.interventions import predict
from analysis.encoders.models import load_encoder
from analysis.papers.michel2019.course import course
from analysis.texts.glue import load_examples

module = import_module("analysis.papers.michel2019.course")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A course of the tiny encoder on four tenths and all of its steps, and where it was kept."""
    folder = tmp_path_factory.mktemp("course")
    train, dev = (load_examples("toy-mrpc", split=split, n=24, seed=0) for split in ("train", "dev"))
    finetune("tiny", "toy-mrpc", train, dev, folder / "mrpc-0", epochs=1, batch_size=4, learning_rate=1e-3)
    given = ("tiny", "toy-mrpc", folder / "mrpc-0", None, dev, train[:6], [0.4, 1.0], folder / "cache")
    return course(*given), given


def test_course_is_that_of_the_checkpoint(run):
    """The classifier after all steps answers as the checkpoint does, which the same recipe made."""
    found, (_, task, checkpoint, _, dev, *_, folder) = run
    assert found.dims == ("fraction", "intervention", "sequence", "class")
    last = predict(load_encoder(checkpoint, task=task), dev, []).sel(intervention="none")
    ends = found.sel(intervention="none")
    assert np.abs(ends.sel(fraction=1.0) - last).max() < 1e-5
    assert np.abs(ends.sel(fraction=0.4) - last).max() > 1e-3
    assert not [path for path in folder.iterdir() if path.is_dir()]  # the classifiers are gone


def test_course_is_kept_by_all_that_it_depends_on(run, monkeypatch):
    _, (*before, scored, measured, fractions, folder) = run
    monkeypatch.setattr(module, "cached", lambda folder, name, key, make: {"logits": digest(key)})

    def place(texts=scored, **options):
        return course(*before, texts, measured, fractions, folder, **options)

    other = [replace(scored[0], text_a="Other words."), *scored[1:]]
    found = [place(), place(other), place(precision="bfloat16"), place(device="cuda")]
    for library in (module.torch, module.transformers):
        monkeypatch.setattr(library, "__version__", "0")
        found.append(place())
    assert len({*found}) == 6
