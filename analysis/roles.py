"""The roles of heads: a row for each, and the dimensions of scores.

A new role is a new row, and a sieve that scores it.
"""

from collections.abc import Iterable
from typing import NamedTuple

RELATIONS = ("nsubj", "dobj", "amod", "advmod")  # the syntactic roles of Pande 2021
REVERSED = "_reversed"  # the end of the name of a relation from head to dependent
UNIFORM = "uniform"
UNIFORM_SCORE = 1.0  # of a uniform head
DIMENSIONS = ("sequence", "role", "layer", "head")  # of scores
Head = tuple[int, int]  # layer, head


class Role(NamedTuple):
    """What the study knows of a role; every table and figure reads it here.

    `sieve` is the elementary sieve that scores the role. `control` cannot know what the role needs: a map source, or
    another sieve on the same map. `family` is the coarse role to which it belongs, if any. `colour` names a colour of
    the palette (`figures.colours`), `marker` is one of matplotlib. `about` says which tokens the sieve marks; without
    it, the first line of the sieve's docstring does. `second` is another control, whose labels are counted beside those
    of the heads.
    """

    name: str
    sieve: str
    control: str
    family: str
    colour: str
    marker: str
    about: str = ""
    second: str = ""


# Controls. Shuffled: the head's attention with its word pieces in random order. Twin: the part of the head's attention
# that depends only on position. Spread: rows with the head's entropies, spread evenly. Uniform: all tokens equally,
# which scores 1. The order of the rows is that of tables and figures.
ROLES = {
    role.name: role
    for role in (
        Role("local", "window_2", "shuffled", "local", "BLUE", "s",
             "Tokens at most 2 positions away, itself included.", second="twin"),
        Role("syntactic", "syntactic", "twin", "syntactic", "GREEN", "o",
             "The governor of each dependent: nsubj, dobj, amod and advmod together."),
        Role("delimiter", "delimiter", UNIFORM, "delimiter", "VERMILION", "D"),
        *(
            Role(label, label, "twin", "syntactic", colour, marker,
                 f"The governor of each dependent in the relation {label}.")
            for label, colour, marker in zip(RELATIONS, ("YELLOW", "PURPLE", "ORANGE", "BROWN"), "^v><", strict=True)
        ),
        Role("block", "block", "spread", "block", "BLACK", "P"),
        Role("cls", "cls", UNIFORM, "delimiter", "SKY", "*"),
        Role("sep", "sep", UNIFORM, "delimiter", "WINE", "d"),
        Role("match", "match", "match_control", "", "LIME", "X"),
    )
}  # fmt: skip
PUBLISHED_ROLES = tuple(role for role in ROLES if role != "match")  # Pande 2021; match: this study


def control_sources(sieves: Iterable[str]) -> list[str]:
    """The map sources that are a first or second control of a role; other controls are sieves, or uniform attention."""
    controls = dict.fromkeys(name for role in ROLES.values() for name in (role.control, role.second) if name)
    return [name for name in controls if name not in (UNIFORM, *sieves)]


def families() -> dict[str, tuple[str, ...]]:
    """The roles of each coarse role: a head has a coarse role if it has that role or one of its finer roles."""
    coarse = [name for name, role in ROLES.items() if role.family == name]
    return {name: tuple(role.name for role in ROLES.values() if role.family == name) for name in coarse}
