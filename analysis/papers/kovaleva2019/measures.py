"""What each claim of Kovaleva 2019 measures: a tidy frame for each claim, from the tables of its notebooks."""

from collections.abc import Callable, Collection, Mapping
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
from analysis.statistics.training import Run
from analysis.texts.tasks import task_named

FOLDER = Path(__file__).parent
CLAIMS = read_claims(FOLDER / "claims.yaml")
# The saved tables that the claims rest on, and the columns that they read.
TABLES = {
    "patterns": "task state pattern share low high n",
    "links": "mode direction layer head mean control p_by n",
    "features": "task state feature mode layer head mean n",
    "cosine": "task seed padding layer head mean",
    "verbs": "task state link layer head mean control low high n",
    "rises": "task seed unit variants raised raised_by_chance largest rise low highest_end mean_change mean_low "
    "mean_high",
    "disable": "task seed unit layer head metric baseline change low high",
    "initialisation": "task start seed metric value constant",
}
LEAST_RUNS = 2  # that have learnt a task, for claims about encoders fine-tuned on it
LEVEL = 0.05
NOT_LEARNT = "no fine-tuned encoders that have learnt their task"
NO_FEATURES = "no features of fine-tuned encoders that have learnt their task"
Draws = Float[np.ndarray, " replicate"]  # the sample, then draws of heads


def published(name: str) -> pd.DataFrame:
    """A table of published values by its name, all of BERT-base; published.md says where each comes from."""
    return pd.read_csv(FOLDER / f"published_{name}.csv")


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its last notebook saved it."""
    return results.claims("claims-kovaleva2019")


def measures(
    tables: Mapping[str, pd.DataFrame], trained: Collection[Run], constants: Mapping[str, float]
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the saved tables `kovaleva_<name>` of TABLES; some may be missing.

    `trained` are the fine-tuning runs that beat the constant answer by its margin (`training.trained_runs`),
    `constants` the accuracy of that answer by task.
    """
    found = {name: tables.get(name, pd.DataFrame(columns=TABLES[name].split())) for name in TABLES}
    counts = pd.Series([task for task, _ in trained]).value_counts()
    learnt = {*counts.index[counts >= LEAST_RUNS]}
    runs = {run for run in trained if run[0] in learnt}
    for name in ("patterns", "features"):
        rows = found[name]
        found[name] = rows[(rows["state"] != "finetuned") | rows["task"].isin(learnt)]
    for name in ("cosine", "rises", "disable"):
        found[name] = _of_runs(found[name], runs)
    links, features, disable = found["links"], found["features"], found["disable"]
    links, features = links[links["mode"] == "all_pairs"], features[features["mode"] == "aligned"]
    starts, similarity = found["initialisation"], found["initialisation"]["task"] == "sts-b"
    return {
        "K1": more_heterogeneous(found["patterns"]),
        "K2": pattern_moves(found["patterns"]),
        "K3": frame_heads(links),
        "K4": last_layers_change(found["cosine"]),
        "K5": special_by_depth(features, sink_alone=False),
        "K5b": special_by_depth(features, sink_alone=True),
        "K6": small_gains(features),
        "K7": adjacent_verbs(found["verbs"]),
        "K8": some_head_helps(found["rises"]),
        "K9": random_head_helps(found["rises"], [task for task in constants if task not in learnt]),
        "K10": of_starts(starts, runs, gain),
        "K11": special_heads(features),
        "K12": frame_heads_disabled(links, disable, constants),
        "K13a": layers_disabled(disable, "rte"),
        "K13b": layers_disabled(disable, "qnli"),
        "K14": of_starts(starts[~similarity], runs, ratio),
        "K14b": of_starts(starts[similarity], runs, ratio),
    }


def _sampled(
    units: Mapping[str, Draws],
    n: float,
    missing: str,
    control: Mapping[str, float] | None = None,
    note: str = "",
) -> pd.DataFrame:
    """The frame of drawn measures by unit; without units, it is untestable because of what is `missing`."""
    return sampled(units, int(n), control=control, note=note) if units else untestable(missing)


def _of_runs(table: pd.DataFrame, runs: Collection[Run]) -> pd.DataFrame:
    return table[np.array([run in runs for run in zip(table["task"], table["seed"], strict=True)], bool)]


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
    rows = patterns.set_index(["task", "pattern"])
    after, before = (rows[rows["state"] == state] for state in ("finetuned", "pretrained"))
    moved = _differences(after, before.loc[after.index])
    ends = moved[["low", "high"]].abs()
    across = (moved["low"] < 0) & (moved["high"] > 0)
    low, high = ends.min(axis=1).mask(across, 0.0), ends.max(axis=1)
    sizes = moved.assign(share=moved["share"].abs(), low=low, high=high).reset_index()
    note = "" if len(sizes) else "no patterns of fine-tuned encoders"
    return tabled(sizes, "{pattern} in {task}", "share", note=note)


