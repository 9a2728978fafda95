"""The data of the page: sentences with attention in eight bits per weight and sieves, and numbers of role tables."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from tqdm import tqdm

from analysis.encoders.models import Encoder
from analysis.encoders.redirection import redirect
from analysis.errors import InputError
from analysis.roles import Head
from analysis.scores.extraction import extract, read_attention, read_sieves
from analysis.statistics.controls import share_of_control
from analysis.statistics.effects import match_logit
from analysis.statistics.roles import HEAD, LABELS
from analysis.statistics.significance import TESTED
from analysis.texts.examples import Example, Relations

Sentence = dict[str, Any]
STEPS = 255
DOSES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # shares of attention that a dial moves
DESTINATIONS = {"across": "other text", "own": "own text"}  # where it goes
RELATION_WORTH = 8  # extra words that a sentence may have for each further relation
NUMBERS = ("mean", "low", "high")
YES, NO, NOT_APPLICABLE, ABSENT = "1", "0", "?", "-"
Shape = tuple[int, int]


def digits(values: Iterable[float]) -> list[float | None]:
    """Numbers with four significant digits; None if one is missing or infinite."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]


def with_groups(tables: pd.DataFrame) -> pd.DataFrame:
    """Role tables with columns task and state; both are empty texts if the tables have no such columns.

    Raises InputError for a head that has a role twice.
    """
    table = tables.assign(**{key: "" for key in ("task", "state") if key not in tables})
    repeated = table.duplicated(["task", "state", "role", *HEAD])
    if repeated.any():
        row = table[repeated].iloc[0]
        raise InputError(
            f"the role tables hold head {row['layer']}-{row['head']} twice for role {row['role']}: add columns task "
            "and state that tell the tables apart"
        )
    return table


def scores_of(tables: pd.DataFrame, shape: Shape) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Numbers and labels by task, state and role."""
    scores: dict[str, dict] = {}
    for (task, state, role), rows in tables.groupby(["task", "state", "role"], sort=False):
        scores.setdefault(task, {}).setdefault(state, {})[role] = _entry(rows, shape)
    return scores


def _entry(rows: pd.DataFrame, shape: Shape) -> dict[str, Any]:
    by_head = rows.set_index(HEAD)
    table = by_head.reindex(_heads(shape))
    present = table.index.isin(by_head.index)
    sizes = table["n"].fillna(0).astype(int).tolist()
    entry = {"n": sizes[0] if len({*sizes}) == 1 else sizes}
    entry |= {name: digits(table[name].astype(float)) for name in NUMBERS if name in table}
    if "control_mean" in table:
        entry["share"] = digits(share_of_control(table["control_mean"], table["mean"]))
    entry |= {name: _codes(table[column], present) for column, name in LABELS.items() if column in table}
    status = table["status"].fillna(TESTED).tolist() if "status" in table else []
    if any(text != TESTED for text in status):
        entry["status"] = status
    controls = rows["control"].dropna().unique() if "control" in rows else []
    return entry | ({"control": ", ".join(map(str, controls))} if len(controls) else {})


def _codes(label: pd.Series, present: np.ndarray) -> str:
    codes = label.astype("boolean").map({True: YES, False: NO}, na_action="ignore").fillna(NOT_APPLICABLE)
    return "".join(np.where(present, codes, ABSENT))


def values_of(values: Mapping[str, pd.DataFrame], shape: Shape) -> dict[str, dict[str, list[float | None]]]:
    """The medians of `value` over the rows of each head, by name and task; the task is "" in a table without tasks."""
    by_name: dict[str, dict] = {name: {} for name in values}
    for name, table in values.items():
        tasks = table["task"] if "task" in table else pd.Series("", table.index)
        for task, rows in table.groupby(tasks, sort=False):
            medians = rows.groupby(HEAD)["value"].median().reindex(_heads(shape))
            by_name[name][task] = digits(medians)
    return by_name


def _heads(shape: Shape) -> pd.MultiIndex:
    return pd.MultiIndex.from_product([range(size) for size in shape], names=HEAD)


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
            "layers": encoder.layers,
            "heads": encoder.heads,
            "sep": layout.sep.nonzero()[0].tolist(),
        }
        bits = {role: np.packbits(sieve > 0).tobytes() for role, sieve in sieves.items()}  # row after row
        sentence |= {"masks": {role: b64encode(mask).decode() for role, mask in bits.items()}}
        sentence |= {"scores": {role: {state: digits(values)} for role, values in score.items()}}
        sentences.append(sentence | {"attention": {state: packed_attention(attention)}})
    return sentences


def dials(
    classifier: Encoder, examples: Sequence[Example], heads: Sequence[Head], match: int, max_tokens: int = 128
) -> dict[str, dict[str, Any]]:
    """How a classifier answers while some of its heads look elsewhere, by the id of the pair.

    For each of DOSES, `across` and `own` are the log odds of the class `match` when this share of the heads' attention,
    in the rows of words without a counterpart, goes to the words of the other text, or of the own one. None without
    heads.
    """
    if not heads:
        return {}
    logits = {
        direction: [
            redirect(
                classifier,
                examples,
                {"heads": heads},
                to=to,
                dose=dose,
                max_tokens=max_tokens,
                progress=False,
            )
            for dose in DOSES[1:]
        ]
        for direction, to in DESTINATIONS.items()
    }
    by_pair = {}
    for place, example in enumerate(examples):
        dial: dict[str, Any] = {
            "heads": [f"{layer}-{head}" for layer, head in sorted(heads)],
            "doses": [*DOSES],
        }
        for direction, of_doses in logits.items():
            [before, *_] = match_logit(of_doses[0].values, match)[:, place]
            after = [match_logit(answers.values, match)[1, place] for answers in of_doses]
            dial[direction] = digits([before, *after])
        by_pair[example.id] = dial
    return by_pair


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
