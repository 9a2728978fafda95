"""Classifiers have their trained heads, whose classes are those of the task; random encoders have other weights."""

from pathlib import Path

import pytest
import torch
from architectures import ARCHITECTURES, save
from classifiers import EXAMPLES, classifier

from analysis.encoders.classifiers import load_classifier, random_encoder
from analysis.encoders.layout import layouts
from analysis.encoders.models import load_encoder
from analysis.encoders.tap import read_layers


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_encoder_with_its_trained_head(architecture: str, tmp_path: Path):
    """Logits are those of the checkpoint, and the attention is that of the encoder alone."""
    saved = classifier(architecture)
    saved.model.save_pretrained(tmp_path)
    saved.tokenizer.save_pretrained(tmp_path)
    headed, alone = load_classifier(tmp_path, "mnli"), load_encoder(tmp_path)
    batch = layouts(saved.tokenizer, EXAMPLES[:1])
    maps: tuple[dict, dict] = {}, {}
    for encoder, result in zip((headed, alone), maps, strict=True):
        read_layers(encoder, batch, result.__setitem__, check=True)
    assert len(maps[0]) == headed.layers == 2
    assert all(torch.equal(maps[0][layer], maps[1][layer]) for layer in maps[0])
    with torch.no_grad():
        logits, expected = (item.model(**item.inputs(batch)).logits for item in (headed, saved))
    torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize(
    ("names", "order", "printed"),
    [
        (["not_entailment", "entailment"], [1, 0], ""),
        (["ENTAILMENT", "NOT_ENTAILMENT"], [0, 1], ""),
        (["LABEL_0", "LABEL_1"], [0, 1], ""),
        (["yes", "no"], [0, 1], "yes as entailment, no as not_entailment"),
    ],
)
def test_classes_are_read_by_their_names(
    tmp_path: Path, capsys, names: list[str], order: list[int], printed: str
):
    """The logits of a checkpoint stand in the order of the task's labels, and other names are printed once."""
    saved = classifier("bert", outputs=2, id2label=dict(enumerate(names)))
    saved.model.save_pretrained(tmp_path)
    saved.tokenizer.save_pretrained(tmp_path)
    loaded = load_classifier(tmp_path, "qnli").model.classifier
    torch.testing.assert_close(loaded.weight, saved.model.classifier.weight[order], rtol=0, atol=0)
    torch.testing.assert_close(loaded.bias, saved.model.classifier.bias[order], rtol=0, atol=0)
    lines = [line for line in capsys.readouterr().err.splitlines() if "names its classes" in line]
    assert len(lines) == bool(printed)
    assert "".join(lines).endswith(printed)


def test_random_encoder_has_the_architecture_and_other_weights(tmp_path: Path):
    checkpoint = save("bert", tmp_path)
    trained = load_encoder(checkpoint)
    first, again, other = (random_encoder(checkpoint, seed) for seed in (2, 2, 3))
    assert first.digest == again.digest
    assert len({first.digest, other.digest, trained.digest}) == 3
    assert (first.layers, first.heads, first.model.training) == (trained.layers, trained.heads, False)
