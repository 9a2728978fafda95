"""What each claim of Kovaleva 2019 measures, from the tables of its notebooks, and the words of these (no torch)."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Int
from scipy import stats

from analysis import tables
from analysis.statistics import claims
from analysis.statistics.changes import BASELINE, not_worse
from analysis.statistics.effects import auc_parts, match_logit, stratified_halves
from analysis.statistics.intervals import crossed_interval, mean_interval
from analysis.statistics.layers import FIRST_THIRD, LAST_SIXTH, LAST_THIRD, cross_fitted, layers_within
from analysis.statistics.training import TaskSeed, trained_runs
from analysis.texts.tasks import original, task_named

VERTICAL, DIAGONAL, BOTH, BLOCK = "vertical", "diagonal", "vertical and diagonal", "block"
HETEROGENEOUS = "heterogeneous"
PATTERNS = (VERTICAL, DIAGONAL, BOTH, BLOCK, HETEROGENEOUS)
CLS, SEP = "[CLS]", "[SEP]"
PARTS_OF_SPEECH = {"noun": ("NOUN", "PROPN"), "verb": ("VERB",), "pronoun": ("PRON",)}
ARGUMENTS = {  # relations of spaCy and of Universal Dependencies
    "subject": ("nsubj", "nsubj:pass", "csubj", "csubj:pass", "expl", "agent"),
    "object": ("dobj", "iobj", "dative", "attr", "oprd"),
}
NEGATION = "negation"
LINGUISTIC = (*PARTS_OF_SPEECH, *ARGUMENTS, NEGATION)
FEATURES = (*LINGUISTIC, "punctuation", CLS, SEP)
STATES = ("pretrained", "finetuned")
UNTUNED, RANDOM, PRETRAINED = "untuned", "random", "pretrained"  # where training starts
SPECIAL_HEADS = "heads with most attention on special tokens"
CLAIMS = claims.read_claims(Path(__file__).with_name("claims.yaml"))
published = partial(tables.published, Path(__file__).parent)  # all of BERT-base
LEVEL = 0.05
MARGIN = 0.2  # the share of a classifier's lead that counts as no loss
UNTRAINED, NO_LEAD = "no run trained successfully", "no run has a lead on these sequences"
ALL_LAYERS = -1  # the mean over all layers in the table `kovaleva_blocks`; seed -1 is before fine-tuning
Blocks = xr.DataArray  # of a task: measure, layer, seed, block


def by_block(table: pd.DataFrame) -> xr.DataArray:
    """The values of the table `kovaleva_blocks`: task, measure, layer, seed, block."""
    return table.set_index(["task", "measure", "layer", "seed", "block"])["value"].to_xarray()


def task_blocks(blocks: xr.DataArray) -> Iterator[tuple[str, Blocks]]:
    """Each task and its blocks: a task with few sequences has fewer than others."""
    for task in blocks["task"].values:
        yield str(task), blocks.sel(task=task).dropna("block", how="all").dropna("seed", how="all")


def task_units(
    blocks: xr.DataArray, trained: Collection[TaskSeed], measure: Callable[[Blocks, Blocks], xr.DataArray]
) -> pd.DataFrame:
    """A frame with a unit for each task, from a measure (seed, block) of its blocks before and after fine-tuning.

    A task is not applicable without a run that trained successfully.
    """
    units = []
    for task, values in task_blocks(blocks):
        runs = [run for run in values["seed"].values if (task, run) in trained]
        if runs:
            measured = measure(values.sel(seed=-1, drop=True), values.sel(seed=runs))
            interval = crossed_interval(measured.transpose("seed", "block").values)
            units.append(claims.frame({task: interval}, runs=len(runs)))
        else:
            units.append(claims.not_applicable(UNTRAINED, task))
    return claims.together(units, "no other task")


def heterogeneous_share(
    blocks: xr.DataArray, trained: Collection[TaskSeed], quality: pd.DataFrame
) -> pd.DataFrame:
    """K1: the share of maps that are heterogeneous after fine-tuning; the reference is before.

    The reason says how well the rules label maps that were labelled by eye (see `qualified`).
    """
    return qualified(share_beside_before(blocks, trained, HETEROGENEOUS), quality)


def share_beside_before(blocks: xr.DataArray, trained: Collection[TaskSeed], measure: str) -> pd.DataFrame:
    """The frame of a share of maps or heads after fine-tuning, by task; its control is the share before."""
    shares = blocks.sel(measure=measure, layer=ALL_LAYERS)
    before = {task: mean_interval(values.sel(seed=-1).values) for task, values in task_blocks(shares)}
    return claims.with_control(task_units(shares, trained, lambda _, after: after), before)


def qualified(units: pd.DataFrame, quality: pd.DataFrame) -> pd.DataFrame:
    """Units with the macro-F1 of the rules as their reason; `quality` is the table of one encoder's labelled maps."""
    last = quality.iloc[-1]
    reason = f"rules with a macro-F1 of {last['f1']:.2f} on maps of {last['encoder']} labelled by eye"
    return units.assign(reason=np.where(units["value"].isna(), UNTRAINED, reason))


