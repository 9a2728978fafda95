import torch

from analysis.encoders.models import load_encoder
from analysis.scores.sink import sink


def test_the_sink_counts_the_attention_to_every_separator():
    """Where attention is uniform, two [SEP] get twice that of the one [CLS]."""
    encoder = load_encoder("tiny")
    for name, weights in encoder.model.named_parameters():
        if ".query." in name:
            torch.nn.init.zeros_(weights)
    assert sink(encoder) == "sep"
    assert sink(load_encoder("minilm")) == "cls"
