"""What each claim of Kovaleva 2019 measures: a tidy frame for each claim, from the tables of its notebooks."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from analysis.papers.kovaleva2019.names import CLS, HETEROGENEOUS, LINGUISTIC, PRETRAINED, RANDOM, SEP
from analysis.statistics.claims import read_claims, sampled, tabled, untestable
from analysis.statistics.layers import (
    FIRST_THIRD,
    LAST_SIXTH,
    LAST_THIRD,
    drawn_layer_means,
    head_grid,
    layers_within,
)
from analysis.statistics.leads import Run
from analysis.texts.tasks import task_named

CLAIMS = read_claims(Path(__file__).with_name("claims.yaml"))
TABLES = ("patterns", "links", "features", "cosine", "verbs", "rises", "disable", "initialisation")
LEAST_RUNS = 2  # that have learnt a task, for claims about encoders fine-tuned on it
LEVEL = 0.05
Draws = dict[str, Float[np.ndarray, " replicate"]]


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its last notebook saved it."""
    return results.claims("claims-kovaleva2019")


def measures(
    tables: Mapping[str, pd.DataFrame], trained: Collection[Run], constants: Mapping[str, float]
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the saved tables `kovaleva_<name>` of TABLES; some may be missing.

    `trained` are the fine-tuning runs that beat the constant answer by its margin (`leads.trained_runs`), `constants`
    the accuracy of that answer by task.
    """
    runs = pd.DataFrame(sorted(trained), columns=["task", "seed"])
    counts = runs.groupby("task").size()
    learnt = [*counts.index[counts >= LEAST_RUNS]]
    lost = [task for task in constants if task not in learnt]
    kept = runs[runs["task"].isin(learnt)]
    found = {name: tables.get(name, pd.DataFrame()) for name in TABLES}
    patterns, features = (_of_learnt(found[name], learnt) for name in ("patterns", "features"))
    cosine, rises, disable = (_of_runs(found[name], kept) for name in ("cosine", "rises", "disable"))
    starts = found["initialisation"]
    return {
        "K1": more_heterogeneous(patterns),
        "K2": pattern_moves(patterns),
        "K3": frame_heads(found["links"]),
        "K4": last_layers_change(cosine),
        "K5": early_and_late(features),
        "K5b": sink_grows(features),
        "K6": small_gains(features),
        "K7": adjacent_verbs(found["verbs"]),
        "K8": some_head_helps(rises),
        "K9": random_head_helps(rises, lost),
        "K10": pretraining_helps(starts, kept),
        "K11": special_heads(features),
        "K12": frame_heads_disabled(found["links"], disable, constants),
        "K13a": layers_disabled(disable, "rte"),
        "K13b": layers_disabled(disable, "qnli"),
        "K14": random_weights(starts, kept, on_similarity=False),
        "K14b": random_weights(starts, kept, on_similarity=True),
    }


def _of_learnt(table: pd.DataFrame, learnt: Collection[str]) -> pd.DataFrame:
    """The rows without those of encoders fine-tuned on tasks that were not learnt."""
    return table[(table["state"] != "finetuned") | table["task"].isin(learnt)] if len(table) else table


def _of_runs(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    return table.merge(runs, on=["task", "seed"]) if len(table) else table


def _differences(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """share, low, high of first minus second (rows of equal index); the interval follows from both (MOVER).

    It takes the shares as independent, and is too wide if they rise and fall together. Source: Zou and Donner 2008.
    """
    value = first["share"] - second["share"]
    below = np.hypot(first["share"] - first["low"], second["high"] - second["share"])
    above = np.hypot(first["high"] - first["share"], second["share"] - second["low"])
    return pd.DataFrame({"share": value, "low": value - below, "high": value + above, "n": first["n"]})


def more_heterogeneous(patterns: pd.DataFrame) -> pd.DataFrame:
    """K1: the heterogeneous share of fine-tuned QQP minus that of MRPC; the control is the same before fine-tuning."""
    if patterns.empty:
        return untestable("no patterns")
    shares = patterns[patterns["pattern"] == HETEROGENEOUS].set_index(["task", "state"])
    if not {("qqp", "finetuned"), ("mrpc", "finetuned")} <= {*shares.index}:
        return untestable("not both of QQP and MRPC, fine-tuned and learnt")
    qqp, mrpc = (shares.loc[[(task, "finetuned")]].reset_index(drop=True) for task in ("qqp", "mrpc"))
    before = shares.loc[("qqp", "pretrained"), "share"] - shares.loc[("mrpc", "pretrained"), "share"]
    note = f"{qqp['share'][0]:.0%} against {mrpc['share'][0]:.0%}"
    rows = _differences(qqp, mrpc).assign(unit="", before=before)
    return tabled(rows, "unit", "share", control="before", note=note)


def pattern_moves(patterns: pd.DataFrame) -> pd.DataFrame:
    """K2: how far fine-tuning moves the share of each pattern in each task."""
    if patterns.empty or "finetuned" not in set(patterns["state"]):
        return untestable("no patterns of fine-tuned encoders")
    keys = ["task", "pattern"]
    after, before = (
        patterns[patterns["state"] == state].set_index(keys) for state in ("finetuned", "pretrained")
    )
    moved = _differences(after, before.loc[after.index])
    ends = moved[["low", "high"]].abs()
    across = (moved["low"] < 0) & (moved["high"] > 0)
    sizes = moved.assign(
        share=moved["share"].abs(), low=ends.min(axis=1).mask(across, 0.0), high=ends.max(axis=1)
    )
    return tabled(sizes.reset_index(), "{pattern} in {task}", "share")


def _links(links: pd.DataFrame) -> pd.DataFrame:
    return links[links["mode"] == "all_pairs"] if len(links) else links


def frame_heads(links: pd.DataFrame) -> pd.DataFrame:
    """K3: how many heads give a link more attention than pairs at the same distance, by direction.

    The heads that do so at the adjusted level are the low end; a test that finds none refutes nothing.
    """
    rows = []
    for direction, part in _links(links).groupby("direction", sort=False) if len(links) else ():
        best = part.loc[(part["mean"] - part["control"]).idxmax()]
        name = f"{direction.replace('_', ' ')} (most: {best['layer']}-{best['head']}, {best['mean']:.3f} against "
        beating = (part["p_by"] < LEVEL).sum()
        rows.append({"unit": f"{name}{best['control']:.3f})", "value": beating, "low": beating, "high": len(part),
                     "n": part["n"].iloc[0], "chance": LEVEL * beating})  # fmt: skip
    return tabled(pd.DataFrame(rows), "unit", "value", control="chance") if rows else untestable("no links")


def last_layers_change(cosine: pd.DataFrame) -> pd.DataFrame:
    """K4: by task except QQP, the smallest similarity of the other layers minus the mean of the last sixth."""
    if cosine.empty:
        return untestable("no fine-tuned encoders that have learnt their task")
    rows = cosine[(cosine["padding"] == "cropped") & (cosine["task"] != "qqp")]
    units: Draws = {}
    late: list[int] = []
    for task, part in rows.groupby("task", sort=False):
        means = drawn_layer_means(
            head_grid(part.groupby(["layer", "head"], as_index=False)["mean"].mean(), "mean")
        )
        late = layers_within(means.shape[1], LAST_SIXTH)
        early = [layer for layer in range(means.shape[1]) if layer not in late]
        if early:
            units[str(task)] = means[:, early].min(axis=1) - means[:, late].mean(axis=1)
    if not units:
        return untestable("no task but QQP")
    note = f"the last sixth: layer{'s' if len(late) > 1 else ''} {', '.join(map(str, late))}"
    return sampled(units, int(rows["head"].max()) + 1, note=note)


def _aligned(features: pd.DataFrame) -> pd.DataFrame:
    return features[features["mode"] == "aligned"] if len(features) else features


def _thirds(part: pd.DataFrame) -> tuple[Float[np.ndarray, " replicate"], Float[np.ndarray, " replicate"]]:
    """Mean attention to a feature in the first and in the last third of the layers: the sample, then draws of heads."""
    means = drawn_layer_means(head_grid(part, "mean"))
    first, last = (layers_within(means.shape[1], third) for third in (FIRST_THIRD, LAST_THIRD))
    return means[:, first].mean(axis=1), means[:, last].mean(axis=1)


def _of_special(features: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """The rows of [CLS] and [SEP] before fine-tuning, by task and token."""
    rows = _aligned(features)
    if rows.empty:
        return {}
    rows = rows[(rows["state"] == "pretrained") & rows["feature"].isin([CLS, SEP])]
    return dict(iter(rows.groupby(["task", "feature"], sort=False)))


def early_and_late(features: pd.DataFrame) -> pd.DataFrame:
    """K5: by task, attention to [CLS] in the first third of the layers minus the last, and the reverse for [SEP]."""
    units: Draws = {}
    for (task, feature), part in _of_special(features).items():
        first, last = _thirds(part)
        units[f"{feature} in {task}"] = first - last if feature == CLS else last - first
    if not units:
        return untestable("no features")
    return sampled(units, int(features["n"].max()), control=dict.fromkeys(units, 0.0))


def sink_grows(features: pd.DataFrame) -> pd.DataFrame:
    """K5b: by task, attention to the special token that gets most, in the last third of the layers minus the first."""
    parts, units = _of_special(features), {}
    for task in dict.fromkeys(task for task, _ in parts):
        sink = max((CLS, SEP), key=lambda name: parts[task, name]["mean"].mean())
        first, last = _thirds(parts[task, sink])
        units[f"{sink} in {task}"] = last - first
    if not units:
        return untestable("no features")
    return sampled(units, int(features["n"].max()), control=dict.fromkeys(units, 0.0))


def small_gains(features: pd.DataFrame) -> pd.DataFrame:
    """K6: by task, the largest gain of a linguistic feature divided by attention to [CLS] or [SEP], the larger."""
    rows, units = _aligned(features), {}
    if rows.empty or "finetuned" not in set(rows["state"]):
        return untestable("no features of fine-tuned encoders that have learnt their task")
    for task, part in rows.groupby("task", sort=False):
        drawn = {
            key: drawn_layer_means(head_grid(each, "mean")).mean(axis=1)
            for key, each in part.dropna(subset="mean").groupby(["feature", "state"])
        }
        gains = {
            name: drawn[name, "finetuned"] - drawn[name, "pretrained"]
            for name in LINGUISTIC
            if (name, "finetuned") in drawn and (name, "pretrained") in drawn
        }
        if gains:
            best = max(gains, key=lambda name: gains[name][0])
            special = max((drawn[name, "pretrained"] for name in (CLS, SEP)), key=lambda each: each[0])
            units[f"{best} in {task}"] = gains[best] / special
    return (
        sampled(units, int(rows["n"].max())) if units else untestable("no features of a fine-tuned encoder")
    )


def adjacent_verbs(verbs: pd.DataFrame) -> pd.DataFrame:
    """K7: of the head with most attention between subject and verb, the share that pairs at the same distance get."""
    if verbs.empty:
        return untestable("no subjects with verbs")
    rows = verbs[(verbs["state"] == "pretrained") & (verbs["n"] > 1)]
    if rows.empty:
        return untestable("no subject of a verb")
    best = rows.loc[rows.groupby(["task", "link"], sort=False)["mean"].idxmax()]
    best = best.assign(
        ratio=best["control"] / best["mean"],
        low=1 - best["high"] / best["mean"],
        high=1 - best["low"] / best["mean"],
    )
    return tabled(best, "{link} in {task}, head {layer}-{head}", "ratio")


def _of_heads(rises: pd.DataFrame) -> pd.DataFrame:
    return rises[rises["unit"] == "head"].drop_duplicates("task") if len(rises) else rises


def some_head_helps(rises: pd.DataFrame) -> pd.DataFrame:
    """K8: by task, the rise of the head that stands out most from chance; the high end is the highest of all heads."""
    rows = _of_heads(rises)
    if rows.empty:
        return untestable("no disabled heads in a run that has learnt its task")
    chance = ", ".join(
        f"{row.raised} heads raise {row.task}, by chance up to {row.raised_by_chance:.0f}"
        for row in rows.itertuples()
    )
    ends = rows.assign(high=rows["highest_end"])
    return tabled(ends, "{task}, head {largest}", "rise", n="variants", note=chance)


def random_head_helps(rises: pd.DataFrame, lost: Collection[str]) -> pd.DataFrame:
    """K9: in MRPC and RTE, the mean change over all heads; tasks that were `lost` are named."""
    rows = _of_heads(rises)
    rows = rows[rows["task"].isin(["mrpc", "rte"])] if len(rows) else rows
    left = [task for task in ("mrpc", "rte") if task in lost]
    note = f"not learnt, and left out: {', '.join(left)}" if left else ""
    if rows.empty:
        return untestable(note or "neither MRPC nor RTE")
    return tabled(rows, "task", "mean_change", "mean_low", "mean_high", "variants", note=note)


def _starts(starts: pd.DataFrame, kept: pd.DataFrame) -> dict[str, tuple[pd.Series, pd.Series, float]]:
    """By task: the first metric from pre-trained and from random weights after equal training, and the constant's."""
    found = {}
    for task, part in starts.groupby("task", sort=False) if len(starts) else ():
        rows = part[part["metric"] == task_named(task).metrics[0]]
        kinds = rows["start"].str.split(", ", n=1)
        start, size = kinds.str[0], kinds.str[1]
        sizes = size[start == RANDOM]
        if len(sizes):
            learnt = rows["seed"].isin(kept.loc[kept["task"] == task, "seed"])
            own = rows.loc[(start == PRETRAINED) & (size == sizes.iloc[0]) & learnt, "value"]
            if len(own):
                found[str(task)] = own, rows.loc[start == RANDOM, "value"], float(rows["constant"].iloc[0])
    return found


def pretraining_helps(starts: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """K10: the first metric from pre-trained weights minus that from random ones (Welch's interval over seeds)."""
    rows = []
    for task, (own, random, constant) in _starts(starts, kept).items():
        ends = [np.nan, np.nan]
        if min(len(own), len(random)) > 1 and own.std() + random.std() > 0:
            ends = stats.ttest_ind(own, random, equal_var=False).confidence_interval(0.95)
        rows.append((task, own.mean() - random.mean(), *ends, len(random), constant - random.mean()))
    if not rows:
        return untestable("no start from random weights beside a learnt run of the same size")
    table = pd.DataFrame(rows, columns=["task", "value", "low", "high", "n", "constant"])
    return tabled(table, "task", "value", control="constant")


def random_weights(starts: pd.DataFrame, kept: pd.DataFrame, on_similarity: bool) -> pd.DataFrame:
    """K14: the first metric from random weights over that from pre-trained ones, on STS-B or on all other tasks."""
    rows = []
    for task, (own, random, constant) in _starts(starts, kept).items():
        if (task == "sts-b") == on_similarity:
            ratio = random.mean() / own.mean()
            error = np.hypot(random.sem(), ratio * own.sem()) / own.mean()
            half = (
                stats.t.ppf(0.975, min(len(own), len(random)) - 1) * error
                if min(len(own), len(random)) > 1
                else np.nan
            )
            rows.append((task, ratio, ratio - half, ratio + half, len(random), constant / own.mean()))
    if not rows:
        return untestable("no start from random weights beside a learnt run of the same size")
    table = pd.DataFrame(rows, columns=["task", "value", "low", "high", "n", "constant"])
    return tabled(table, "task", "value", control="constant")


def special_heads(features: pd.DataFrame) -> pd.DataFrame:
    """K11: the share of heads that give [CLS] and [SEP] more than half of their attention, by task, fine-tuned."""
    rows, units, before = _aligned(features), {}, {}
    if rows.empty:
        return untestable("no features")
    special = rows[rows["feature"].isin([CLS, SEP])]
    sums = special.groupby(["task", "state", "layer", "head"], sort=False, as_index=False)["mean"].sum()
    sums["mainly"] = (sums["mean"] > 0.5).astype(float)
    for (task, state), part in sums.groupby(["task", "state"], sort=False):
        drawn = drawn_layer_means(head_grid(part, "mainly")).mean(axis=1)
        if state == "finetuned":
            units[str(task)] = drawn
        else:
            before[str(task)] = drawn[0]
    if not units:
        return untestable("no features of fine-tuned encoders that have learnt their task")
    return sampled(units, int(rows["n"].max()), control=before)


def frame_heads_disabled(
    links: pd.DataFrame, disable: pd.DataFrame, constants: Mapping[str, float]
) -> pd.DataFrame:
    """K12: the change of accuracy without a head of K3, over the classifier's lead, by head and task."""
    rows = _links(links)
    if rows.empty or disable.empty:
        return untestable("no links, or no disabled heads in a run that has learnt its task")
    heads = rows.loc[rows["p_by"] < LEVEL, ["layer", "head"]].drop_duplicates()
    single = disable[(disable["unit"] == "head") & (disable["metric"] == "accuracy")]
    found = single.astype({"head": int}).merge(heads, on=["layer", "head"])
    lead = found["baseline"] - found["task"].map(constants).astype(float)
    shares = found[["change", "low", "high"]].div(lead, axis=0)
    found = found[["task", "seed", "layer", "head"]].join(shares).assign(n=len(heads))
    if found.empty:
        return untestable("no head beats its distance control")
    return tabled(found, "head {layer}-{head} in {task}, run {seed}", "change")


def layers_disabled(disable: pd.DataFrame, task: str) -> pd.DataFrame:
    """K13: the change of a task's accuracy when a whole layer attends to all tokens alike, by layer and run."""
    if disable.empty:
        return untestable(f"{task} was not disabled, or not learnt")
    rows = disable[
        (disable["unit"] == "layer") & (disable["task"] == task) & (disable["metric"] == "accuracy")
    ]
    note = "" if len(rows) else f"{task} was not disabled, or not learnt"
    return tabled(rows.assign(n=rows["layer"].nunique()), "layer {layer}, run {seed}", "change", note=note)