def change_of_patterns(
    blocks: xr.DataArray, trained: Collection[TaskSeed], quality: pd.DataFrame
) -> pd.DataFrame:
    """K2: the change of the pattern whose share of maps changes most, in the direction of its change.

    The reason says how well the rules label maps that were labelled by eye (see `qualified`).
    """

    def largest_change(before: Blocks, after: Blocks) -> xr.DataArray:
        change = (after - before).sel(measure=[*PATTERNS], layer=ALL_LAYERS)
        means = change.mean(("seed", "block"))
        largest = np.abs(means.values).argmax()
        return np.sign(means[largest]) * change[largest]

    return qualified(task_units(blocks, trained, largest_change), quality)


def attention_beyond_distance(blocks: pd.DataFrame) -> pd.DataFrame:
    """K3: attention to the link minus that to pairs at the same distance, of a head chosen on the other half."""
    return claims.over_blocks(
        {name: cross_fitted(link - control) for name, link, control in by_direction(blocks)}
    )


def attention_at_same_distance(blocks: pd.DataFrame) -> pd.DataFrame:
    """K7: attention at the same distance over attention to the link, of the head with most of the latter."""
    units = {}
    for name, link, control in by_direction(blocks.dropna(subset="mean")):
        units[name] = cross_fitted(link, scored=control) / cross_fitted(link)
    return claims.over_blocks(units)