def frame_heads(links: pd.DataFrame) -> pd.DataFrame:
    """K3: how many heads give a link more attention than pairs at the same distance, by direction.

    The heads that do so at the adjusted level are the low end; a test that finds none refutes nothing.
    """
    rows = []
    for direction, part in links.groupby("direction", sort=False):
        best = part.loc[(part["mean"] - part["control"]).idxmax()]
        most = f"{best['layer']}-{best['head']}, {best['mean']:.3f} against {best['control']:.3f}"
        beating = (part["p_by"] < LEVEL).sum()
        rows.append((f"{direction.replace('_', ' ')} (most: {most})", beating, beating, len(part),
                     part["n"].iloc[0], LEVEL * beating))  # fmt: skip
    table = pd.DataFrame(rows, columns=["unit", "value", "low", "high", "n", "chance"])
    return tabled(table, "unit", "value", control="chance", note="" if rows else "no links")


def last_layers_change(cosine: pd.DataFrame) -> pd.DataFrame:
    """K4: by task except QQP, the smallest similarity of the other layers minus the mean of the last sixth."""
    rows, units, late = cosine[(cosine["padding"] == "cropped") & (cosine["task"] != "qqp")], {}, []
    for task, part in rows.groupby("task", sort=False):
        means = _layer_means(part.groupby(["layer", "head"], as_index=False)["mean"].mean())
        late = layers_within(means.shape[1], LAST_SIXTH)
        early = [layer for layer in range(means.shape[1]) if layer not in late]
        if early:
            units[task] = means[:, early].min(axis=1) - means[:, late].mean(axis=1)
    missing = "no task but QQP" if len(cosine) else NOT_LEARNT
    note = f"the last sixth: layer{'s' if len(late) > 1 else ''} {', '.join(map(str, late))}"
    return _sampled(units, rows["head"].max() + 1, missing, note=note)


def _layer_means(part: pd.DataFrame, column: str = "mean") -> Float[np.ndarray, "replicate layer"]:
    return drawn_layer_means(head_grid(part, column))


def special_by_depth(features: pd.DataFrame, sink_alone: bool) -> pd.DataFrame:
    """K5: by task, attention to [CLS] in the first third of the layers minus the last, and the reverse for [SEP].

    K5b, `sink_alone`: attention to the special token that gets most, in the last third minus the first.
    """
    rows, units = features[features["state"] == "pretrained"], {}
    for task, part in rows.groupby("task", sort=False):
        tokens = {name: part[part["feature"] == name] for name in (CLS, SEP)}
        sink = max(tokens, key=lambda name: tokens[name]["mean"].mean())
        for name in [sink] if sink_alone else tokens:
            means = _layer_means(tokens[name])
            first, last = (
                means[:, layers_within(means.shape[1], third)].mean(axis=1)
                for third in (FIRST_THIRD, LAST_THIRD)
            )
            units[f"{name} in {task}"] = first - last if name == CLS and not sink_alone else last - first
    return _sampled(units, features["n"].max(), "no features", dict.fromkeys(units, 0.0))


def small_gains(features: pd.DataFrame) -> pd.DataFrame:
    """K6: by task, the largest gain of a linguistic feature divided by attention to [CLS] or [SEP], the larger."""
    units = {}
    for task, part in features.dropna(subset="mean").groupby("task", sort=False):
        drawn = {key: _layer_means(each).mean(axis=1) for key, each in part.groupby(["feature", "state"])}
        gains = {
            name: drawn[name, "finetuned"] - drawn[name, "pretrained"]
            for name in LINGUISTIC
            if (name, "finetuned") in drawn and (name, "pretrained") in drawn
        }
        if gains:
            best = max(gains, key=lambda name: gains[name][0])
            special = max((drawn[name, "pretrained"] for name in (CLS, SEP)), key=lambda each: each[0])
            units[f"{best} in {task}"] = gains[best] / special
    return _sampled(units, features["n"].max(), NO_FEATURES)


def adjacent_verbs(verbs: pd.DataFrame) -> pd.DataFrame:
    """K7: of the head with most attention between subject and verb, the share that pairs at the same distance get."""
    rows = verbs[(verbs["state"] == "pretrained") & (verbs["n"] > 1)]
    best = rows.loc[rows.groupby(["task", "link"], sort=False)["mean"].idxmax()]
    low, high = (1 - best[end] / best["mean"] for end in ("high", "low"))
    best = best.assign(ratio=best["control"] / best["mean"], low=low, high=high)
    note = "" if len(best) else "no subject of a verb"
    return tabled(best, "{link} in {task}, head {layer}-{head}", "ratio", note=note)


def some_head_helps(rises: pd.DataFrame) -> pd.DataFrame:
    """K8: by task, the rise of the head that stands out most from chance; the high end is the highest of all heads."""
    rows = _of_heads(rises)
    chance = ", ".join(
        f"{row.raised} heads raise {row.task}, by chance up to {row.raised_by_chance:.0f}"
        for row in rows.itertuples()
    )
    note = chance or "no disabled heads in a run that has learnt its task"
    ends = rows.assign(high=rows["highest_end"])
    return tabled(ends, "{task}, head {largest}", "rise", n="variants", note=note)


def _of_heads(rises: pd.DataFrame) -> pd.DataFrame:
    return rises[rises["unit"] == "head"].drop_duplicates("task")


