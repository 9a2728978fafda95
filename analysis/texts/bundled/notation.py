"""The bracket notation of sentence frames as trees (the notation: see `frames.yaml`)."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from analysis.errors import InputError

VERBAL = frozenset({"base", "present", "past", "participle", "gerund"})


class Leaf(NamedTuple):
    """A word or a `{slot}` of a frame, with its feature or part of speech and its label, if any."""

    text: str
    feature: str
    label: str
    slot: bool


class Group(NamedTuple):
    """A subtree of a frame: a label and items, exactly one of which is the head.

    Its verbs agree with `subject`, or with what those above agree with where there is none.
    """

    label: str
    items: tuple["Leaf | Group", ...]
    head: int
    subject: "Leaf | Group | None"


def leaf(token: str) -> Leaf:
    """One word or slot of the notation."""
    text, _, label = token.partition("/") if token != "/" else (token, "", "")
    text, _, feature = text.partition(".") if text != "." else (text, "", "")
    slot = text.startswith("{")
    return Leaf(text.strip("{}"), feature.strip("}"), label, slot)


def group(label: str, tokens: Iterator[str]) -> Group:
    """The subtree whose items `tokens` spell, up to its closing bracket."""
    items = []
    for token in tokens:
        if token == ")":
            break
        items.append(group(next(tokens), tokens) if token == "(" else leaf(token))
    heads = [position for position, item in enumerate(items) if isinstance(item, Leaf) and not item.label]
    if len(heads) != 1:
        words = " ".join(item.text if isinstance(item, Leaf) else f"({item.label} ...)" for item in items)
        raise InputError(
            f"frame ({label} {words}) has {len(heads)} items without a label: leave exactly one, the head"
        )
    return Group(label, tuple(items), heads[0], subject(items, items[heads[0]]))


def subject(items: Sequence[Leaf | Group], head: Leaf) -> Leaf | Group | None:
    """What the verbs among the items agree with: their subject, else the head itself if it is a noun."""
    nominal = head.feature not in VERBAL and not head.feature.isupper()
    return next((item for item in items if item.label.startswith("nsubj")), head if nominal else None)


def closing(tokens: list[str]) -> int:
    """The position of the bracket that closes the first one."""
    depths = accumulate({"(": 1, ")": -1}.get(token, 0) for token in tokens)
    return next(position for position, depth in enumerate(depths) if depth == 0)


@cache
def parse_frame(notation: str) -> Group:
    """The tree that a notation spells."""
    tokens = re.findall(r"\{[^}]*\}[^\s()]*|[()]|[^\s()]+", notation)
    if tokens[0] == "(" and closing(tokens) == len(tokens) - 1:
        return group(tokens[1], iter(tokens[2:]))
    return group("root", iter(tokens))


@cache
def slots(notation: str) -> tuple[str, ...]:
    """The names of the slots of a frame, in order of first use."""
    return tuple(dict.fromkeys(re.findall(r"\{([^}.]+)", notation)))
