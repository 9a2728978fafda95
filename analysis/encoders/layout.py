"""From texts to token ids, segments, special tokens and character spans, and to batches of equal length."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import Encoding
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from analysis.errors import InputError
from analysis.texts.examples import Example, Relation, as_sequences

SEGMENT_IDS = ("pair", "zeros")
FAR = 2**40  # more characters than any text has


@runtime_checkable
class Pieces(Protocol):
    """The input of an encoder: ids and segments of the T word pieces of a sequence."""

    input_ids: Int[np.ndarray, " token"]
    type_ids: Int[np.ndarray, " token"]

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Layout:
    """The positions of everything in one tokenised sequence of T tokens, with special tokens, without padding.

    `text` is 0 or 1 for word pieces of `text_a` or `text_b` and -1 for special tokens; `spans` are character offsets in
    that text (0, 0 for special tokens); `unknown` marks word pieces that are not in the vocabulary; `cut` is the number
    of word pieces that truncation removed.
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
    unknown: Bool[np.ndarray, " token"]
    cut: int = 0

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def places(self) -> Int[np.ndarray, "token 2"]:
        """The spans, with a large offset between the two texts, so that both columns are non-decreasing; a special
        token lies at the start of the next text."""
        return self.spans + FAR * (np.maximum.accumulate(self.text) + (self.text < 0))[:, None]

    @cached_property
    def sentence(self) -> Int[np.ndarray, " token"]:
        """The text of each position: [CLS] is part of the first, every [SEP] of the second (Pande 2021, block)."""
        after = np.cumsum(self.sep) > 0
        return np.where(self.text < 0, after.astype(int), self.text)

    @cached_property
    def spellings(self) -> list[str]:
        """Each word piece without its mark of a space, case folded; "" for a piece that matches no other.

        These are special tokens, punctuation, spaces and unknown pieces, which all have one id.
        """
        unmatchable = (self.text < 0) | self.punctuation | self.unknown
        return [
            "" if excluded else token.lstrip("Ġ▁").casefold()
            for token, excluded in zip(self.tokens, unmatchable, strict=True)
        ]


def read_ids(tokenizer: PreTrainedTokenizerBase, encoding: Encoding) -> Int[np.ndarray, " token"]:
    """The ids of a sequence; a special token that is spelled out in a text becomes an unknown piece.

    A tokenizer that splits special tokens may still put `</s>` together from its characters: vocabularies of
    SentencePiece list it.
    """
    ids = np.array(encoding.ids)
    inside = np.array([text is not None for text in encoding.sequence_ids], bool)
    if (special := inside & np.isin(ids, tokenizer.all_special_ids)).any():
        ids[special] = tokenizer.unk_token_id
    return ids


def layouts(
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[Example],
    max_tokens: int = 128,
    segment_ids: str = "pair",
) -> list[Layout]:
    """Tokenised sequences of at most `max_tokens` tokens; if one is too long, its longer text loses pieces.

    An example with choices becomes several sequences, `<id>#0`, `<id>#1` and so on (see `as_sequences`). Truncation
    keeps the final [SEP]. Segment ids are those of the tokenizer ("pair"), or all 0 ("zeros", as in the authors' code
    of Clark 2019). Names of special tokens in a text are text.
    """
    if segment_ids not in SEGMENT_IDS:
        raise InputError(f"segment_ids is {segment_ids!r}: choose {' or '.join(SEGMENT_IDS)}")
    if not 8 <= max_tokens <= tokenizer.model_max_length:
        raise InputError(f"max_tokens is {max_tokens}: choose 8 to {tokenizer.model_max_length}")
    examples = as_sequences(examples)
    if len({example.id for example in examples}) < len(examples):
        raise InputError("two examples have the same id: give every example an id of its own")
    if not examples:
        raise InputError("there are no examples to tokenise: check the task, the split and n")
    whole = _encode(tokenizer, examples)
    long = [example for example in examples if len(whole[example.id]) > max_tokens]
    encodings = whole | _encode(tokenizer, long, truncation=True, max_length=max_tokens)
    sequences = [
        _layout(tokenizer, example, encodings[example.id], len(whole[example.id])) for example in examples
    ]
    if segment_ids == "zeros":
        return [replace(layout, type_ids=np.zeros_like(layout.type_ids)) for layout in sequences]
    return sequences


def _encode(
    tokenizer: PreTrainedTokenizerBase, examples: Sequence[Example], **options: bool | int
) -> dict[str, Encoding]:
    """The encoding of every example by id; one call for all is several times faster than one for each."""
    encodings: dict[str, Encoding] = {}
    for pairs in (False, True):
        if group := [example for example in examples if (example.text_b is not None) == pairs]:
            texts = [list(side) for side in zip(*(example.texts for example in group), strict=True)]
            options |= {"return_token_type_ids": True, "split_special_tokens": True, "verbose": False}
            encoded = tokenizer(*texts, **options).encodings
            encodings |= {example.id: encoding for example, encoding in zip(group, encoded, strict=True)}
    return encodings


