"""Devices and precisions: which are there, and which of them train fast."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from analysis.errors import InputError

PRECISIONS = ("float32", "bfloat16")
TILES = ("amx_tile", "amx_bf16")  # what a processor needs: without its tiles, bfloat16 is slower than float32
CAPABILITY = (8, 0)  # of the first CUDA devices with units for bfloat16 (Ampere)


def training_precision(device: str, precision: str = "auto") -> str:
    """The precision to train with: `auto` is bfloat16 where the device computes it faster, else float32.

    Fast are CUDA devices of capability 8 or more and x86 processors with AMX tiles. Raises InputError for an
    unknown precision.
    """
    check_precision(precision, ("auto", *PRECISIONS))
    if precision != "auto":
        return precision
    if device.startswith("cuda"):
        fast = torch.cuda.get_device_capability(device) >= CAPABILITY
    else:
        instructions = torch.cpu.get_capabilities() if device == "cpu" else {}
        fast = all(instructions.get(name, False) for name in TILES)
    return "bfloat16" if fast else "float32"


def current(device: str) -> AbstractContextManager:
    """The context in which the CUDA device named is the current one; nothing for other devices."""
    return torch.cuda.device(device) if device.startswith("cuda:") else nullcontext()


def check_precision(precision: str, choices: Sequence[str] = PRECISIONS) -> None:
    """Raises InputError for a precision that is none of the choices."""
    if precision not in choices:
        raise InputError(f"precision is {precision!r}: choose from {', '.join(choices)}")


def check_device(device: str) -> None:
    """Raises InputError for a device that this machine lacks."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {device!r} is not available here: use cpu") from error
