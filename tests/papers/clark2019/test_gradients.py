"""Gradients with respect to attention against finite differences and gradients one head at a time, and masks."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForMaskedLM

from analysis.encoders.layout import layouts
from analysis.encoders.models import build_tiny, load_encoder, load_tokenizer
from analysis.encoders.tap import tap
from analysis.papers.clark2019 import gradients
from analysis.papers.clark2019.gradients import (
    GROUPS,
    TRAINED,
    UNLABELLED,
    LanguageModel,
    gradient_importance,
    language_model,
    masked,
)
from analysis.texts.examples import Example

EXAMPLES = [
    Example("one", "The cat , she said , did not see the old red dog .", "It ran . He saw it ."),
    Example("two", "Nothing stops here", "nor there"),
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """A folder that holds a tiny masked-language model."""
    folder = tmp_path_factory.mktemp("checkpoint")
    build_tiny(AutoModelForMaskedLM).save_pretrained(folder)
    load_tokenizer("tiny").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(checkpoint) -> LanguageModel:
    return language_model(str(checkpoint), [])


def loss_with(model: LanguageModel, example: Example, shift: torch.Tensor | None, probability: float):
    """The loss of one sequence by the model's own eager attention, to which `shift` is added layer by layer."""
    encoder = model.encoder
    (layout,) = layouts(encoder.tokenizer, [example], segment_ids="zeros")
    hidden, labels = masked(layout, encoder, probability, 0)
    module, layer = encoder.model, iter(range(encoder.layers))
    before = torch.nn.functional.dropout

    def shifted(weights, *arguments, **options):
        if weights.dim() == 4 and shift is not None:
            weights = weights + shift[next(layer)]
        return weights

    implementation = module.config._attn_implementation
    module.set_attn_implementation("eager")
    torch.nn.functional.dropout = shifted  # eager attention drops out its weights, here by adding to them
    try:
        logits = module(**encoder.inputs([hidden])).logits[0]
    finally:
        torch.nn.functional.dropout = before
        module.set_attn_implementation(implementation)
    chosen = labels != UNLABELLED
    return cross_entropy(logits[chosen], torch.from_numpy(labels[chosen])), hidden, logits


def groups_of(tokens: tuple[str, ...]) -> dict[str, list[int]]:
    """Positions of each group by their spelling."""
    kinds = {"[SEP]": "sep", ".": "punct", ",": "punct", "[CLS]": "cls"}
    found = [kinds.get(token, "other") for token in tokens]
    return {group: [i for i, kind in enumerate(found) if kind == group] for group in GROUPS}


@pytest.mark.parametrize("probability", [0.15, 0])
def test_equal_gradients_of_eager_attention_one_sequence_at_a_time(model, probability: float):
    found = gradient_importance(model, EXAMPLES, probability, progress=False)
    for one in EXAMPLES:
        size = len(layouts(model.encoder.tokenizer, [one])[0])
        shift = torch.zeros(3, 1, 4, size, size, requires_grad=True)
        loss, hidden, _ = loss_with(model, one, shift, probability)
        (gradient,) = torch.autograd.grad(loss, shift)
        for layer in range(3):
            for head in range(4):
                cells = gradient[layer, 0, head].abs().numpy()
                for group, columns in groups_of(hidden.tokens).items():
                    value = float(found.sel(sequence=one.id, group=group, layer=layer, head=head))
                    if columns:
                        assert value == pytest.approx(cells[:, columns].mean(), rel=1e-4)
                    else:
                        assert np.isnan(value)
        assert float(found.loss.sel(sequence=one.id)) == pytest.approx(float(loss.detach()), rel=1e-5)


