"""The sequences of this paper, scored by the same sieves on attention and on every map that is made from it."""

from collections.abc import Sequence

import xarray as xr

from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.statistics.roles import compose
from analysis.texts.examples import Example, sample

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


def with_patterns(bank: xr.DataArray) -> xr.DataArray:
    """The roles of `compose` without block, followed by PATTERNS.

    Block weights rows by their entropy. Uniform heads have the highest entropy, so every broad map would show block.
    """
    roles = compose(bank).drop_sel(role="block")
    parts = [roles, bank.sel(role=[*PATTERNS]).transpose(*roles.dims)]
    return xr.concat(parts, "role", join="override", combine_attrs="override")
