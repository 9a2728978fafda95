"""The sieves of one sequence behind the roles, with the same choices as the roles, for figures."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from jaxtyping import Float

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.scores.extraction import read_sieves
from analysis.statistics.roles import DIRECTIONS, RELATIONS, ROLES, WINDOWS
from analysis.texts.examples import Example
from analysis.texts.syntax import Relations


def role_sieves(
    encoder: Encoder,
    example: Example,
    parses: Relations,
    window: int = 2,
    relations: Sequence[str] = RELATIONS,
    direction: str = "dependent_to_head",
    arithmetic: str = "corrected",
    max_tokens: int = 128,
) -> dict[str, Float[np.ndarray, "token token"]]:
    """The matrix of every role in a sequence, with the choices of `compose`: window, relations, direction.

    `syntactic` pools the word pairs of `relations`; each pair counts once. The entropy factor of `block` belongs to a
    head, not to the sieve. Raises InputError for an unknown direction or arithmetic, and without relations.
    """
    for name, value, known in (("direction", direction, DIRECTIONS), ("arithmetic", arithmetic, WINDOWS)):
        if value not in known:
            raise InputError(f"{name} {value!r} is unknown; use one of {', '.join(known)}")
    if not relations:
        raise InputError("relations is empty; name at least one relation to pool, such as nsubj")
    local = WINDOWS[arithmetic].format(window)
    pairs = {
        label: [form.format(label) for form in DIRECTIONS[direction]] for label in {*RELATIONS, *relations}
    }
    wanted = [local, "delimiter", "block", "cls", "sep", *chain.from_iterable(pairs.values())]
    found = read_sieves(encoder, example, parses, wanted, max_tokens)
    made = {
        label: np.mean([found[n] for n in names], axis=0)
        for label, names in pairs.items()
        if names[0] in found
    }
    pooled = {
        label: sum(each.label == label for each in parses[example.id]) for label in relations if label in made
    }
    if pooled:
        weights = [*pooled.values()]
        made["syntactic"] = np.average([made[label] for label in pooled], axis=0, weights=weights)
    known = found | made | ({"local": found[local]} if local in found else {})
    return {role: known[role] for role in ROLES if role in known}
