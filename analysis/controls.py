"""Controls: attention that is changed before it is scored, and sentences of a treebank with gold parses."""

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from .examples import Example
from .extraction import Change
from .layout import Layout
from .store import expand
from .syntax import parse, read_conllu, sentence_text
from .tasks import sample

Attention = Float[Tensor, "batch head token token"]


def uniform(attention: Attention, batch: Sequence[Layout]) -> Attention:
    """Heads that attend to all tokens of their sequence alike: a `change` of `extract`."""
    lengths = torch.tensor([len(layout) for layout in batch], device=attention.device)
    inside = torch.arange(attention.shape[-1], device=attention.device) < lengths[:, None]
    return (inside / lengths[:, None])[:, None, None, :].expand_as(attention)


def shuffled(seed: int = 0) -> Change:
    """A `change` of `extract`: each head's own attention with the word pieces of a sequence in random order.

    Rows and columns take the same order in all layers and heads, special tokens stay where they are. Scores
    of cls, sep and delimiter remain, those that rest on which word stands where do not. The order depends on `seed`
    and the id of the sequence.
    """

    def change(attention: Attention, batch: Sequence[Layout]) -> Attention:
        orders = np.stack([_order(layout, attention.shape[-1], seed) for layout in batch])
        order = torch.from_numpy(orders).to(attention.device)
        rows = attention.gather(2, order[:, None, :, None].expand_as(attention))
        return rows.gather(3, order[:, None, None, :].expand_as(attention))

    return change


def _order(layout: Layout, size: int, seed: int) -> Int[np.ndarray, "token"]:
    """The positions of a padded sequence with its word pieces permuted."""
    order, pieces = np.arange(size), np.flatnonzero(layout.text >= 0)
    order[pieces] = np.random.default_rng([seed, crc32(layout.id.encode())]).permutation(pieces)
    return order


def treebank_examples(treebank: str | Path, n: int | None = None, seed: int = 0) -> list[Example]:
    """Sentences of a CoNLL-U file with their gold relations, all of different texts or a seeded sample of `n`.

    Raises InputError for a file that is missing or is no CoNLL-U.
    """
    path = expand(treebank)
    texts = dict.fromkeys(sentence_text(sentence) for sentence in read_conllu(path))
    examples = sample([Example(f"{path.stem}-{row}", text) for row, text in enumerate(texts)], n, seed)
    gold = parse(examples, path)
    return [Example(example.id, example.text_a, relations=gold[example.id]) for example in examples]
