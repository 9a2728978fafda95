"""From texts to token ids, segments, special tokens and character spans, and to batches of equal length."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int
from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from analysis.errors import InputError
from analysis.texts.examples import Example, Relation, as_sequences

SEGMENT_IDS = ("pair", "zeros")
FAR = 2**40  # more than any text has characters


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

    @cached_property
    def places(self) -> Int[np.ndarray, "token 2"]:
        """The spans with the texts far behind one another, so that neither column ever falls; a special token
        stands where the next text starts."""
        return self.spans + FAR * (np.maximum.accumulate(self.text) + (self.text < 0))[:, None]

    @cached_property
    def sentence(self) -> Int[np.ndarray, " token"]:
        """The text each position belongs to: [CLS] to the first, everything from the first [SEP] on to the
        second (Pande 2021, block role)."""
        after = np.cumsum(self.sep) > 0
        return np.where(self.text < 0, after.astype(int), self.text)


def same_tokenizers(tokenizers: Sequence[PreTrainedTokenizerBase]) -> bool:
    """Whether all have the same vocabulary and rules, so that they give the same layouts.

    How a tokenizer was last told to truncate and pad, which it remembers among its rules, makes no difference.
    """
    if len(tokenizers) == 1:
        return True
    first, *others = map(_rules, tokenizers)
    return all(rules == first for rules in others)


def _rules(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    return {name: rule for name, rule in rules.items() if name not in ("truncation", "padding")}


def layouts(
    tokenizer: PreTrainedTokenizerBase,
    examples: Sequence[Example],
    max_tokens: int = 128,
    segment_ids: str = "pair",
) -> list[Layout]:
    """Tokenised sequences of at most `max_tokens` tokens; what is too long loses pieces of its longer text.

    An example with choices becomes several sequences, `<id>#0`, `<id>#1` and on (see `as_sequences`). The final [SEP]
    always stays. `segment_ids="pair"` numbers the texts of a pair as the tokenizer does, `zeros`
    gives both the number 0 (the released code of Clark 2019). Raises InputError for repeated ids, a text that
    is no string or has no word piece, a tokenizer that sets no [CLS] or [SEP], a limit that the encoder cannot hold,
    or another kind of segment ids.
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
    encodings = _encode(tokenizer, examples)
    long = [example for example in examples if len(encodings[example.id]) > max_tokens]
    kept = encodings | _encode(tokenizer, long, truncation=True, max_length=max_tokens)
    found = [
        _layout(tokenizer, example, kept[example.id], len(encodings[example.id])) for example in examples
    ]
    if segment_ids == "pair":
        return found
    return [replace(layout, type_ids=np.zeros_like(layout.type_ids)) for layout in found]


def _encode(
    tokenizer: PreTrainedTokenizerBase, examples: Sequence[Example], **options: bool | int
) -> dict[str, Encoding]:
    """The encoding of every example by id: a call for all is several times faster than one for each."""
    found: dict[str, Encoding] = {}
    for pairs in (False, True):
        if alike := [example for example in examples if (example.text_b is not None) == pairs]:
            texts = [list(side) for side in zip(*(example.texts for example in alike), strict=True)]
            encoded = tokenizer(*texts, return_token_type_ids=True, verbose=False, **options).encodings
            found |= {example.id: encoding for example, encoding in zip(alike, encoded, strict=True)}
    return found


def _layout(tokenizer: PreTrainedTokenizerBase, example: Example, encoding: Encoding, full: int) -> Layout:
    ids, offsets = np.array(encoding.ids), encoding.offsets
    numbers = [-1 if index is None else index for index in encoding.sequence_ids]
    for index, name in enumerate(("text_a", "text_b")[: len(example.texts)]):
        if index not in numbers:
            raise InputError(f"{example.id}: {name} holds no word piece: remove the row or mend its text")
    text = np.array(numbers)
    special = text < 0
    cls, sep = (special & (ids == number) for number in (tokenizer.cls_token_id, tokenizer.sep_token_id))
    if not (cls.any() and sep.any()):
        raise InputError(
            f"{tokenizer.name_or_path or type(tokenizer).__name__} sets no [CLS] or no [SEP] around a text: give the "
            "tokenizer of a BERT-like encoder"
        )
    # By the characters a token stands for: byte-level vocabularies spell ` ,` as `Ġ,`.
    written = [
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
        punctuation=np.array([is_punctuation(characters) for characters in written]),
        cut=full - len(ids),
    )


@lru_cache(maxsize=65536)
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


class Pairs(Sequence):
    """The word pairs of one relation as pieces (dependent, head), kept as ranges of token positions."""

    def __init__(self, ranges: Int[np.ndarray, "pair 4"]):
        self.ranges = ranges

    def __len__(self) -> int:
        return len(self.ranges)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        dependent, dependent_end, head, head_end = self.ranges[index]
        return np.arange(dependent, dependent_end), np.arange(head, head_end)


WordPairs = Mapping[str, Pairs]


def token_pairs(layout: Layout, relations: Sequence[Relation]) -> dict[str, Pairs]:
    """The word pieces (dependent, head) of every relation, by label; pairs that truncation cut are left out."""
    if not relations:
        return {}
    numbers = chain.from_iterable((*relation.dependent, *relation.head) for relation in relations)
    spans = np.fromiter(numbers, int, 4 * len(relations)).reshape(-1, 2)
    texts = np.array([relation.text for relation in relations])
    ranges = piece_ranges(layout, texts.repeat(2), spans).reshape(-1, 4)
    kept = np.flatnonzero((ranges[:, 0] < ranges[:, 1]) & (ranges[:, 2] < ranges[:, 3]))
    order = sorted(kept.tolist(), key=lambda index: relations[index].label)
    labels = Counter(relations[index].label for index in order)  # in the same order
    ends = accumulate(labels.values())
    ranges = ranges[order]
    return {label: Pairs(ranges[end - labels[label] : end]) for label, end in zip(labels, ends, strict=True)}


def piece_ranges(
    layout: Layout, text: int | Int[np.ndarray, " span"], spans: Int[np.ndarray, "span 2"]
) -> Int[np.ndarray, "span 2"]:
    """First position, and the one after the last, of the tokens that overlap each character span of a text.

    The first is not below the other where no token does.
    """
    starts, ends = layout.places.T  # both never fall, so that the tokens of a span are neighbours
    behind = FAR * np.asarray(text)
    first = np.searchsorted(ends, spans[:, 0] + behind, side="right")
    last = np.searchsorted(starts, spans[:, 1] + behind, side="left")
    return np.stack([first, last], axis=1)
