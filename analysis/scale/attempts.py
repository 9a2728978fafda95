"""How often a piece of work was begun: what a process dies of would otherwise be tried for ever.

A module of its own, since the actor that counts imports it, and nothing else.
"""

from collections import Counter
from collections.abc import Hashable


class Attempts:
    """Counts the attempts of any number of pieces of work."""

    def __init__(self) -> None:
        self.begun: Counter = Counter()

    def begin(self, *work: Hashable) -> int:
        """Counts one more attempt; returns how many there were."""
        self.begun[work] += 1
        return self.begun[work]
