"""The measurements of matching heads over tasks and fine-tuning runs, as tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from analysis.encoders.finetuning import finetune
from analysis.encoders.interventions import Head, predict, sets, single_heads
from analysis.encoders.layout import layouts
from analysis.encoders.models import Encoder, load_encoder
from analysis.scores.extraction import extract
from analysis.statistics.changes import BASELINE, by_head
from analysis.statistics.effects import auc_parts, effect_table
from analysis.synthesis.matching import (
    BLOCKED,
    ROLES,
    Masses,
    answer_table,
    attention_across,
    dial_table,
    edits,
    group_table,
    match_scores,
    match_table,
    neighbours,
    overlap,
    reference_edits,
    row_counts,
)
from analysis.texts.examples import Example, labels_of

Run = tuple[str, int]  # task, fine-tuning seed
CONDITIONS = ("unblocked", "matching heads", "other heads")
RECIPE = ("epochs", "batch_size", "learning_rate", "max_tokens")
SINGLE = r"\d+-\d+"  # the name of a head that is ablated alone


def match_tables(
    states: Mapping[str, Mapping[Run, Encoder]],
    examples: Mapping[str, Sequence[Example]],
    threshold: float | int,
    max_tokens: int = 128,
) -> tuple[pd.DataFrame, dict[tuple[str, str], xr.DataArray]]:
    """`match_table` of every encoder by state and run, and the match scores (sequence, layer, head) by state and task.

    Before fine-tuning the seed of a run is -1.
    """
    tables, scores = [], {}
    for state, runs in states.items():
        for (task, seed), encoder in runs.items():
            bank = extract(encoder, examples[task], roles=[*ROLES], max_tokens=max_tokens, progress=False)
            scores[state, task] = bank.sel(role="match", drop=True)
            tables.append(match_table(bank, threshold).assign(task=task, state=state, seed=seed))
    return _first(pd.concat(tables, ignore_index=True), ["task", "state", "seed"]), scores


class Edited(NamedTuple):
    """A run's logits with every head ablated alone and under all edits of the matching heads."""

    logits: xr.DataArray
    masses: Masses  # give the natural dose
    rows: pd.DataFrame  # how many rows each edit is about


