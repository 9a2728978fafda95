"""Which split a text of the corpus falls into: a matter of its digest, whatever the seed."""

import hashlib

from analysis.errors import InputError

# Split by the remainder of a digest of the texts: equal thirds, so that drafts of each are found equally fast.
SPLITS = {"train": 0, "dev": 1, "test": 2}


def belongs(text: str, split: str) -> bool:
    """Whether a key falls into a split."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % len(SPLITS) == SPLITS[split]


def check_split(split: str) -> None:
    """Raise `InputError` for an unknown split."""
    if split not in SPLITS:
        raise InputError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
