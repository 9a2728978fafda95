"""Sentences for the page: the attention of every head in eight bits per weight, and the cells of each sieve."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from tqdm import tqdm

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.explorer.payload import digits
from analysis.scores.extraction import extract, read_attention, read_sieves
from analysis.texts.examples import Example, Relations

Sentence = dict[str, Any]
STEPS = 255
RELATION_WORTH = 8  # extra words that a sentence may have for each further relation


def pack(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations | None = None,
    roles: Sequence[str] = ("local", "delimiter", "block"),
    state: str = "pretrained",
    task: str = "",
    max_tokens: int = 128,
) -> list[Sentence]:
    """The examples in the form of the page: tokens, sieves, scores and attention of one state of the encoder.

    Scores are those of `extract`; if a role is absent from a sentence, it has no score and no sieve there. Raises
    InputError as `extract` does.
    """
    pairs = {example.id: () for example in examples} if relations is None else relations
    scores = extract(encoder, examples, pairs, [*roles], max_tokens=max_tokens, progress=False)
    names = scores["role"].values.tolist()
    sentences = []
    for example in tqdm(examples, desc=f"attention for the page, {task or state}", unit="sentence"):
        layout, attention = read_attention(encoder, example, max_tokens)
        sieves = read_sieves(encoder, example, pairs, names, max_tokens)
        score = {role: scores.sel(sequence=example.id, role=role).values.ravel() for role in sieves}
        sentence = {"id": example.id, "task": task, "a": example.text_a, "b": example.text_b}
        sentence |= {"tokens": [*layout.tokens], "text": layout.text.tolist(), "cut": layout.cut}
        sentence |= {
            "sep": np.flatnonzero(layout.sep).tolist(),
            "layers": encoder.layers,
            "heads": encoder.heads,
        }
        bits = {role: np.packbits(sieve > 0).tobytes() for role, sieve in sieves.items()}  # row after row
        sentence |= {"masks": {role: b64encode(mask).decode() for role, mask in bits.items()}}
        sentence |= {"scores": {role: {state: digits(values)} for role, values in score.items()}}
        sentences.append(sentence | {"attention": {state: packed_attention(attention)}})
    return sentences


def packed_attention(attention: Float[np.ndarray, "layer head token token"]) -> str:
    """Base64 of the compressed weights of every head, heads of layer 0 first.

    A weight is kept as STEPS times its square root, so that small weights keep their ratios.
    """
    steps = np.round(STEPS * np.sqrt(np.clip(attention, 0, 1))).astype(np.uint8)
    return b64encode(zlib.compress(steps.tobytes(), 9)).decode()


def unpacked_attention(text: str, shape: Sequence[int]) -> Float[np.ndarray, "layer head token token"]:
    """The weights that the page shows for packed attention of this shape: the error is at most 0.004."""
    steps = np.frombuffer(zlib.decompress(b64decode(text)), np.uint8)
    return (steps.reshape(shape).astype(np.float32) / STEPS) ** 2


def merge_states(sentences: Iterable[Sentence]) -> list[Sentence]:
    """One entry per sentence, with the scores and the attention of all states in which it was packed.

    Raises InputError if two different texts have the same id.
    """
    by_id: dict[str, Sentence] = {}
    for sentence in sentences:
        first = by_id.setdefault(sentence["id"], sentence)
        if any(first[key] != sentence[key] for key in ("a", "b", "tokens", "layers", "heads")):
            raise InputError(f"two sentences have the id {sentence['id']!r}: give every example its own id")
        roles = [*dict.fromkeys([*first["scores"], *sentence["scores"]])]
        scores = {role: first["scores"].get(role, {}) | sentence["scores"].get(role, {}) for role in roles}
        by_id[sentence["id"]] = first | {
            "masks": sentence["masks"] | first["masks"],
            "scores": scores,
            "attention": first["attention"] | sentence["attention"],
        }
    return [*by_id.values()]


def illustrative(
    examples: Sequence[Example], relations: Relations, labels: Sequence[str], count: int
) -> list[Example]:
    """The `count` examples that show most of the relations `labels` in few words, in their original order."""

    def worth(example: Example) -> int:
        distinct = {relation.label for relation in relations[example.id]} & {*labels}
        return RELATION_WORTH * len(distinct) - sum(len(text.split()) for text in example.texts)

    best = sorted(range(len(examples)), key=lambda number: (-worth(examples[number]), number))[:count]
    return [examples[number] for number in sorted(best)]
