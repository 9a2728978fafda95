"""Devices and precisions: which are available, and which precision trains fast."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from analysis.errors import InputError

PRECISIONS = ("float32", "bfloat16")
TILES = ("amx_tile", "amx_bf16")  # without these instructions bfloat16 is slower than float32 on a processor
CAPABILITY = (8, 0)  # CUDA devices from Ampere on have units for bfloat16


def training_precision(device: str, precision: str = "auto") -> str:
    """The precision of training: `auto` is bfloat16 if the device computes it faster, else float32.

    bfloat16 is faster on CUDA devices of capability 8 or more and on x86 processors with AMX tiles.
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
    """A context in which this CUDA device is the current one; an empty context for other devices."""
    return torch.cuda.device(device) if device.startswith("cuda:") else nullcontext()


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
