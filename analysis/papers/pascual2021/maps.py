"""The sequences of this paper, scored by the same sieves on attention and on every map that is made from it."""

from collections.abc import Mapping, Sequence

import xarray as xr

from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.scores.controls import scored_with_controls
from analysis.scores.extraction import extract
from analysis.scores.maps import Source
from analysis.statistics.roles import compose
from analysis.texts.examples import Example, sample
from analysis.texts.syntax import Relations

# Patterns in addition to the roles: neighbours, the token itself, punctuation.
PATTERNS = ("offset_-2", "offset_-1", "offset_+0", "offset_+1", "offset_+2", "punctuation")


def short_examples(
    encoder: Encoder, examples: Sequence[Example], pieces: int, count: int, seed: int = 0
) -> list[Example]:
    """A sample of `count` examples of at most `pieces` word pieces, with special tokens, in their original order.

    Raises InputError if no example is so short.
    """
    lengths = map(len, layouts(encoder.tokenizer, examples, encoder.positions))
    short = [example for example, length in zip(examples, lengths, strict=True) if length <= pieces]
    if not short:
        raise InputError(f"no sequence has at most {pieces} word pieces: raise the limit")
    return sample(short, count, seed)


def scored(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations,
    sources: Mapping[str, str | Source],
    controlled: Sequence[str],
    max_tokens: int = 128,
) -> tuple[dict[str, xr.DataArray], dict[str, xr.DataArray]]:
    """Elementary sieves on every source of maps; for sources in `controlled`, also on the controls made from them.

    Raises InputError as `extract` does.
    """
    banks, controls = {}, {}
    for name, maps in sources.items():
        if name in controlled:
            banks[name], controls[name] = scored_with_controls(encoder, examples, relations, maps, max_tokens)
        else:
            banks[name] = extract(encoder, examples, relations, max_tokens=max_tokens, maps=maps)
    return banks, controls


def with_patterns(bank: xr.DataArray) -> xr.DataArray:
    """The roles of `compose` without block, followed by PATTERNS.

    Block weights rows by their entropy. Uniform heads have the highest entropy, so every broad map would show block.
    """
    roles = compose(bank).drop_sel(role="block")
    parts = [roles, bank.sel(role=[*PATTERNS]).transpose(*roles.dims)]
    return xr.concat(parts, "role", join="override", combine_attrs="override")
