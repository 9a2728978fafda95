"""From texts to token ids, segments, special tokens and character spans, and to batches of equal length."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int
from transformers import PreTrainedTokenizerBase

from .errors import InputError
from .examples import Example


@runtime_checkable
class Pieces(Protocol):
    """What an encoder reads of a sequence: ids and segments of its T word pieces."""

    input_ids: Int[np.ndarray, " token"]
    type_ids: Int[np.ndarray, " token"]

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Layout:
    """Where everything stands in one tokenised sequence of T tokens, special tokens included, no padding.

    `text` is 0 or 1 for word pieces of `text_a` or `text_b` and -1 for special tokens; `spans` are
    character offsets in that text (0, 0 for special tokens); `cut` counts the word pieces that truncation took.
    """

    id: str
    tokens: tuple[str, ...]
    input_ids: Int[np.ndarray, " token"]
    type_ids: Int[np.ndarray, " token"]
    text: Int[np.ndarray, " token"]
    spans: Int[np.ndarray, "token 2"]
    cls: Bool[np.ndarray, " token"]
    sep: Bool[np.ndarray, " token"]
    punctuation: Bool[np.ndarray, " token"]
    cut: int = 0

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def sentence(self) -> Int[np.ndarray, " token"]:
        """The text each position belongs to: [CLS] to the first, everything from the first [SEP] on to the
        second (Pande 2021, block role)."""
        after = np.cumsum(self.sep) > 0
        return np.where(self.text < 0, after.astype(int), self.text)


def layouts(
    tokenizer: PreTrainedTokenizerBase, examples: Sequence[Example], max_tokens: int = 128
) -> list[Layout]:
    """Tokenised sequences of at most `max_tokens` tokens; what is too long loses pieces of its longer text.

    The final [SEP] always stays. Raises InputError for repeated ids, a text without any word piece, or a
    limit that the encoder cannot hold.
    """
    if not 8 <= max_tokens <= tokenizer.model_max_length:
        raise InputError(f"max_tokens is {max_tokens}: choose 8 to {tokenizer.model_max_length}")
    if len({example.id for example in examples}) < len(examples):
        raise InputError("two examples have the same id: give every example an id of its own")
    if not examples:
        raise InputError("there are no examples to tokenise: check the task, the split and n")
    return [_layout(tokenizer, example, max_tokens) for example in examples]


def _layout(tokenizer: PreTrainedTokenizerBase, example: Example, max_tokens: int) -> Layout:
    options = {"return_offsets_mapping": True, "return_token_type_ids": True, "verbose": False}
    encoding = tokenizer(*example.texts, **options)
    full = len(encoding["input_ids"])
    if full > max_tokens:
        encoding = tokenizer(*example.texts, truncation=True, max_length=max_tokens, **options)
    ids = np.array(encoding["input_ids"])
    text = np.array([-1 if index is None else index for index in encoding.sequence_ids()])
    for index, name in enumerate(("text_a", "text_b")[: len(example.texts)]):
        if not (text == index).any():
            raise InputError(f"{example.id}: {name} holds no word piece: remove the row or mend its text")
    spans = np.where((text < 0)[:, None], 0, np.array(encoding["offset_mapping"]))
    # By the characters a token stands for: byte-level vocabularies spell ` ,` as `Ġ,`.
    written = [example.texts[index][start:end] for index, (start, end) in zip(text, spans, strict=True)]
    return Layout(
        id=example.id,
        tokens=tuple(encoding.tokens()),
        input_ids=ids,
        type_ids=np.array(encoding["token_type_ids"]),
        text=text,
        spans=spans,
        cls=(ids == tokenizer.cls_token_id) & (text < 0),
        sep=(ids == tokenizer.sep_token_id) & (text < 0),
        punctuation=np.array([is_punctuation(characters) for characters in written]),
        cut=full - len(ids),
    )


def is_punctuation(characters: str) -> bool:
    """Whether there are characters and all are punctuation by Unicode (category P)."""
    return characters != "" and all(unicodedata.category(one).startswith("P") for one in characters)


def batches(sequences: Sequence[Pieces], budget: int = 2048, most: int = 32) -> Iterator[list[int]]:
    """Indices of sequences of similar length, longest batches last: at most `budget` padded tokens each.

    `most` limits the sequences of one batch. A sequence longer than the budget stands alone.
    """
    batch: list[int] = []
    for index in sorted(range(len(sequences)), key=lambda i: (len(sequences[i]), i)):
        if batch and (len(batch) == most or (len(batch) + 1) * len(sequences[index]) > budget):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
