from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from analysis.encoders.classifiers import trainable_classifier
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, load_tokenizer
from analysis.papers.clark2019 import gradients
from analysis.papers.clark2019.gradients import load_language_model
from analysis.texts.examples import Example

KINDS = {"[SEP]": "sep", ".": "punct", ",": "punct", "[CLS]": "cls"}
EXAMPLES = [
    Example("one", "The cat , she said , did not see the old red dog .", "It ran . He saw it ."),
    Example("two", "Nothing stops here", "nor there"),
]


@pytest.fixture(scope="module")
def model() -> Encoder:
    return load_language_model("tiny")


def losses_with(encoder: Encoder, example: Example, shift: torch.Tensor, probability: float):
    """The loss of the tokens of one sequence by eager attention, to which `shift` is added layer by layer."""
    (layout,) = layouts(encoder.tokenizer, [example], segment_ids="zeros")
    hidden, labels = gradients.masked(layout, encoder, probability, 0)
    module, layer = encoder.model, iter(range(encoder.layers))
    before = torch.nn.functional.dropout

    def shifted(weights, *arguments, **options):
        if weights.dim() == 4:
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
    labelled = labels != gradients.UNLABELLED
    losses = cross_entropy(logits[labelled], torch.from_numpy(labels[labelled]), reduction="none")
    return losses, hidden


@pytest.mark.parametrize("probability", [0.15, 0])
def test_equal_gradients_of_eager_attention_one_sequence_at_a_time(model, probability: float):
    importance = gradients.gradient_importance(model, EXAMPLES, probability)
    for example in EXAMPLES:
        size = len(layouts(model.tokenizer, [example])[0])
        shift = torch.zeros(3, 1, 4, size, size, requires_grad=True)
        losses, hidden = losses_with(model, example, shift, probability)
        (gradient,) = torch.autograd.grad(losses.mean(), shift)
        for group in gradients.GROUPS:
            columns = torch.tensor([KINDS.get(token, "other") == group for token in hidden.tokens])
            expected = gradient[:, 0][..., columns].abs().mean((-2, -1))  # NaN for a group without tokens
            np.testing.assert_allclose(importance.sel(sequence=example.id, group=group), expected, rtol=1e-4)
        loss = float(importance.loss.sel(sequence=example.id))
        assert loss == pytest.approx(losses.mean().item(), rel=1e-5)


def test_masks_cover_words_only_in_the_proportions_of_bert(model):
    words = " ".join(["cat dog house tree"] * 12)
    sequences = layouts(model.tokenizer, [Example(f"{i}", words, words) for i in range(200)])
    counts = np.zeros(3)
    for layout in sequences:
        hidden, labels = gradients.masked(layout, model, 0.15, 0)
        labelled = labels != gradients.UNLABELLED
        assert labelled.sum() == round(0.15 * (layout.text >= 0).sum())
        assert not (labelled & (layout.text < 0)).any()
        assert (labels[labelled] == layout.input_ids[labelled]).all()
        assert (hidden.input_ids[~labelled] == layout.input_ids[~labelled]).all()
        mask = hidden.input_ids[labelled] == model.tokenizer.mask_token_id
        same = hidden.input_ids[labelled] == labels[labelled]
        counts += [mask.sum(), (~mask & ~same).sum(), same.sum()]
    np.testing.assert_allclose(counts / counts.sum(), [0.8, 0.1, 0.1], atol=0.03)


def test_an_encoder_without_a_language_model_has_none():
    assert load_language_model("minilm") is None


def test_the_loss_of_a_classifier_is_that_of_each_sequence_alone():
    """Gradients of a batch are those of its sequences one by one, and those of the loss by the first layer's maps."""
    labelled = [Example(e.id, *e.texts, label=label) for label, e in enumerate(EXAMPLES)]
    encoder = random_classifier()
    together = gradients.classifier_importance(encoder, labelled)
    assert together.shape == (2, 4, encoder.layers, encoder.heads)
    for example in labelled:
        alone = gradients.classifier_importance(encoder, [example])[0]
        np.testing.assert_allclose(together.sel(sequence=example.id), alone, rtol=1e-4, atol=1e-9)
    swapped = [replace(example, label=1 - example.label) for example in labelled]
    assert not np.allclose(gradients.classifier_importance(encoder, swapped)[0], together[0], equal_nan=True)


def random_classifier() -> Encoder:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = trainable_classifier("tiny", 2).eval()
    return Encoder("tiny", model, load_tokenizer("tiny"))
