"""Encoders load from every source with the right weights, or fail in one line."""

import ast
import builtins
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from architectures import LAYERS, save
from safetensors.torch import load_file, save_file
from studies import error_of
from transformers import FNetConfig, FNetModel

from analysis.encoders import sources
from analysis.encoders.classifiers import trainable_classifier
from analysis.encoders.finetuning import training_precision
from analysis.encoders.layout import layouts
from analysis.encoders.models import load_encoder, load_tokenizer
from analysis.errors import InputError
from analysis.files import ROOT
from analysis.texts.examples import Example


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save("bert", tmp_path)


def test_minilm_is_the_checked_one(monkeypatch):
    encoder = load_encoder("minilm")
    assert (encoder.layers, encoder.heads) == (6, 12)
    assert not encoder.model.training
    assert {weight.dtype for weight in encoder.model.parameters()} == {torch.float32}
    for name, digest in sources.MINILM_FILES.items():
        with monkeypatch.context() as patch:
            patch.setitem(sources.MINILM_FILES, name, digest[:-1] + "01"[digest[-1] == "0"])
            with pytest.raises(InputError, match=f"{name} has SHA-256 {digest[:12]}"):
                load_encoder("minilm")


def test_digest_follows_every_weight(checkpoint: Path):
    encoder, again, changed = (load_encoder(checkpoint) for _ in range(3))
    expected = {"encoder": "bert", "architecture": "BertModel", "weights_sha256": encoder.digest}
    assert encoder.provenance == expected | {"precision": "float32", "device": "cpu"}
    assert encoder.digest == again.digest
    with torch.no_grad():
        changed.model.encoder.layer[1].output.dense.bias[0] += 1e-6
    assert changed.digest != encoder.digest


def set_options(folder: Path, file: str = "config.json", **options: Any) -> None:
    settings = json.loads((folder / file).read_text()) | options
    (folder / file).write_text(json.dumps(settings))


def own_code(folder: Path, file: str, **auto_map: Any) -> None:
    """Adds a module to a checkpoint that leaves a trace when it is run."""
    set_options(folder, file, auto_map=auto_map)
    (folder / "mine.py").write_text(f"from pathlib import Path\nPath({str(folder / 'run')!r}).touch()\n")


def pickled(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def slow(folder: Path) -> None:
    """A tokenizer without a fast form."""
    (folder / "tokenizer.json").unlink()
    set_options(folder, "tokenizer_config.json", tokenizer_class="CanineTokenizer")


def adapter(folder: Path) -> None:
    """What peft writes."""
    (folder / "config.json").unlink()
    (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "bert-base-uncased"}')


def fnet(folder: Path) -> None:
    FNetModel(FNetConfig(num_hidden_layers=1, hidden_size=8, intermediate_size=8)).save_pretrained(folder)


def spoil_weights(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def add_token(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    tokenizer.add_tokens(["neologism"])
    tokenizer.save_pretrained(folder)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "code of its own": (
        lambda f: (own_code(f, "config.json", AutoConfig="mine.Mine"), set_options(f, model_type="mine")),
        "brings code of its own, which is never run",
    ),
    "pickle": (pickled, "it has no model.safetensors, and a pickle could run code"),
    "cut weights": (lambda f: os.truncate(f / "model.safetensors", 5000), "(SafetensorError: "),
    "adapter": (adapter, "cannot be loaded: "),
    "slow tokenizer": (slow, "the slow tokenizer CanineTokenizer gives no places"),
    "no configuration": (lambda f: (f / "config.json").unlink(), "damaged or incomplete (ValueError: "),
    "weights that do not fit": (lambda f: set_options(f, hidden_size=36), "does not fit its config.json"),
    "flash attention": (
        lambda f: set_options(f, _attn_implementation="flash_attention_2"),
        "doesn't seem to be installed: install that package, or take the setting out of config.json",
    ),
    "not a number": (spoil_weights, "has weights that are no numbers (embeddings.word_embeddings.weight)"),
    "no layers": (lambda f: set_options(f, num_hidden_layers=0), "has no layers"),
    "no attention": (fnet, "is a fnet, which has no attention heads"),
    "no padding": (lambda f: set_options(f, "tokenizer_config.json", pad_token=None), "has no padding token"),
    "more tokens than embeddings": (add_token, "embeddings: give the model its own tokenizer"),
}  # fmt: skip


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_not_loaded_is_one_line_without_a_question(checkpoint: Path, monkeypatch, fault: str):
    monkeypatch.setattr(builtins, "input", lambda *_: pytest.fail("asked"))
    change, line = REFUSED[fault]
    change(checkpoint)
    message = error_of(load_encoder, checkpoint)
    assert line in message
    assert str(checkpoint) in message
    assert not (checkpoint / "run").exists()


def test_code_of_a_tokenizer_is_not_run(checkpoint: Path):
    own_code(checkpoint, "tokenizer_config.json", AutoTokenizer=["mine.Mine", None])
    assert type(load_encoder(checkpoint).tokenizer).__module__.startswith("transformers.")
    assert not (checkpoint / "run").exists()


def test_every_call_that_could_run_the_code_of_a_checkpoint_forbids_it():
    calls = [
        (path.name, node)
        for path in [*(ROOT / "analysis").rglob("*.py"), *(ROOT / "notebooks").glob("*.py")]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".from_pretrained")
        if ast.unparse(node.func) != "nn.Embedding.from_pretrained"  # reads no file
    ]
    assert {name for name, _ in calls} >= {"sources.py"}
    for name, call in calls:
        assert "trust_remote_code=False" in ast.unparse(call), name


@pytest.mark.parametrize("built_in", ["tiny", "mpnet"])
def test_only_the_bare_name_is_built_in(checkpoint: Path, monkeypatch, built_in: str):
    folder = checkpoint.rename(checkpoint.with_name(built_in))
    monkeypatch.chdir(folder.parent)
    for name in (f"./{built_in}", Path(built_in), folder, str(folder)):
        encoder = load_encoder(name)
        assert (encoder.layers, encoder.name) == (LAYERS, f"{built_in} (folder)")
        assert trainable_classifier(name, 2).config.num_hidden_layers == LAYERS
    assert load_encoder("tiny").layers > LAYERS


def test_checkpoint_may_lack_a_pooler(checkpoint: Path):
    weights = load_file(checkpoint / "model.safetensors")
    remaining = {name: value for name, value in weights.items() if not name.startswith("pooler.")}
    save_file(remaining, checkpoint / "model.safetensors", metadata={"format": "pt"})
    first, again = load_encoder(checkpoint), load_encoder(checkpoint)
    assert first.absent == {"pooler.dense.weight", "pooler.dense.bias"}
    # The pooler is random: two loads differ in it but count as the same encoder.
    assert not torch.equal(first.model.pooler.dense.weight, again.model.pooler.dense.weight)
    assert first.digest == again.digest


def test_training_is_in_bfloat16_where_the_processor_computes_it_fast(monkeypatch):
    """With AMX; with AVX-512 alone bfloat16 is slower than float32."""
    fast = {"avx512_bf16": True, "amx_bf16": True, "amx_tile": True}
    for instructions, expected in ((fast, "bfloat16"), ({"avx512_bf16": True}, "float32")):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda instructions=instructions: instructions)
        assert training_precision("cpu") == expected


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