def test_finite_differences(model):
    """If one weight changes, the loss changes as the gradient says."""
    one = EXAMPLES[0]
    (layout,) = layouts(model.encoder.tokenizer, [one], segment_ids="zeros")
    hidden = masked(layout, model.encoder, 0.15, 0)
    ((*_, last), _) = gradients._attention_gradients(model, [hidden], "mean", False)
    shift = torch.zeros(3, 1, 4, len(layout), len(layout))
    row, column = np.unravel_index(int(last[0, 1].argmax()), last.shape[-2:])
    losses = []
    for step in (-0.05, 0.05):
        shift[2, 0, 1, row, column] = step
        losses.append(float(loss_with(model, one, shift, 0.15)[0].detach()))
    assert abs(losses[1] - losses[0]) / 0.1 == pytest.approx(float(last[0, 1, row, column]), rel=0.05)


def test_sums_are_means_times_the_number_of_hidden_tokens(model):
    mean = gradient_importance(model, EXAMPLES, progress=False)
    total = gradient_importance(model, EXAMPLES, loss="sum", progress=False)
    for one in EXAMPLES:
        (layout,) = layouts(model.encoder.tokenizer, [one])
        count = (masked(layout, model.encoder, 0.15, 0)[1] != UNLABELLED).sum()
        np.testing.assert_allclose(
            total.sel(sequence=one.id), mean.sel(sequence=one.id) * count, rtol=1e-3, atol=1e-8
        )


def test_times_attention(model):
    (layout,) = layouts(model.encoder.tokenizer, EXAMPLES[:1], segment_ids="zeros")
    hidden = masked(layout, model.encoder, 0.15, 0)
    plain, _ = gradients._attention_gradients(model, [hidden], "mean", False)
    weighed, _ = gradients._attention_gradients(model, [hidden], "mean", True)
    maps = []
    with tap(model.encoder.model, lambda _, attention: maps.append(attention)), torch.no_grad():
        model.encoder.model(**model.encoder.inputs([hidden[0]]))
    for one, other, attention in zip(plain, weighed, maps, strict=True):
        np.testing.assert_allclose(other, one * attention, rtol=1e-4, atol=1e-9)


# --- masks -----------------------------------------------------------------------------------------------


def test_masks_hide_words_only_and_as_often_as_asked(model):
    words = " ".join(["cat dog house tree"] * 12)
    found = layouts(model.encoder.tokenizer, [Example(f"{i}", words, words) for i in range(200)])
    hidden = [masked(layout, model.encoder, 0.15, 0) for layout in found]
    fates = np.zeros(3)
    for layout, (seen, labels) in zip(found, hidden, strict=True):
        chosen = labels != UNLABELLED
        assert chosen.sum() == round(0.15 * (layout.text >= 0).sum())
        assert not (chosen & (layout.text < 0)).any()
        assert (labels[chosen] == layout.input_ids[chosen]).all()
        assert (seen.input_ids[~chosen] == layout.input_ids[~chosen]).all()
        mask = seen.input_ids[chosen] == model.encoder.tokenizer.mask_token_id
        same = seen.input_ids[chosen] == labels[chosen]
        fates += [mask.sum(), (~mask & ~same).sum(), same.sum()]
        assert [seen.tokens[i] for i in np.flatnonzero(chosen)[mask]] == ["[MASK]"] * mask.sum()
    np.testing.assert_allclose(fates / fates.sum(), [0.8, 0.1, 0.1], atol=0.03)


# --- heads -----------------------------------------------------------------------------------------------


def test_trained_head_learns_and_leaves_the_encoder_alone():
    texts = [Example(f"{i}", "The cat saw the dog .", "The dog saw the cat .") for i in range(30)]
    before = load_encoder("tiny").digest
    untrained, trained = (language_model("tiny", texts, epochs=epochs, progress=False) for epochs in (1, 40))
    assert trained.origin == TRAINED
    assert trained.encoder.digest == before
    assert torch.equal(
        trained.head.decoder,
        trained.encoder.model.get_input_embeddings().weight[trained.head.vocabulary],
    )
    losses = [
        float(gradient_importance(model, texts, progress=False).loss.mean()) for model in (untrained, trained)
    ]
    assert losses[1] < losses[0]
    assert losses[1] < np.log(len(trained.head.vocabulary))
    again = language_model("tiny", texts, epochs=40, progress=False)
    assert torch.equal(again.head.bias, trained.head.bias)
