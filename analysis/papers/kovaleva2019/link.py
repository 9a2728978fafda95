"""A sentence with a word that evokes a frame, and its frame elements."""

from dataclasses import dataclass

LONGEST = 12  # words in a sentence of FrameNet (Kovaleva 2019, 4.2)


@dataclass(frozen=True)
class Link:
    """A sentence as words, and the positions of the words of the target and of each frame element.

    `place` says where the sentence comes from.
    """

    place: str
    words: tuple[str, ...]
    target: tuple[int, ...]
    elements: tuple[tuple[int, ...], ...]
