"""The split of a text, which depends on a digest of the text and not on the seed."""

import hashlib

from analysis.errors import InputError

# Remainders of a digest of the texts: equal thirds, so that drafts of each split are found equally fast.
SPLITS = {"train": 0, "dev": 1, "test": 2}


def belongs(text: str, split: str) -> bool:
    """Whether a key belongs to a split."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % len(SPLITS) == SPLITS[split]


def check_split(split: str) -> None:
    """Raises `InputError` for an unknown split."""
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
