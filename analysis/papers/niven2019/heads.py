"""Heads that attend to the cue: scored with a sieve, before and after fine-tuning, and switched off.

Not in Niven 2019.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Int

from analysis.encoders.interventions import Head, head_name, sets
from analysis.encoders.interventions import predict as predicted
from analysis.encoders.layout import Layout, WordPairs
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.papers.niven2019.accuracy import CUE_HEADS, SIGNS
from analysis.papers.niven2019.arguments import Argument, as_examples
from analysis.papers.niven2019.cues import NOT, follows_cue
from analysis.papers.niven2019.runs import Run
from analysis.scores.extraction import extract_states
from analysis.scores.forms import Columns
from analysis.scores.sieves import columns, sieve
from analysis.statistics.changes import change_table
from analysis.statistics.comparison import compare
from analysis.statistics.resampling import random_sets
from analysis.statistics.significance import Rule, role_table

CUE = "cue"
BEFORE = "pretrained"
OFF = [
    "setup",
    "seed",
    "heads",
    "points",
    "intervention",
    "n",
    "baseline",
    "change",
    "low",
    "high",
    "p",
    "p_random",
]
ALL_POINTS = "all"
SCORED = ["setup", "seed", "layer", "head", "n", "pretrained", "finetuned", "difference", "low", "high", "p", "p_by",
          "assigned_before", "assigned_after", "change"]  # fmt: skip


@sieve(CUE)
def cue(layout: Layout, pairs: WordPairs) -> Columns | None:
    """The pieces of "not" in the last text, the warrant: not, cannot, and the end of n't."""
    return columns(cue_pieces(layout) & (layout.text == layout.text.max()))


def cue_pieces(layout: Layout) -> Bool[np.ndarray, " token"]:
    """The pieces of a negation with "not": the words not and cannot, and the apostrophe and t of n't."""
    # Byte-level and sentence-piece vocabularies mark the blank before a token; âĢĻ are the bytes of a curly apostrophe.
    tokens = [token.lstrip("Ġ▁").replace("âĢĻ", "’").lower() for token in layout.tokens]
    marks = np.isin(tokens, [NOT, "cannot"])
    for place in range(1, len(tokens) - 1):
        if tokens[place] in ("'", "’") and tokens[place + 1] == "t":
            marks[place : place + 2] = True
        if layout.tokens[place] in ("'t", "’t", "âĢĻt") and tokens[place - 1][-1:].isalpha():
            marks[place] = True
    return marks


def cue_scores(
    states: Mapping[str | int, Encoder],
    arguments: Sequence[Argument],
    setup: str,
    max_tokens: int = 80,
    **reading,
) -> dict[str | int, xr.DataArray]:
    """Scores of the cue sieve for every state of an encoder, on the warrants as a set-up shows them."""
    return extract_states(
        states, as_examples(arguments, setup), roles=[CUE], max_tokens=max_tokens, **reading
    )


def head_table(
    scores: Mapping[str | int, xr.DataArray],
    setup: str,
    rule: Rule,
) -> pd.DataFrame:
    """How much each head attends to the cue before and after fine-tuning: the columns of SCORED.

    `scores` are those of `cue_scores`: BEFORE, and one for each seed. The scores (1 for uniform attention) are compared
    on the same warrants; p_by corrects over the heads. assigned_before and assigned_after are the corrected labels;
    change is the class of `comparison.compare`.
    """
    labels = {state: role_table(each, rule) for state, each in scores.items()}
    parts = []
    for state in (state for state in scores if state != BEFORE):
        found = compare(scores[BEFORE], scores[state], labels[BEFORE], labels[state], rule)
        for column, name in ((BEFORE, "assigned_before"), (state, "assigned_after")):
            own = labels[column].set_index(["layer", "head"])["assigned_corrected"]
            found[name] = own.reindex(pd.MultiIndex.from_frame(found[["layer", "head"]])).to_numpy()
        parts.append(found.assign(setup=setup, seed=state)[SCORED])
    return pd.concat(parts, ignore_index=True)


def strongest(table: pd.DataFrame, setup: str, seed: int, count: int) -> list[Head]:
    """The heads of a fine-tuned run that attend to the cue most, by mean score."""
    rows = table[(table["setup"] == setup) & (table["seed"] == seed)].nlargest(count, "finetuned")
    return [(int(layer), int(head)) for layer, head in zip(rows["layer"], rows["head"], strict=True)]


