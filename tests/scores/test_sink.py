import torch

from analysis.encoders.models import load_encoder
from analysis.scores.sink import leading, sink, sinks
from analysis.statistics.claim_texts import with_sink
from analysis.statistics.claims import sink_name


def test_the_sink_counts_the_attention_to_every_separator():
    """Where attention is uniform, two [SEP] get twice that of the one [CLS]."""
    encoder = load_encoder("tiny")
    for name, weights in encoder.model.named_parameters():
        if ".query." in name:
            torch.nn.init.zeros_(weights)
    assert sink(encoder) == "sep"
    assert sinks(load_encoder("minilm")) == (sink(load_encoder("minilm")),) == ("cls",)


def test_in_a_near_tie_claims_are_about_sep_and_name_both():
    assert leading({"cls": 1.0, "sep": 0.81}) == ("sep", "cls")
    assert leading({"cls": 1.0, "sep": 0.79}) == ("cls",)
    statement = "Attention to {sink} ([SEP] in BERT-base) falls"
    assert with_sink(statement, sink_name(("sep", "cls"))) == "Attention to [SEP] (near tie with [CLS]) falls"
    assert with_sink(statement, sink_name(("cls",))) == "Attention to [CLS] ([SEP] in BERT-base) falls"