@dataclass(frozen=True)
class Study:
    """The classifiers of all runs, the dev examples of their tasks, and the class of matching pairs in each task.

    `trained` are the runs that trained successfully; tables have them in a column. `cache` is that of `predict`.
    """

    tuned: Mapping[Run, Encoder]
    dev: Mapping[str, Sequence[Example]]
    match: Mapping[str, int]
    trained: Iterable[Run]
    max_tokens: int = 128
    cache: Path | None = None

    @cached_property
    def pairs(self) -> list[Run]:
        """The runs on pairs of texts."""
        return [run for run in self.tuned if self.dev[run[0]][0].text_b is not None]

    def joined(self, tables: Mapping[Run, pd.DataFrame]) -> pd.DataFrame:
        """The tables of runs in one: task, seed, trained, then their columns."""
        parts = [
            table.assign(task=task, seed=seed, trained=(task, seed) in {*self.trained})
            for (task, seed), table in tables.items()
        ]
        empty = pd.DataFrame(columns=["task", "seed", "trained", "edit"])
        return _first(pd.concat(parts, ignore_index=True) if parts else empty, ["task", "seed", "trained"])

    def predict(self, run: Run, interventions: Sequence, examples: Sequence[Example]) -> xr.DataArray:
        """The logits of one run."""
        return predict(self.tuned[run], examples, interventions, max_tokens=self.max_tokens, cache=self.cache)

    def match_scores(self, task: str, logits: xr.DataArray) -> xr.DataArray:
        """The match logits of the first examples of a task."""
        positive = labels_of(self.dev[task]) == self.match[task]
        return match_scores(logits, self.match[task], positive[: logits.sizes["sequence"]])

    def edit(self, heads: Sequence[Head], sink: str, masses_n: int) -> dict[Run, Edited]:
        """Ablates every head of every run alone and, in pair tasks, makes all `edits` of the matching heads.

        The masses of attention are those of the first `masses_n` pairs.
        """
        edited = {}
        for run, encoder in self.tuned.items():
            examples, masses, redirections = self.dev[run[0]], Masses(np.nan, np.nan), []
            if heads and run in self.pairs:
                masses = attention_across(encoder, examples[:masses_n], heads, self.max_tokens)
                redirections = edits(encoder, heads, sink, masses.dose, examples, self.max_tokens)
            logits = self.predict(run, [*single_heads(encoder), *redirections], examples)
            rows = row_counts(redirections, layouts(encoder.tokenizer, examples, self.max_tokens))
            edited[run] = Edited(logits, masses, rows)
        return edited

    def effects(self, edited: Mapping[Run, Edited], heads: Sequence[Head]) -> pd.DataFrame:
        """`effect_table` of the heads ablated alone, with layer, head and whether the head matches."""
        tables = {}
        for run, (logits, *_) in edited.items():
            task, names = run[0], logits["intervention"].to_series()
            single = logits[names.str.fullmatch(f"{SINGLE}|{BASELINE}").to_numpy()]
            table = by_head(effect_table(single, labels_of(self.dev[task]), self.match[task], task=task))
            places = zip(table["layer"], table["head"], strict=True)
            table = table.assign(matching=[place in {*heads} for place in places])
            tables[run] = _first(table.drop(columns="intervention"), ["layer", "head", "matching"])
        return self.joined(tables)

    def scores(self, edited: Mapping[Run, Edited]) -> dict[Run, xr.DataArray]:
        """The match logits (intervention, sequence) of every run."""
        return {run: self.match_scores(run[0], logits) for run, (logits, *_) in edited.items()}

    def answers(
        self, scores: Mapping[Run, xr.DataArray], edited: Mapping[Run, Edited]
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """What edits do to the answers of pair tasks: the redirections and ablation, and the rows of the dial."""
        redirected, dials = {}, {}
        for run in self.pairs:
            table = answer_table(scores[run])
            table = table[~table["edit"].str.fullmatch(SINGLE)]
            moved = table[~table["edit"].str.match("none|dial")]
            redirected[run] = moved.merge(edited[run].rows, on="edit", how="left")
            dials[run] = dial_table(table, edited[run].masses)
        return self.joined(redirected), self.joined(dials).assign(compared=False)

    def compare(
        self, edited: Mapping[Run, Edited], heads: Sequence[Head], runs: Sequence[Run], n: int
    ) -> tuple[pd.DataFrame, dict[str, xr.DataArray]]:
        """The dial at the natural dose in other sets of heads: its rows, and by task the shifts of the match logit.

        In some runs, on the first `n` pairs (see `reference_edits`).
        """
        tables, shifts = {}, {}
        for run in runs if heads else ():
            task, masses = run[0], edited[run].masses
            others = reference_edits(self.tuned[run], heads, masses.dose)
            scores = self.match_scores(task, self.predict(run, others, self.dev[task][:n]))
            tables[run] = dial_table(answer_table(scores), masses)
            sets_alone = ~scores["intervention"].to_series().str.match("head|none").to_numpy()
            shifts[task] = (scores - scores.sel(intervention=BASELINE, drop=True))[sets_alone]
        return self.joined(tables).assign(compared=True), shifts

    def groups(self, scores: Mapping[Run, xr.DataArray]) -> pd.DataFrame:
        """`group_table` of the pair tasks: who is called matching, by label and by shared words."""
        tables = {}
        for run in self.pairs:
            shared = overlap(layouts(self.tuned[run].tokenizer, self.dev[run[0]], self.max_tokens))
            tables[run] = group_table(scores[run], shared)
        return self.joined(tables)

    def blocked(
        self,
        encoder: str,
        task: str,
        train: Sequence[Example],
        heads: Sequence[Head],
        seeds: Sequence[int],
        folder: Callable[..., Path],
        recipe: Mapping[str, object],
    ) -> dict[str, list[xr.DataArray]]:
        """Match logits of classifiers trained without attention from some heads to the other text, by CONDITIONS.

        Nothing is blocked, the matching heads, or as many other heads of their layers. Each array (intervention,
        sequence) holds the answers as trained, "none", and with each of the two sets blocked. `folder` names the
        checkpoint of a condition and a seed, `recipe` holds the parameters of 00_finetune.
        """
        width = load_encoder(encoder).heads
        recipe = {name: recipe[name] for name in RECIPE} | {"precision": recipe["training_precision"]}
        conditions = dict(zip(CONDITIONS, ([], [*heads], neighbours(heads, width)), strict=True))
        answers: dict[str, list[xr.DataArray]] = {}
        for name, members in conditions.items():
            for seed in seeds:
                path = folder(f"{task}-{name.replace(' ', '-')}", seed, new=True)
                finetune(encoder, task, train, self.dev[task], path, blocked=members, seed=seed, **recipe)
                classifier = load_encoder(path, task=task)
                edits = sets(classifier, conditions, BLOCKED)
                logits = predict(classifier, self.dev[task], edits, max_tokens=self.max_tokens)
                answers.setdefault(name, []).append(self.match_scores(task, logits)[1:])
        return answers

    def blocked_table(self, answers: Mapping[str, Mapping[str, Sequence[xr.DataArray]]]) -> pd.DataFrame:
        """The AUC of `blocked` by task, condition of training, seed, and what is blocked in the evaluation."""
        rows = [
            (task, name, seed, str(edit), part.mean())
            for task, conditions in answers.items()
            for name, runs in conditions.items()
            for seed, scores in enumerate(runs)
            for edit, part in zip(
                scores["intervention"].values,
                auc_parts(scores.values, scores["positive"].values),
                strict=True,
            )
        ]
        return pd.DataFrame(rows, columns=["task", "training", "seed", "evaluation", "auc"])


def _first(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The table with these columns first."""
    return table[[*columns, *table.columns.drop(columns)]]
