"""What each claim of Kovaleva 2019 measures: a frame of units from the tables of its notebooks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from analysis.papers.kovaleva2019.names import LINGUISTIC, PATTERNS, PRETRAINED, RANDOM, SPECIAL_HEADS
from analysis.statistics.claims import frame, not_applicable, of_table, over_blocks, read_claims, with_control
from analysis.statistics.intervals import crossed_interval, mean_interval
from analysis.statistics.layers import FIRST_THIRD, LAST_SIXTH, LAST_THIRD, layers_within, on_other_half
from analysis.statistics.training import Run
from analysis.texts.tasks import task_named

FOLDER = Path(__file__).parent
CLAIMS = read_claims(FOLDER / "claims.yaml")
TABLES = ("blocks", "links", "link_blocks", "verb_blocks", "chosen_rises", "disable", "initialisation")
LEVEL = 0.05
UNTRAINED = "no run trained successfully"
Values = Float[np.ndarray, "run block"]
Tables = Mapping[str, pd.DataFrame]


def published(name: str) -> pd.DataFrame:
    """A table of published values by its name, all of BERT-base; published.md says where each comes from."""
    return pd.read_csv(FOLDER / f"published_{name}.csv")


def measures(
    tables: Tables, trained: Collection[Run], constants: Mapping[str, float], sink: str
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id, from the saved tables `kovaleva_<name>` of TABLES.

    `trained` are the runs that trained successfully, `constants` the accuracy of the constant answer by task, `sink` is
    cls or sep.
    """
    blocks = Blocks(tables["blocks"], trained)
    return {
        "K2": blocks.of_trained(largest_change),
        "K3": frame_link(tables["link_blocks"]),
        "K4": blocks.of_trained(last_layers_change, without="qqp"),
        "K5": sink_by_depth(blocks, sink),
        "K6": blocks.of_trained(lambda task: linguistic_gain(task, f"[{sink.upper()}]")),
        "K7": same_distance(tables["verb_blocks"]),
        "K8": of_table(tables["chosen_rises"], "task", runs="runs").pipe(_untrained),
        "K10": pretraining_gain(tables["initialisation"], trained),
        "K11": special_heads(blocks),
        "K12": link_heads_ablated(tables["links"], tables["disable"], trained, constants),
    }


class Task:
    """The blocks of one task: `before` and `after` fine-tuning, arrays of runs by blocks."""

    def __init__(self, rows: pd.DataFrame, runs: Sequence[int]):
        values = rows.set_index(["measure", "layer", "seed", "block"])["value"].sort_index()
        self.wide, self.runs = values.unstack("block"), runs
        self.layers = int(rows["layer"].max()) + 1

    def before(self, measure: str, layer: int = -1) -> Values:
        """A measure before fine-tuning, as one run."""
        return self.wide.loc[(measure, layer, -1)].to_numpy(float)[None]

    def after(self, measure: str, layer: int = -1) -> Values:
        """A measure of the runs that trained successfully."""
        return self.wide.loc[[(measure, layer, run) for run in self.runs]].to_numpy(float)

    def region(self, value: Callable[[str, int], Values], measure: str, layers: Sequence[int]) -> Values:
        """The mean of a measure over layers."""
        return np.mean([value(measure, layer) for layer in layers], axis=0)


class Blocks:
    """The table `kovaleva_blocks`, by task."""

    def __init__(self, table: pd.DataFrame, trained: Collection[Run]):
        self.tasks = {
            task: Task(rows, [run for run in sorted({*rows["seed"]} - {-1}) if (task, run) in trained])
            for task, rows in table.groupby("task", sort=False)
        }

    def of_trained(self, measure: Callable[[Task], Values], without: str = "") -> pd.DataFrame:
        """A frame with a unit for each task but one; tasks without a run that trained successfully say so."""
        parts = [
            frame({name: crossed_interval(measure(task))}, runs=len(task.runs))
            if task.runs
            else not_applicable(UNTRAINED, name)
            for name, task in self.tasks.items()
            if name != without
        ]
        return pd.concat(parts, ignore_index=True) if parts else not_applicable("no other task")


