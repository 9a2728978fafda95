"""Layouts of one and of two texts of so many tokens, made without a tokenizer."""

import numpy as np

from analysis.encoders.layout import Layout


def layout_of(name: str, first: int, second: int = 0) -> Layout:
    """A layout of `first` tokens of a text and, where there are any, `second` of another, and special tokens."""
    text = [-1, *[0] * first, -1, *([*[1] * second, -1] if second else [])]
    seps = [first + 1, *([first + second + 2] if second else [])]
    size = len(text)
    places = np.arange(size)
    return Layout(
        id=name,
        tokens=tuple(f"t{place}" for place in places),
        input_ids=places + 1000,
        type_ids=(np.array(text) == 1).astype(int),
        text=np.array(text),
        spans=np.stack([2 * places, 2 * places + 1], axis=1),
        cls=places == 0,
        sep=np.isin(places, seps),
        punctuation=np.zeros(size, bool),
        unknown=np.zeros(size, bool),
    )


SINGLE, PAIR = layout_of("single", 14), layout_of("pair", 11, 9)
LAYOUTS = [SINGLE, PAIR]
