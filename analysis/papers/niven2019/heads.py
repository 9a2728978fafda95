"""Heads that attend to the cue: their scores before and after fine-tuning, and their ablation (this study)."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool

from analysis.encoders.interventions import head_name, predict, sets
from analysis.encoders.layout import Layout, WordPairs
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.niven2019.accuracy import ALL, CUE_HEADS, SIGNS
from analysis.papers.niven2019.arguments import NOT, Argument, as_examples, follows_cue
from analysis.papers.niven2019.runs import TrainingRun
from analysis.roles import Head
from analysis.scores.extraction import extract
from analysis.scores.sieves import Matrix, columns, sieve
from analysis.statistics.changes import change_table
from analysis.statistics.comparison import compare
from analysis.statistics.head_sets import random_sets
from analysis.statistics.significance import Rule, role_table
from analysis.tables import stacked

CUE = "cue"
BEFORE = "pretrained"
ABLATED = "setup seed heads points intervention n baseline change low high p p_random".split()
SCORED = "setup seed layer head n pretrained finetuned difference low high p p_by change".split()


@sieve(CUE)
def cue(layout: Layout, pairs: WordPairs) -> Matrix | None:
    """The pieces of "not" in the last text, the warrant: not, cannot, and the end of n't."""
    return columns(cue_pieces(layout) & (layout.text == layout.text.max()))


def cue_pieces(layout: Layout) -> Bool[np.ndarray, " token"]:
    """The pieces of a negation with "not": the words not and cannot, and the apostrophe and t of n't."""
    # Byte-level and sentence-piece vocabularies mark the space before a token; âĢĻ are the bytes of a curly apostrophe.
    tokens = [token.lstrip("Ġ▁").replace("âĢĻ", "’").lower() for token in layout.tokens]
    marks = np.isin(tokens, [NOT, "cannot"])
    for place in range(1, len(tokens) - 1):
        if tokens[place] in ("'", "’") and tokens[place + 1] == "t":
            marks[place : place + 2] = True
        if layout.tokens[place] in ("'t", "’t", "âĢĻt") and tokens[place - 1][-1:].isalpha():
            marks[place] = True
    return marks


def head_table(scores: Mapping[str | int, xr.DataArray], setup: str, rule: Rule) -> pd.DataFrame:
    """How much each head attends to the cue before and after fine-tuning: the columns of SCORED.

    `scores` are those of the cue sieve: BEFORE, and one for each seed. The scores (1 for uniform attention) are
    compared on the same warrants, in whole clusters that share a text; p_by corrects over the heads. change is the
    class of `comparison.compare`.
    """
    labels = {state: role_table(array, rule) for state, array in scores.items()}
    tables = {
        (setup, seed): compare(scores[BEFORE], scores[seed], labels[BEFORE], labels[seed], rule)
        for seed in scores
        if seed != BEFORE
    }
    return stacked(tables, "setup", "seed")[SCORED]


def heads_by_setup(
    model: Encoder,
    states: Mapping[TrainingRun, Encoder],
    arguments: Sequence[Argument],
    rule: Rule,
    max_tokens: int = 80,
) -> pd.DataFrame:
    """The head tables of all set-ups: the pre-trained encoder and the fine-tuned ones of `runs.finetuned_states`.

    Raises InputError without a fine-tuned encoder.
    """
    if not states:
        raise InputError("no encoder was fine-tuned: give encoder_seeds, and full or W as encoder_setups")
    parts = []
    for setup in dict.fromkeys(run.setup for run in states):
        finetuned = {run.seed: encoder for run, encoder in states.items() if run.setup == setup}
        states_of, examples = {BEFORE: model} | finetuned, as_examples(arguments, setup)
        scores = {
            state: extract(encoder, examples, roles=[CUE], max_tokens=max_tokens)
            for state, encoder in states_of.items()
        }
        parts.append(head_table(scores, setup, rule))
    return pd.concat(parts, ignore_index=True)


def cue_heads(table: pd.DataFrame, setup: str, seed: int, count: int) -> list[Head]:
    """The heads of a fine-tuned run with the highest mean scores on the cue."""
    rows = table[(table["setup"] == setup) & (table["seed"] == seed)].nlargest(count, "finetuned")
    return [(int(layer), int(head)) for layer, head in zip(rows["layer"], rows["head"], strict=True)]


def ablate_cue_heads(
    states: Mapping[TrainingRun, Encoder],
    table: pd.DataFrame,
    arguments: Sequence[Argument],
    count: int,
    controls: int = 19,
    cache: Path | None = None,
    seed: int = 0,
    max_tokens: int = 80,
) -> dict[tuple[str, int], xr.DataArray]:
    """Logits of all fine-tuned encoders, by set-up and seed: whole, with CUE_HEADS, and with each random set ablated.

    The `count` heads with the highest scores on the cue are ablated together; the attribute `heads` names them.
    """
    logits = {}
    for run, encoder in states.items():
        heads = cue_heads(table, run.setup, run.seed, count)
        random = random_sets(heads, encoder.heads, controls, seed)
        ablated = {CUE_HEADS: heads} | {f"random {number}": [*others] for number, others in enumerate(random)}
        options = {"max_tokens": max_tokens, "cache": cache, "progress": False}
        answers = predict(encoder, as_examples(arguments, run.setup), sets(encoder, ablated), **options)
        names = " ".join(head_name(*head) for head in heads)
        logits[run.setup, run.seed] = answers.assign_attrs(heads=names)
    return logits


def ablation_table(
    logits: Mapping[tuple[str, int], xr.DataArray],
    arguments: Sequence[Argument],
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """The table `niven_interventions` (docs/tables.yaml) of the logits of `ablate_cue_heads`.

    It has the change of accuracy where the cue is right, wrong or absent, and at all points. p is that of the exact
    McNemar test, and p_random (for the cue heads only) the share of random sets that change at least as much in size,
    with 1 added above and below; NaN without random sets.
    """
    labels, signs = np.array([argument.label for argument in arguments]), follows_cue(arguments)
    kinds = {kind: signs == sign for kind, sign in SIGNS.items()} | {ALL: np.full(len(signs), True)}
    parts = []
    for ((setup, run), answers), (kind, points) in product(logits.items(), kinds.items()):
        if points.any():
            selected = answers.isel(sequence=np.flatnonzero(points))
            table = change_table(selected, labels[points], ["accuracy"], resamples=resamples, seed=seed)
            columns = {"setup": setup, "seed": run, "heads": answers.attrs["heads"], "points": kind}
            parts.append(table.assign(**columns, n=int(points.sum()), p_random=_ranks(table)))
    return pd.concat(parts, ignore_index=True)[ABLATED]


def _ranks(table: pd.DataFrame) -> np.ndarray:
    """p of the cue heads among the random sets, a value for each row."""
    is_cue, size = table["intervention"] == CUE_HEADS, table["change"].abs()
    larger, sets = (size[~is_cue] >= size[is_cue].item() - 1e-9).sum(), (~is_cue).sum()
    return np.where(is_cue & (sets > 0), (1 + larger) / (1 + sets), np.nan)