def _untrained(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(reason=np.where(rows["value"].isna(), UNTRAINED, ""))


def largest_change(task: Task) -> Values:
    """K2: the change of the pattern whose share of maps changes most, in its direction."""
    changes = [task.after(name) - task.before(name) for name in PATTERNS]
    most = max(changes, key=lambda change: abs(change.mean()))
    return np.sign(most.mean()) * most


def frame_link(blocks: pd.DataFrame) -> pd.DataFrame:
    """K3: attention to the link minus that to pairs at the same distance, of a head chosen on the other half."""
    gains = blocks.assign(gain=blocks["mean"] - blocks["control"])
    return over_blocks({name: on_other_half(_by_head(part, "gain")) for name, part in _directions(gains)})


def same_distance(blocks: pd.DataFrame) -> pd.DataFrame:
    """K7: attention at the same distance over attention to the link, of the head with most of the latter."""
    units = {}
    for name, part in _directions(blocks.dropna(subset="mean")):
        link, control = _by_head(part, "mean"), _by_head(part, "control")
        first = np.arange(len(link)) % 2 == 0
        chosen = {half: link[first != half].mean(axis=0).argmax() for half in (True, False)}
        units[name] = np.array(
            [control[row, chosen[half]] / link[row, chosen[half]] for row, half in enumerate(first)]
        )
    return over_blocks(units)


def _directions(blocks: pd.DataFrame):
    return ((str(name).replace("_", " "), part) for name, part in blocks.groupby("direction", sort=False))


def _by_head(part: pd.DataFrame, column: str) -> Float[np.ndarray, "block head"]:
    return part.pivot(index="block", columns=["layer", "head"], values=column).to_numpy(float)


def last_layers_change(task: Task) -> Values:
    """K4: the cosine of the least similar earlier layer minus the mean of the last sixth of the layers."""
    late = layers_within(task.layers, LAST_SIXTH)
    earlier = [task.after("cosine", layer) for layer in range(task.layers) if layer not in late]
    return min(earlier, key=np.mean) - task.region(task.after, "cosine", late)


def sink_by_depth(blocks: Blocks, sink: str) -> pd.DataFrame:
    """K5: attention to the sink in the last third of the layers minus the first, before fine-tuning."""

    def growth(task: Task, token: str) -> np.ndarray:
        first, last = (
            task.region(task.before, f"[{token.upper()}]", layers_within(task.layers, third))
            for third in (FIRST_THIRD, LAST_THIRD)
        )
        return (last - first)[0]

    tokens = sink, {"cls": "sep", "sep": "cls"}[sink]
    own, other = ({name: growth(task, token) for name, task in blocks.tasks.items()} for token in tokens)
    return over_blocks(own, other).assign(token=f"[{sink.upper()}]")


def linguistic_gain(task: Task, sink: str) -> Values:
    """K6: the largest gain of attention to a linguistic feature over attention to the sink before fine-tuning."""
    gains = [task.after(name) - task.before(name) for name in LINGUISTIC]
    most = max(gains, key=lambda gain: np.nan_to_num(np.nanmean(gain), nan=-np.inf))
    return most / task.region(task.before, sink, range(task.layers)).mean()


def pretraining_gain(starts: pd.DataFrame, trained: Collection[Run]) -> pd.DataFrame:
    """K10: the metric from pre-trained weights minus that from random ones, equally trained (Welch over seeds).

    The control is the constant answer minus random weights.
    """
    parts = []
    for task, part in starts.groupby("task", sort=False):
        scores = part[part["metric"] == task_named(task).metrics[0]]
        random = scores[scores["start"].str.startswith(f"{RANDOM}, ")]
        same = random["start"].str.replace(RANDOM, PRETRAINED).iloc[:1]  # the same size of training
        own = scores[
            scores["start"].isin(same) & scores["seed"].map(lambda seed, task=task: (task, seed) in trained)
        ]
        if own.empty or random.empty:
            parts.append(
                not_applicable(f"no equally trained start from random weights, or {UNTRAINED}", task)
            )
            continue
        low, high = np.nan, np.nan
        if min(len(own), len(random)) > 1 and own["value"].std() + random["value"].std() > 0:
            test = stats.ttest_ind(own["value"], random["value"], equal_var=False)
            low, high = test.confidence_interval(0.95)
        gain = own["value"].mean() - random["value"].mean()
        control = scores["constant"].iloc[0] - random["value"].mean()
        parts.append(frame({task: (gain, low, high)}, control=control, runs=min(len(own), len(random))))
    return pd.concat(parts, ignore_index=True) if parts else not_applicable("no starts were trained")


def special_heads(blocks: Blocks) -> pd.DataFrame:
    """K11: the share of heads with most attention on special tokens; the control is before fine-tuning."""
    before = {name: mean_interval(task.before(SPECIAL_HEADS)[0]) for name, task in blocks.tasks.items()}
    return with_control(blocks.of_trained(lambda task: task.after(SPECIAL_HEADS)), before)


def link_heads_ablated(
    links: pd.DataFrame, disable: pd.DataFrame, trained: Collection[Run], constants: Mapping[str, float]
) -> pd.DataFrame:
    """K12: the change of accuracy without a head that links frame elements, over the lead; mean of heads and runs."""
    heads = links.loc[
        (links["mode"] == "all_pairs") & (links["p_by"] < LEVEL), ["layer", "head"]
    ].drop_duplicates()
    if heads.empty:
        return not_applicable("no head gives the link more attention than its control")
    single = disable[(disable["unit"] == "head") & (disable["metric"] == "accuracy")]
    parts = []
    for task, rows in (
        single.astype({"head": int}).merge(heads, on=["layer", "head"]).groupby("task", sort=False)
    ):
        own = rows[[(task, run) in trained for run in rows["seed"]]]
        shares = own[["change", "low", "high"]].div(own["baseline"] - constants[task], axis=0)
        known = len(own) > 0
        parts.append(
            frame({task: tuple(shares.mean())}, runs=own["seed"].nunique())
            if known
            else not_applicable(UNTRAINED, task)
        )
    return pd.concat(parts, ignore_index=True) if parts else not_applicable("no head was ablated")
