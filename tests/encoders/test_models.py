"""Encoders load from every source with the right weights, or fail in one line."""

from pathlib import Path

import pytest
import torch
from architectures import ARCHITECTURES, save
from classifiers import EXAMPLES, classifier
from safetensors.torch import load_file, save_file

from analysis.encoders import sources
from analysis.encoders.devices import training_precision
from analysis.encoders.layout import layouts
from analysis.encoders.models import load_encoder, random_encoder
from analysis.encoders.tap import read_layers
from analysis.errors import InputError
from analysis.texts.examples import Example


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder with a tiny BERT."""
    return save("bert", tmp_path)


def test_minilm_is_the_checked_one(monkeypatch):
    encoder = load_encoder("minilm")
    assert (encoder.layers, encoder.heads) == (6, 12)
    assert not encoder.model.training
    assert {weight.dtype for weight in encoder.model.parameters()} == {torch.float32}
    monkeypatch.setattr(sources, "MINILM_SHA256", "0" * 64)
    with pytest.raises(InputError, match="has SHA-256 53aa51172d14"):
        load_encoder("minilm")


def test_digest_follows_every_weight(checkpoint: Path):
    encoder, again, changed = (load_encoder(checkpoint) for _ in range(3))
    assert encoder.provenance == {
        "encoder": "bert",
        "architecture": "BertModel",
        "weights_sha256": encoder.digest,
        "precision": "float32",
        "device": "cpu",
    }
    assert encoder.digest == again.digest
    with torch.no_grad():
        changed.model.encoder.layer[1].output.dense.bias[0] += 1e-6
    assert changed.digest != encoder.digest


def test_pickled_weights_are_not_read(checkpoint: Path):
    torch.save(load_file(checkpoint / "model.safetensors"), checkpoint / "pytorch_model.bin")
    (checkpoint / "model.safetensors").unlink()
    with pytest.raises(InputError, match="cannot be loaded"):
        load_encoder(checkpoint)


def test_checkpoint_may_lack_a_pooler(checkpoint: Path):
    weights = load_file(checkpoint / "model.safetensors")
    kept = {name: value for name, value in weights.items() if not name.startswith("pooler.")}
    save_file(kept, checkpoint / "model.safetensors", metadata={"format": "pt"})
    first, again = load_encoder(checkpoint), load_encoder(checkpoint)
    assert first.absent == {"pooler.dense.weight", "pooler.dense.bias"}
    # The pooler is random: two loads differ in it but count as the same encoder.
    assert not torch.equal(first.model.pooler.dense.weight, again.model.pooler.dense.weight)
    assert first.digest == again.digest


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_encoder_with_its_trained_head(architecture: str, tmp_path: Path):
    """Logits are those of the checkpoint, and the attention is that of the encoder alone."""
    saved = classifier(architecture)
    saved.model.save_pretrained(tmp_path)
    saved.tokenizer.save_pretrained(tmp_path)
    headed, alone = load_encoder(tmp_path, task="mnli"), load_encoder(tmp_path)
    batch = layouts(saved.tokenizer, EXAMPLES[:1])
    maps: list[list] = [[], []]
    for encoder, found in zip((headed, alone), maps, strict=True):
        read_layers(encoder, batch, lambda _, weights, found=found: found.append(weights), check=True)
    assert len(maps[0]) == headed.layers == 2
    assert all(torch.equal(*both) for both in zip(*maps, strict=True))
    with torch.no_grad():
        logits, expected = (each.model(**each.inputs(batch)).logits for each in (headed, saved))
    torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ({}, "float32"),
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


def test_random_encoder_has_the_architecture_and_other_weights(checkpoint: Path):
    trained = load_encoder(checkpoint)
    first, again, other = (random_encoder(checkpoint, seed) for seed in (2, 2, 3))
    assert first.digest == again.digest
    assert len({first.digest, other.digest, trained.digest}) == 3
    assert (first.layers, first.heads) == (trained.layers, trained.heads)
    assert not first.model.training