def by_direction(blocks: pd.DataFrame) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Of each direction its name, attention to the link, and that at the same distance (blocks by heads)."""
    for name, rows in blocks.groupby("direction", sort=False):
        by_head = rows.pivot(index="block", columns=["layer", "head"], values=["mean", "control"])
        yield str(name).replace("_", " "), by_head["mean"].to_numpy(float), by_head["control"].to_numpy(float)


def change_of_last_layers(blocks: xr.DataArray, trained: Collection[TaskSeed]) -> pd.DataFrame:
    """K4: the cosine of the least similar earlier layer minus the mean of the last sixth of the layers; not for QQP."""

    def last_minus_earlier(_: Blocks, after: Blocks) -> xr.DataArray:
        cosine = by_layer(after, "cosine")
        last = layers_within(cosine.sizes["layer"], LAST_SIXTH)
        earlier = cosine.drop_sel(layer=last)
        least = int(earlier.mean(("seed", "block")).argmin("layer"))
        return earlier.isel(layer=least) - cosine.sel(layer=last).mean("layer")

    others = [task for task in blocks["task"].values if original(str(task)) != "qqp"]
    return task_units(blocks.sel(task=others), trained, last_minus_earlier)


def by_layer(blocks: Blocks, measure: str) -> xr.DataArray:
    """A measure of each single layer."""
    return blocks.sel(measure=measure).drop_sel(layer=ALL_LAYERS)


def special_tokens_by_depth(blocks: xr.DataArray) -> pd.DataFrame:
    """K5: attention to [CLS] in the first third of the layers minus the last, the reverse for [SEP]; mean of tasks.

    Before fine-tuning. The reason has the range over tasks.
    """
    units, ranges = {}, {}
    for token, sign in {CLS: 1, SEP: -1}.items():
        attention = by_layer(blocks.sel(seed=-1), token)
        thirds = (layers_within(attention.sizes["layer"], third) for third in (FIRST_THIRD, LAST_THIRD))
        early, late = (attention.sel(layer=layers).mean("layer") for layers in thirds)
        by_task = sign * (early - late).mean("block")
        units[token] = (sign * (early - late)).mean("task").dropna("block").values
        ranges[token] = f"{by_task.min():+.2f} to {by_task.max():+.2f} by task"
    return claims.over_blocks(units).assign(reason=[*ranges.values()])


def gain_of_linguistic_features(
    blocks: xr.DataArray, trained: Collection[TaskSeed], sinks: Sequence[str]
) -> pd.DataFrame:
    """K6: the largest gain of attention to a linguistic feature over attention to the sink before fine-tuning.

    The gain over the other special token is the reference.
    """

    def largest_gain(before: Blocks, after: Blocks, token: str) -> xr.DataArray:
        gains = (after - before).sel(measure=[*LINGUISTIC], layer=ALL_LAYERS)
        means = gains.mean(("seed", "block")).fillna(-np.inf)  # no sequence may have a feature
        return gains[means.values.argmax()] / by_layer(before, token).mean()

    tokens = (CLS, SEP) if sinks[0] == "cls" else (SEP, CLS)
    units, other = (task_units(blocks, trained, partial(largest_gain, token=token)) for token in tokens)
    units[claims.CONTROL] = other[["value", "low", "high"]].to_numpy()
    return units.assign(token=claims.sink_name(sinks))


def rises_without_a_head(rises: pd.DataFrame) -> pd.DataFrame:
    """K8: the rise of the metric without the head that raises it most in the other half of the sequences, by task."""
    rows = claims.of_table(rises, "task", runs="runs")
    return rows.assign(reason=np.where(rows["value"].isna(), UNTRAINED, ""))


def falls_by_head(
    logits: Mapping[TaskSeed, xr.DataArray], labels: Int[np.ndarray, " sequence"], match: int
) -> xr.DataArray | None:
    """What each sequence adds to the fall in AUC without a head (run, intervention, sequence); None without runs.

    The AUC ranks the log odds of class `match`.
    """
    if not logits:
        return None
    runs = []
    for answers in logits.values():
        values = answers.transpose("intervention", "sequence", "class").values
        parts = answers.isel({"class": 0}).transpose("intervention", "sequence")
        parts = parts.copy(data=auc_parts(match_logit(values, match), labels == match))
        runs.append(parts.sel(intervention=BASELINE) - parts.drop_sel(intervention=BASELINE))
    return xr.concat(runs, "run").transpose("run", "intervention", "sequence")


def shared_word_table(
    falls: xr.DataArray | None, scores: xr.DataArray, threshold: float | int
) -> pd.DataFrame:
    """The table `kovaleva_shared_words`: match score, and the fall in AUC with its rank, of every head.

    `falls` are those of `falls_by_head`, None without a run that trained successfully.
    """
    table = scores.rename("match").to_dataframe()["match"].reset_index()
    names = table["layer"].astype(str) + "-" + table["head"].astype(str)
    fall = np.nan if falls is None else falls.mean(("run", "sequence")).to_series().reindex(names).to_numpy()
    table = table.assign(matching=table["match"] > threshold, fall=fall)
    return table.assign(rank=table["fall"].rank(ascending=False, method="min"))


def lead_of_matching_heads(
    falls: xr.DataArray | None, heads: pd.DataFrame, labels: Int[np.ndarray, " sequence"], task: str
) -> pd.DataFrame:
    """K9: mean fall of the matching heads minus that of as many others, the largest in the other half of the pairs.

    `heads` is the table of `shared_word_table`; the reason has the ranks.
    """
    matching, count = heads["matching"].to_numpy(), int(heads["matching"].sum())
    if falls is None:
        return claims.not_applicable(UNTRAINED, task)
    if not 0 < count <= len(heads) / 2:
        return claims.not_applicable("no matching head, or too many", task)
    names = (heads["layer"].astype(str) + "-" + heads["head"].astype(str)).to_numpy()
    values = falls.sel(intervention=names).values
    half, lead = stratified_halves(labels), np.empty((len(values), len(labels)))
    for part in (half, ~half):
        means = np.where(matching, -np.inf, values[:, :, ~part].mean((0, 2)))
        others = np.argsort(-means)[:count]
        lead[:, part] = values[:, matching][..., part].mean(1) - values[:, others][..., part].mean(1)
    ranks = ", ".join(
        f"{name} {rank:.0f}" for name, rank in zip(names[matching], heads["rank"][matching], strict=True)
    )
    reason = f"ranks of {len(names)} heads: {ranks}"
    return claims.frame({task: crossed_interval(lead)}, runs=len(values), reason=reason)


def gain_of_pretraining(starts: pd.DataFrame, trained: Collection[TaskSeed]) -> pd.DataFrame:
    """K10: the metric from pre-trained weights minus that from random ones, equally trained (Welch over seeds).

    The control is the constant answer minus random weights.
    """
    units = []
    for task, rows in starts.groupby("task", sort=False):
        scores = rows[rows["metric"] == task_named(task).metrics[0]]
        random = scores[scores["start"].str.startswith(f"{RANDOM}, ")]
        if random.empty:
            continue
        equally_trained = random["start"].str.replace(RANDOM, PRETRAINED).iloc[:1]
        successful = np.array([(task, seed) in trained for seed in scores["seed"]])
        pretrained = scores[scores["start"].isin(equally_trained) & successful]
        if pretrained.empty:
            reason = f"no equally trained start from random weights, or {UNTRAINED}"
            units.append(claims.not_applicable(reason, task))
            continue
        one, other = pretrained["value"], random["value"]
        low = high = np.nan
        if min(len(one), len(other)) > 1 and one.std() + other.std() > 0:
            low, high = stats.ttest_ind(one, other, equal_var=False).confidence_interval(0.95)
        gain, control = one.mean() - other.mean(), scores["constant"].iloc[0] - other.mean()
        units.append(claims.frame({task: (gain, low, high)}, control=control, runs=min(len(one), len(other))))
    return claims.together(units, "no starts were trained")


def heads_on_special_tokens(blocks: xr.DataArray, trained: Collection[TaskSeed]) -> pd.DataFrame:
    """K11: the share of heads with most attention on special tokens; the control is before fine-tuning."""
    return share_beside_before(blocks, trained, SPECIAL_HEADS)


def loss_without_linking_heads(
    links: pd.DataFrame, disable: pd.DataFrame, finetune: pd.DataFrame
) -> pd.DataFrame:
    """K12: the change of accuracy without a head that links frame elements, over the lead; mean of heads and runs.

    The table `finetune` has the runs that trained successfully, and the accuracy of the constant answer.
    """
    heads = links.loc[links["p_by"] < LEVEL, ["layer", "head"]].drop_duplicates()
    if heads.empty:
        return claims.not_applicable("no head gives the link more attention than its control")
    single = disable[(disable["unit"] == "head") & (disable["metric"] == "accuracy")].astype({"head": int})
    trained = trained_runs(finetune)
    constants = finetune[finetune["metric"] == "accuracy"].groupby("task")["constant"].first()
    units = []
    for task, rows in single.merge(heads, on=["layer", "head"]).groupby("task", sort=False):
        rows = rows[[(task, run) in trained for run in rows["seed"]]]
        rows = rows.assign(lead=rows["baseline"] - constants[task])
        leading, reason = rows[rows["lead"] > 0], NO_LEAD if len(rows) else UNTRAINED
        units.append(change_over_lead(task, leading) if len(leading) else claims.not_applicable(reason, task))
    return claims.together(units, "no head was ablated")


def change_over_lead(task: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The frame of one task: the mean of the changes of accuracy over the lead, with their paired interval.

    Where the margin needs more answers than there are, the interval includes that of no changed answer.
    """
    ends, reasons = [], {}
    for row in rows.itertuples():
        changed, margin = (int(row.put_right), int(row.put_wrong)), MARGIN * row.lead
        test, no_change = (not_worse(*counts, int(row.n), margin) for counts in (changed, (0, 0)))
        low, high = test.low, test.high
        if test.reason:
            reasons[test.reason] = None
            low, high = min(low, no_change.low), max(high, no_change.high)
        ends.append((row.change / row.lead, low / row.lead, high / row.lead))
    return claims.frame(
        {task: tuple(np.mean(ends, axis=0))}, runs=rows["seed"].nunique(), reason="; ".join(reasons)
    )