def switched_off(
    encoder: Encoder,
    arguments: Sequence[Argument],
    setup: str,
    heads: Sequence[Head],
    controls: int = 19,
    seed: int = 0,
    max_tokens: int = 80,
    **options,
) -> xr.DataArray:
    """Logits of a fine-tuned encoder with all heads on, with the heads off (CUE_HEADS), and with random sets off."""
    drawn = random_sets(heads, encoder.heads, controls, seed)
    named = {CUE_HEADS: list(heads)} | {f"random {number}": [*each] for number, each in enumerate(drawn)}
    examples = as_examples(arguments, setup)
    return predicted(encoder, examples, sets(encoder, named), max_tokens=max_tokens, **options)


def off_table(
    logits: xr.DataArray, arguments: Sequence[Argument], resamples: int = 999, seed: int = 0
) -> pd.DataFrame:
    """The change by switching heads off: where the cue is right, wrong or absent, and at all points.

    Columns points, intervention, n, baseline, change (accuracy), low, high, p (exact McNemar), and p_random (for the
    cue heads only): the share of random sets that change at least as much in size, with 1 added above and below; NaN
    without random sets.
    """
    labels, signs = np.array([each.label for each in arguments]), follows_cue(arguments)
    parts = []
    for points, chosen in _kinds(signs).items():
        if not chosen.any():
            continue
        part = logits.isel(sequence=np.flatnonzero(chosen))
        found = change_table(part, labels[chosen], ["accuracy"], resamples=resamples, seed=seed)
        is_own = found["intervention"] == CUE_HEADS
        size, others = found["change"].abs()[is_own].item(), found["change"].abs()[~is_own]
        rank = (1 + (others >= size - 1e-9).sum()) / (1 + len(others)) if len(others) else np.nan
        parts.append(
            found.assign(points=points, n=int(chosen.sum()), p_random=np.where(is_own, rank, np.nan))
        )
    return pd.concat(parts, ignore_index=True)[OFF[3:]]


def _kinds(signs: Int[np.ndarray, " point"]) -> dict[str, Bool[np.ndarray, " point"]]:
    """Which points are of each kind."""
    return {**{kind: signs == sign for kind, sign in SIGNS.items()}, ALL_POINTS: np.full(len(signs), True)}


def heads_by_setup(
    model: Encoder,
    states: Mapping[Run, Encoder],
    arguments: Sequence[Argument],
    rule: Rule,
    max_tokens: int = 80,
) -> pd.DataFrame:
    """The head tables of all set-ups: the pre-trained encoder and the fine-tuned ones of `runs.finetuned_states`.

    Raises InputError without a fine-tuned encoder.
    """
    if not states:
        raise InputError(
            "there is no fine-tuned encoder: give encoder_seeds, and full or W as encoder_setups"
        )
    parts = []
    for setup in dict.fromkeys(run.setup for run in states):
        own = {run.seed: encoder for run, encoder in states.items() if run.setup == setup}
        scores = cue_scores({BEFORE: model, **own}, arguments, setup, max_tokens)
        parts.append(head_table(scores, setup, rule))
    return pd.concat(parts, ignore_index=True)


def off_by_setup(
    states: Mapping[Run, Encoder],
    table: pd.DataFrame,
    arguments: Sequence[Argument],
    count: int,
    controls: int = 19,
    cache: Path | None = None,
    seed: int = 0,
    max_tokens: int = 80,
) -> dict[tuple[str, int], xr.DataArray]:
    """The logits of `switched_off` of all fine-tuned encoders, by set-up and seed, with the names of the heads as the
    attribute `heads`; in each encoder, the `count` heads that attend to the cue most are off."""
    found = {}
    for run, encoder in states.items():
        heads = strongest(table, run.setup, run.seed, count)
        logits = switched_off(
            encoder, arguments, run.setup, heads, controls, seed, max_tokens, cache=cache, progress=False
        )
        names = " ".join(head_name(*head) for head in heads)
        found[run.setup, run.seed] = logits.assign_attrs(heads=names)
    return found


def off_tables(
    logits: Mapping[tuple[str, int], xr.DataArray],
    arguments: Sequence[Argument],
    resamples: int = 999,
    seed: int = 0,
) -> pd.DataFrame:
    """The off tables of the logits of `off_by_setup`, with columns setup, seed and heads (layer-head).

    Without any logits, a table of one row without values, so that it can be saved.
    """
    parts = [
        off_table(each, arguments, resamples, seed).assign(setup=setup, seed=run, heads=each.attrs["heads"])
        for (setup, run), each in logits.items()
    ]
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=OFF)
    return found[OFF]
