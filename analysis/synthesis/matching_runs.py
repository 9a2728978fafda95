"""What edits of the matching heads do to the answers of classifiers: functions that give tables."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from sklearn.metrics import roc_auc_score

from analysis.encoders.classifiers import load_classifier
from analysis.encoders.finetuning import Recipe, finetune
from analysis.encoders.interventions import Intervention, head_name, labels_of, predict, sets, single_heads
from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder
from analysis.roles import Head
from analysis.scores.extraction import extract
from analysis.statistics.bootstrap import resampled
from analysis.statistics.changes import BASELINE, by_head
from analysis.statistics.effects import AUC, auc_parts, effect_table, match_logit
from analysis.statistics.intervals import crossed_interval, draws_interval, wilson_interval
from analysis.statistics.resampling import quiet
from analysis.statistics.training import TaskSeed
from analysis.synthesis import matching
from analysis.texts.examples import Example

T = TypeVar("T")
# Columns of a table without rows: those by which notebooks group.
EMPTY = (
    "task seed trained set k edit region pair measure group layer head auc fall shift share crossing cosine"
)
EMPTY = [*EMPTY.split(), "overlap_auc"]
CONDITIONS = ("unblocked", "matching heads", "other heads")
RECIPE = ("batch_size", "learning_rate", "max_tokens")
SET = "matching heads"
DIALLED = "dial: "  # before the name of a set of heads that turns the dial, where others are ablated
# The edits that tell crossing from leaving the sink: to the own text, across, and to the sink.
CROSSINGS = {
    "attention of matched words": (matching.TO_OWN, matching.TO_WRONG, matching.TO_SINK),
    "dial": (matching.OWN, matching.NATURAL, matching.SINK),
}


class Classifier(NamedTuple):
    """A fine-tuned encoder, the dev examples of its task, and the class of matching pairs."""

    task: str
    seed: int
    encoder: Encoder
    dev: Sequence[Example]
    match: int
    trained: bool = True  # successfully
    max_tokens: int = 128
    cache: Path | None = None

    @property
    def run(self) -> TaskSeed:
        """Task and fine-tuning seed."""
        return self.task, self.seed

    @property
    def pair(self) -> bool:
        """Whether its examples have two texts."""
        return self.dev[0].text_b is not None

    def layouts(self, n: int | None = None) -> list[Layout]:
        """The layouts of the first `n` dev examples."""
        return layouts(self.encoder.tokenizer, self.dev[:n], self.max_tokens)

    def overlap_auc(self) -> float:
        """The AUC of the share of common words alone, the baseline of every pair task; NaN for single texts."""
        positive = labels_of(self.dev) == self.match
        if not self.pair or positive.all() or not positive.any():
            return np.nan
        return float(roc_auc_score(positive, matching.overlap(self.layouts())))


def match_tables(
    states: Mapping[str, Mapping[TaskSeed, Encoder]],
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
            options = {"roles": [*matching.MATCH_SIEVES], "max_tokens": max_tokens, "progress": False}
            bank = extract(encoder, examples[task], **options)
            scores[state, task] = bank.sel(role="match", drop=True)
            tables.append(matching.match_table(bank, threshold).assign(task=task, state=state, seed=seed))
    return columns_first(pd.concat(tables, ignore_index=True), "task", "state", "seed"), scores


def edited_logits(
    classifier: Classifier, interventions: Sequence[Intervention], examples: Sequence[Example]
) -> xr.DataArray:
    """The logits of a classifier under interventions."""
    options = {"max_tokens": classifier.max_tokens, "cache": classifier.cache}
    return predict(classifier.encoder, examples, interventions, **options)


def match_scores(
    classifier: Classifier, interventions: Sequence[Intervention], examples: Sequence[Example] | None = None
) -> xr.DataArray:
    """The match logits (intervention, sequence) of its dev examples, or of others, under interventions.

    Their coordinate `positive` says which pairs match.
    """
    examples = classifier.dev if examples is None else examples
    return of_logits(classifier, edited_logits(classifier, interventions, examples), examples)


def of_logits(classifier: Classifier, logits: xr.DataArray, examples: Sequence[Example]) -> xr.DataArray:
    """The match logits, as `match_scores` gives them, of logits (intervention, sequence, class)."""
    values = match_logit(logits.transpose("intervention", "sequence", "class").values, classifier.match)
    scores = logits[..., 0].drop_vars("class").copy(data=values)
    return scores.assign_coords(positive=("sequence", labels_of(examples) == classifier.match))


def per_run(classifiers: Sequence[Classifier], function: Callable[[Classifier], T]) -> dict[TaskSeed, T]:
    """What a function gives for every classifier, by its task and seed."""
    return {classifier.run: function(classifier) for classifier in classifiers}


def by_run(
    results: Mapping[TaskSeed, T],
    classifiers: Sequence[Classifier],
    table: Callable[[T], pd.DataFrame] = pd.DataFrame,
) -> pd.DataFrame:
    """The tables of all runs in one: task, seed, trained, columns of `table(result)`, and the AUC of word overlap."""
    known, parts = {classifier.run: classifier for classifier in classifiers}, []
    for (task, seed), result in results.items():
        classifier = known[task, seed]
        columns = {"task": task, "seed": seed, "trained": classifier.trained}
        parts.append(table(result).assign(**columns, overlap_auc=classifier.overlap_auc()))
    joined = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=EMPTY)
    return columns_first(joined, "task", "seed", "trained")


def answer_table(scores: xr.DataArray) -> pd.DataFrame:
    """What every intervention does to the answers, from `match_scores`: the columns of `matching_redirection`."""
    names = scores["intervention"].values.tolist()
    whole, logits = names.index(BASELINE), scores.values
    parts, rows = auc_parts(logits, scores["positive"].values), []
    for name, part, logit in zip(names, parts, logits, strict=True):
        fall = crossed_interval((parts[whole] - part)[None])
        shift = crossed_interval((logit - logits[whole])[None])
        rows.append((name, part.mean(), *fall, logit.mean(), *shift, (logit > 0).mean(), len(logit)))
    columns = "edit auc fall fall_low fall_high logit shift shift_low shift_high share n".split()
    return pd.DataFrame(rows, columns=columns)


def region_table(scores: xr.DataArray) -> pd.DataFrame:
    """`answer_table` of what is left out of what heads read, with the shifts on matching and on other pairs alone."""
    logits, positive = scores.values, scores["positive"].values
    table = answer_table(scores).rename(columns={"edit": "region"})
    for name, pairs in (("matching", positive), ("other", ~positive)):
        table[f"shift_{name}"] = (logits - logits[:1])[:, pairs].mean(axis=1)
    return table[1:]


def single_effects(
    classifier: Classifier, heads: Sequence[Head], examples: Sequence[Example]
) -> pd.DataFrame:
    """`effect_table` of every head ablated alone, with layer, head and whether the head matches."""
    logits = edited_logits(classifier, single_heads(classifier.encoder), examples)
    labels = labels_of(examples)
    table = by_head(effect_table(logits, labels, classifier.match, task=classifier.task))
    places = zip(table["layer"], table["head"], strict=True)
    table = table.assign(matching=[place in {*heads} for place in places]).drop(columns="intervention")
    return columns_first(table, "layer", "head", "matching")


def with_ranks(answers: pd.DataFrame, effects: pd.DataFrame) -> pd.DataFrame:
    """Rows of `answer_table`, then each matching head ablated alone, with its rank by the fall in AUC."""
    alone = effects[effects["matching"] & (effects["metric"] == AUC)]
    names = [head_name(*place) for place in zip(alone["layer"], alone["head"], strict=True)]
    columns = {"effect": "fall", "low": "fall_low", "high": "fall_high"}
    rows = alone.rename(columns=columns).assign(edit=names, auc=alone["baseline"] - alone["effect"])
    return pd.concat([answers, rows], ignore_index=True).reindex(columns=[*answers.columns, "rank"])


def redirection_table(
    scores: xr.DataArray, classifier: Classifier, edits: Sequence[Intervention]
) -> pd.DataFrame:
    """`answer_table` of the edits, with the number of rows that each is about and that stay for lack of a target."""
    counts = matching.row_counts(edits, classifier.layouts())
    return answer_table(scores)[1:].merge(counts, on="edit", how="left")


def dial_table(scores: xr.DataArray, masses: matching.Masses) -> pd.DataFrame:
    """`answer_table` of edits that turn the dial, with their dose and the masses that give the natural one."""
    table = answer_table(scores)
    dose = table["edit"].str.extract(r"^dial ([\d.]+)$")[0].astype(float).fillna(masses.dose)
    dose = dose.mask(table["edit"] == BASELINE, 0)
    return table.assign(dose=dose, matched=masses.matched, unmatched=masses.unmatched)


def set_interventions(
    classifier: Classifier, heads: Sequence[Head], count: int, dose: float | None = None
) -> list[Intervention]:
    """Ablates the matching heads and `count` other sets of their layers; with a dose, they turn the dial as well.

    Sets are named after their heads, the matching heads SET; DIALLED stands before those that turn the dial.
    """
    others = matching.other_sets(heads, classifier.encoder.heads, count) if heads else []
    named = {SET: heads} | {matching.names_of(members): members for members in others}
    return _of_sets(classifier, named, dose)


def role_interventions(
    classifier: Classifier, heads: Sequence[Head], roles: pd.DataFrame
) -> list[Intervention]:
    """Ablates the matching heads (SET), and for every other role the heads with its highest scores, as many.

    `roles` is the role table of the task before fine-tuning; matching heads stay out of the other sets.
    """
    others = roles[~pd.MultiIndex.from_frame(roles[["layer", "head"]]).isin(heads)]
    named = {SET: heads}
    for role, rows in others[others["role"] != "match"].dropna(subset="mean").groupby("role", sort=False):
        best = rows.nlargest(len(heads), "mean")
        named[str(role)] = [
            (int(layer), int(head)) for layer, head in zip(best["layer"], best["head"], strict=True)
        ]
    return _of_sets(classifier, named, None)


def growing_interventions(classifier: Classifier, order: Sequence[Head], dose: float) -> list[Intervention]:
    """Ablates the first 1, 2, 3 ... heads of an order, and lets them turn the dial."""
    named = {matching.names_of(order[: k + 1]): order[: k + 1] for k in range(len(order))}
    return _of_sets(classifier, named, dose)


def _of_sets(
    classifier: Classifier, named: Mapping[str, Sequence[Head]], dose: float | None
) -> list[Intervention]:
    if not all(named.values()):
        return []
    ablated = sets(classifier.encoder, named)
    if dose is None:
        return ablated
    dialled = {f"{DIALLED}{name}": members for name, members in named.items()}
    return [*ablated, *sets(classifier.encoder, dialled, matching.DIAL, dose)]


def set_table(scores: xr.DataArray, heads: Sequence[Head]) -> pd.DataFrame:
    """A row for each set: its heads, the fall in AUC when it is ablated; shift and share when it turns the dial.

    The first row, "none", is the unchanged encoder.
    """
    table = answer_table(scores).set_index("edit")
    names = [name for name in table.index if not name.startswith(DIALLED)]
    kinds = {BASELINE: BASELINE, SET: SET, matching.names_of(heads): SET}
    rows = table.loc[names, ["auc", "fall", "fall_low", "fall_high"]].reset_index(names="heads")
    rows.insert(0, "set", [kinds.get(name, "other heads") for name in names])
    rows["heads"] = rows["heads"].replace({SET: matching.names_of(heads), BASELINE: ""})
    dialled = table.reindex([name if name == BASELINE else f"{DIALLED}{name}" for name in names])
    return rows.assign(**{column: dialled[column].to_numpy() for column in ("shift", "share")})


def growing_table(scores: xr.DataArray) -> pd.DataFrame:
    """The rows of `set_table` by the number of heads, k."""
    table = set_table(scores, [])
    table.insert(0, "k", range(len(table)))
    return table.drop(columns="set")


def crossing_draws(
    scores: xr.DataArray, edits: Sequence[str], draws: int = 999
) -> Float[np.ndarray, " draw"]:
    """The crossing share of the pairs, and of bootstrap draws of them; NaN where leaving the sink changes nothing.

    `edits` name the attention to the own text, across and to the sink. With falls of the AUC for an edit of matched
    words, and shifts of the match logit for the dial, it is (own - across) / (sink - across): 1 if only the other text
    counts, 0 if any text will do.
    """
    own, across, sink = edits
    part = scores.sel(intervention=[BASELINE, own, across, sink])
    values = part.values if across == matching.NATURAL else auc_parts(part.values, part["positive"].values)
    changes = values[0] - values[1:]
    own_sum, sink_sum = changes[0] - changes[1], changes[2] - changes[1]
    _, low, high = crossed_interval(sink_sum[None])
    if not (low > 0 or high < 0):
        return np.full(draws + 1, np.nan)
    weights = resampled(len(own_sum), draws)
    with quiet():
        return (weights @ own_sum) / (weights @ sink_sum)


def crossing_table(scores: xr.DataArray) -> pd.DataFrame:
    """The crossing share of an edit of matched words and of the dial, with its interval over pairs."""
    rows = []
    for measure, names in CROSSINGS.items():
        if {*names} <= {*scores["intervention"].values}:
            rows.append((measure, *draws_interval(crossing_draws(scores, names))))
    return pd.DataFrame(rows, columns=["measure", "crossing", "low", "high"])


def identical_scores(
    classifier: Classifier, interventions: Sequence[Intervention], n: int, seed: int = 0
) -> dict[str, xr.DataArray]:
    """The match logits of `n` texts beside themselves, by what the second text is (see `beside_itself`)."""
    pairs = matching.beside_itself(classifier.dev, n, seed)
    return {name: match_scores(classifier, interventions, part) for name, part in pairs.items() if part}


def identical_table(scores: Mapping[str, xr.DataArray]) -> pd.DataFrame:
    """The share of texts that are called a match with themselves, by what the second text is and by edit."""
    rows = [
        (pair, str(edit), answers.sizes["sequence"], *wilson_interval((row > 0).sum(), len(row)))
        for pair, answers in scores.items()
        for edit, row in zip(answers["intervention"].values, answers.values, strict=True)
    ]
    return pd.DataFrame(rows, columns=["pair", "edit", "n", "share", "low", "high"])


def group_table(scores: xr.DataArray, shared: Float[np.ndarray, " sequence"]) -> pd.DataFrame:
    """Share of pairs called matching by label and by tercile of the overlap of their texts, with and without edits."""
    names = {BASELINE: "share", matching.BOTH: "share_ablated", matching.NATURAL: "share_dial"}
    available = [name for name in names if name in scores["intervention"].values]
    called_matching = (scores.sel(intervention=available) > 0).values.T.astype(float)
    table = pd.DataFrame(called_matching, columns=[names[name] for name in available])
    label = pd.Series(np.where(scores["positive"].values, "matching", "other"))
    terciles = np.searchsorted(np.quantile(shared, [1 / 3, 2 / 3]), shared)
    words = pd.Series(np.array(["few", "some", "many"])[terciles])
    groups = table.assign(overlap=shared, group=label + " pairs, " + words + " words shared").groupby("group")
    means = groups.mean().assign(n=groups.size())
    return means.reindex(columns=[*names.values(), "overlap", "n"]).reset_index()


def train(
    encoder: str,
    like: Classifier,
    examples: Sequence[Example],
    folder: Path,
    recipe: Mapping[str, object],
    epochs: int,
    seed: int,
    blocked: Sequence[Head] = (),
) -> tuple[Classifier, float]:
    """Another classifier for the task of `like`, trained on other examples or with heads blocked; and its accuracy."""
    options = {name: recipe[name] for name in RECIPE} | {"precision": recipe["training_precision"]}
    recipe = Recipe(epochs, seed=seed, blocked=tuple(blocked), **options)
    scores = finetune(encoder, like.task, examples, like.dev, folder, recipe)
    return like._replace(seed=seed, encoder=load_classifier(folder, like.task)), scores["accuracy"]


def blocked_scores(classifier: Classifier, conditions: Mapping[str, Sequence[Head]]) -> xr.DataArray:
    """The match logits with the attention across of each condition's heads blocked."""
    return match_scores(classifier, sets(classifier.encoder, conditions, matching.BLOCKED))[1:]


def blocking(heads: Sequence[Head], width: int) -> dict[str, list[Head]]:
    """The heads that are blocked in each of CONDITIONS: none, the matching ones, and as many of the same layers."""
    return dict(zip(CONDITIONS, ([], [*heads], matching.neighbours(heads, width)), strict=True))


def blocked_table(
    answers: Mapping[str, Mapping[str, Sequence[xr.DataArray]]], overlaps: Mapping[str, float]
) -> pd.DataFrame:
    """AUC by task, condition of training, seed and what is blocked in the evaluation, beside that of word overlap."""
    rows = [
        (task, name, seed, str(edit), part.mean(), overlaps[task])
        for task, conditions in answers.items()
        for name, runs in conditions.items()
        for seed, scores in enumerate(runs)
        for edit, part in zip(
            scores["intervention"].values, auc_parts(scores.values, scores["positive"].values), strict=True
        )
    ]
    columns = ["task", "training", "seed", "evaluation", "auc", "overlap_auc"]
    return pd.DataFrame(rows, columns=columns)


def columns_first(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The table with these columns first."""
    return table[[*columns, *table.columns.drop([*columns])]]
