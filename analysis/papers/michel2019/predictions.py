"""The answers of fine-tuned classifiers under interventions."""

from collections.abc import Callable, Sequence
from pathlib import Path

import xarray as xr

from analysis.encoders.interventions import Intervention, predict
from analysis.encoders.models import Encoder, load_encoder
from analysis.texts.examples import Example


def logits_under(
    interventions: Callable[[Encoder], list[Intervention]],
    weights: str | Path,
    task: str,
    examples: Sequence[Example],
    folder: Path,
    batch_size: int = 32,
    max_tokens: int = 128,
    device: str = "cpu",
    precision: str = "float32",
) -> xr.DataArray:
    """The logits of a checkpoint without and under the interventions (see `predict`), kept in `folder`.

    Raises InputError as `load_encoder` and `predict` do.
    """
    encoder = load_encoder(weights, device, precision, task)
    options = {"batch_size": batch_size, "max_tokens": max_tokens, "cache": folder}
    return predict(encoder, examples, interventions(encoder), **options)