def random_head_helps(rises: pd.DataFrame, lost: Collection[str]) -> pd.DataFrame:
    """K9: in MRPC and RTE, the mean change over all heads; tasks that were `lost` are named."""
    rows = _of_heads(rises[rises["task"].isin(["mrpc", "rte"])])
    left = ", ".join(task for task in ("mrpc", "rte") if task in lost)
    note = f"not learnt, and left out: {left}" if left else "" if len(rows) else "neither MRPC nor RTE"
    return tabled(rows, "task", "mean_change", "mean_low", "mean_high", "variants", note=note)


def of_starts(
    starts: pd.DataFrame,
    runs: Collection[Run],
    compare: Callable[[pd.Series, pd.Series, float], tuple[float, float, float, float]],
) -> pd.DataFrame:
    """K10, K14: by task, `compare` of the first metric from pre-trained and from random weights, equally trained.

    Runs from pre-trained weights count if they are among `runs`. `compare` gives a value, its interval and a control.
    """
    rows = []
    for task, part in starts.groupby("task", sort=False):
        scores = part[part["metric"] == task_named(task).metrics[0]]
        random = scores[scores["start"].str.startswith(f"{RANDOM}, ")]
        if len(random):
            same = random["start"].iloc[0].replace(RANDOM, PRETRAINED)  # the same size of training
            own = _of_runs(scores[scores["start"] == same], runs)
            if len(own):
                found = compare(own["value"], random["value"], float(scores["constant"].iloc[0]))
                rows.append((task, *found, len(random)))
    table = pd.DataFrame(rows, columns=["task", "value", "low", "high", "constant", "n"])
    note = "" if rows else "no start from random weights beside a learnt run of the same size"
    return tabled(table, "task", "value", control="constant", note=note)


def gain(own: pd.Series, random: pd.Series, constant: float) -> tuple[float, float, float, float]:
    """K10: the score from pre-trained weights minus that from random ones (Welch's interval over seeds)."""
    low, high = np.nan, np.nan
    if min(len(own), len(random)) > 1 and own.std() + random.std() > 0:
        low, high = stats.ttest_ind(own, random, equal_var=False).confidence_interval(0.95)
    return own.mean() - random.mean(), low, high, constant - random.mean()


def ratio(own: pd.Series, random: pd.Series, constant: float) -> tuple[float, float, float, float]:
    """K14: the score from random weights over that from pre-trained ones (interval by the delta method)."""
    value, half, least = random.mean() / own.mean(), np.nan, min(len(own), len(random))
    if least > 1:
        error = np.hypot(random.sem(), value * own.sem()) / own.mean()
        half = stats.t.ppf(0.975, least - 1) * error
    return value, value - half, value + half, constant / own.mean()


def special_heads(features: pd.DataFrame) -> pd.DataFrame:
    """K11: the share of heads that give [CLS] and [SEP] more than half of their attention, by task, fine-tuned."""
    special = features[features["feature"].isin([CLS, SEP])]
    sums = special.groupby(["task", "state", "layer", "head"], sort=False, as_index=False)["mean"].sum()
    sums["mainly"] = (sums["mean"] > 0.5).astype(float)
    drawn = {
        key: _layer_means(part, "mainly").mean(axis=1)
        for key, part in sums.groupby(["task", "state"], sort=False)
    }
    units = {task: draws for (task, state), draws in drawn.items() if state == "finetuned"}
    before = {task: draws[0] for (task, state), draws in drawn.items() if state == "pretrained"}
    return _sampled(units, features["n"].max(), NO_FEATURES, before)


def frame_heads_disabled(
    links: pd.DataFrame, disable: pd.DataFrame, constants: Mapping[str, float]
) -> pd.DataFrame:
    """K12: the change of accuracy without a head of K3, over the classifier's lead, by head and task."""
    if links.empty or disable.empty:
        return untestable("no links, or no disabled heads in a run that has learnt its task")
    heads = links.loc[links["p_by"] < LEVEL, ["layer", "head"]].drop_duplicates()
    single = disable[(disable["unit"] == "head") & (disable["metric"] == "accuracy")]
    found = single.astype({"head": int}).merge(heads, on=["layer", "head"])
    lead = found["baseline"] - found["task"].map(constants).astype(float)
    shares = found[["change", "low", "high"]].div(lead, axis=0)
    found = found[["task", "seed", "layer", "head"]].join(shares).assign(n=len(heads))
    note = "" if len(found) else "no head beats its distance control"
    return tabled(found, "head {layer}-{head} in {task}, run {seed}", "change", note=note)


def layers_disabled(disable: pd.DataFrame, task: str) -> pd.DataFrame:
    """K13: the change of a task's accuracy when a whole layer attends to all tokens alike, by layer and run."""
    rows = disable[
        (disable["unit"] == "layer") & (disable["task"] == task) & (disable["metric"] == "accuracy")
    ]
    note = "" if len(rows) else f"{task} was not disabled, or not learnt"
    return tabled(rows.assign(n=rows["layer"].nunique()), "layer {layer}, run {seed}", "change", note=note)