def _layout(tokenizer: PreTrainedTokenizerBase, example: Example, encoding: Encoding, pieces: int) -> Layout:
    """The layout of an example that has `pieces` pieces before truncation."""
    ids, offsets = read_ids(tokenizer, encoding), encoding.offsets
    numbers = [-1 if index is None else index for index in encoding.sequence_ids]
    for index, name in enumerate(("text_a", "text_b")[: len(example.texts)]):
        if index not in numbers:
            raise InputError(f"{example.id}: {name} has no word piece: remove the row or correct its text")
    text = np.array(numbers)
    special = text < 0
    cls, sep = (special & (ids == number) for number in (tokenizer.cls_token_id, tokenizer.sep_token_id))
    if not (cls.any() and sep.any()):
        raise InputError(
            f"{tokenizer.name_or_path or type(tokenizer).__name__} puts no [CLS] or no [SEP] around a text: give the "
            "tokenizer of a BERT-like encoder"
        )
    # Read the characters from the text: byte-level vocabularies spell ` ,` as `Ġ,`.
    spellings = [
        "" if index < 0 else example.texts[index][start:end]
        for index, (start, end) in zip(numbers, offsets, strict=True)
    ]
    return Layout(
        id=example.id,
        tokens=tuple(encoding.tokens),
        input_ids=ids,
        type_ids=np.array(encoding.type_ids),
        text=text,
        spans=np.where(special[:, None], 0, np.array(offsets)),
        cls=cls,
        sep=sep,
        punctuation=np.array([is_punctuation(characters) for characters in spellings]),
        unknown=~special & (ids == tokenizer.unk_token_id),
        cut=pieces - len(encoding),
    )


@lru_cache(maxsize=65536)
def is_punctuation(characters: str) -> bool:
    """Whether there is at least one character and all are punctuation in Unicode (category P)."""
    return characters != "" and all(unicodedata.category(one).startswith("P") for one in characters)


def same_pieces(layout: Layout) -> Bool[np.ndarray, "token token"]:
    """Pairs of equal word pieces; special tokens, unknown pieces and punctuation equal nothing (`Layout.spellings`)."""
    spellings, codes = np.unique(layout.spellings, return_inverse=True)
    return (codes == codes[:, None]) & (spellings[codes] != "")


def across(layout: Layout) -> Bool[np.ndarray, "token token"]:
    """Pairs of word pieces of different texts."""
    return (layout.text >= 0) & (layout.text == 1 - layout.text[:, None])


def batches(sequences: Sequence[Pieces], budget: int = 2048, most: int = 32) -> Iterator[list[int]]:
    """Batches of indices of sequences of similar length, the longest last, with at most `budget` padded tokens each.

    A batch has at most `most` sequences. A sequence longer than the budget is a batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(sequences)), key=lambda i: (len(sequences[i]), i)):
        if batch and (len(batch) == most or (len(batch) + 1) * len(sequences[index]) > budget):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def stream(
    sequences: Sequence[Pieces], budget: int, description: str, progress: bool = True
) -> Iterator[tuple[list[int], list, bool]]:
    """Batches as in `batches`, with a bar: their indices, their sequences, and whether to check the attention.

    The first batch and the last are checked, since the shortest sequences may need no padding.
    """
    plan = list(batches(sequences, budget))
    with tqdm(total=len(sequences), desc=description, unit="sequence", disable=not progress) as bar:
        for number, indices in enumerate(plan):
            yield indices, [sequences[index] for index in indices], number in (0, len(plan) - 1)
            bar.update(len(indices))


class Pairs(Sequence):
    """The word pieces (dependent, head) of the word pairs of one relation, stored as ranges of positions."""

    def __init__(self, ranges: Int[np.ndarray, "pair 4"]):
        self.ranges = ranges

    def __len__(self) -> int:
        return len(self.ranges)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        dependent, dependent_end, head, head_end = self.ranges[index]
        return np.arange(dependent, dependent_end), np.arange(head, head_end)


WordPairs = Mapping[str, Pairs]


def token_pairs(layout: Layout, relations: Sequence[Relation]) -> dict[str, Pairs]:
    """The word pieces (dependent, head) of every relation, by label; leaves out pairs that truncation cuts off."""
    if not relations:
        return {}
    numbers = chain.from_iterable((*relation.dependent, *relation.head) for relation in relations)
    spans = np.fromiter(numbers, int, 4 * len(relations)).reshape(-1, 2)
    texts = np.array([relation.text for relation in relations])
    ranges = piece_ranges(layout, texts.repeat(2), spans).reshape(-1, 4)
    rows: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero((ranges[:, 0] < ranges[:, 1]) & (ranges[:, 2] < ranges[:, 3])):
        rows[relations[row].label].append(row)
    return {label: Pairs(ranges[rows[label]]) for label in sorted(rows)}


def piece_ranges(
    layout: Layout, text: int | Int[np.ndarray, " span"], spans: Int[np.ndarray, "span 2"]
) -> Int[np.ndarray, "span 2"]:
    """The first position, and the one after the last, of the tokens that overlap each character span of a text.

    If no token overlaps the span, the first is not less than the second.
    """
    starts, ends = layout.places.T  # both are non-decreasing, so the tokens of a span are neighbours
    behind = FAR * np.asarray(text)
    first = np.searchsorted(ends, spans[:, 0] + behind, side="right")
    last = np.searchsorted(starts, spans[:, 1] + behind, side="left")
    return np.stack([first, last], axis=1)
