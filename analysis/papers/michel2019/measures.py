"""What each claim of Michel 2019 measures: a tidy frame for each claim, from the tables of its notebooks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.statistics.claims import read_claims, sampled, tabled, untestable
from analysis.statistics.leads import Labels, floor
from analysis.statistics.training import trained_successfully
from analysis.texts.tasks import task_named

FOLDER = Path(__file__).parent
CLAIMS = read_claims(FOLDER / "claims.yaml")
IMPORTANCE, SCORE, AGAIN, RANDOM = "importance", "single-head score", "re-estimated", "random"  # orders
SHARED = 16  # smallest batch size at which the article says that pruning pays
SPARED = 0.2  # share of a classifier's lead that counts as no loss
NONE = "no classifier that is ahead of the constant answer"
OVER = "mean over tasks"  # the name of a unit
RUN = ["task", "seed"]
SIDES = {"value": "change", "low": "low", "high": "high"}


def published(name: str) -> pd.DataFrame:
    """A table of published values by its name; published.md says what each holds and where it comes from."""
    return pd.read_csv(FOLDER / f"published_{name}.csv")


def summary(results: Any) -> pd.DataFrame:
    """The claim table of this paper, as its notebook of pruning saved it."""
    return results.claims("claims-michel2019")


def measures(
    ablation: pd.DataFrame,
    left: pd.DataFrame,
    curves: pd.DataFrame,
    rises: pd.DataFrame,
    transfer: pd.DataFrame,
    speed: pd.DataFrame,
    means: pd.DataFrame,
    gains: Mapping[str, Float[np.ndarray, " draw"]],
    labels: Labels,
) -> dict[str, pd.DataFrame]:
    """The frame of every claim, by its id; runs without a lead are left out.

    Tables of single heads, of one head left in a layer, of `prune_curves`, `rises_table`, `transfer_table`,
    `speed_table`, `mean_scores` and `later_gain`; `labels` are those of the scored sequences.
    """
    single = spared(ablation, labels)
    leading = single[RUN].drop_duplicates()
    return {
        "M1": single_heads(single),
        "M2": rising(rises.merge(leading, on=RUN)),
        "M3": one_head(spared(left[left["chosen_on"] == "train"], labels)),
        "M4": agreeing(transfer[transfer["model"].isin(leading["task"])]),
        "M5": prunable(spared(as_changes(curves), labels)),
        "M6": steadier(means),
        "M7": faster(speed),
        "M8": later(gains, curves["heads"].nunique() - 1),
    }


def main_metric(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with the first metric of their task."""
    return table[table["metric"] == table["task"].map(lambda task: task_named(task).metrics[0])]


def spared(table: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Whether a change costs at most a fifth of the lead: by its estimate and both ends of its interval.

    Rows are those of the task's metric, in runs that trained successfully. The column `value` judges the change,
    `low` its lower end (no loss is shown) and `high` its upper end (no loss cannot be excluded). An end that is missing
    shows and excludes nothing.
    """
    table = table.reset_index(drop=True)
    ahead = table["baseline"] - [
        floor(metric, labels[task]) for task, metric in table[["task", "metric"]].to_numpy()
    ]
    baselines = table[table["metric"] == "accuracy"].drop_duplicates(RUN)
    trained = [
        trained_successfully(
            "accuracy", row.baseline, len(labels[row.task]), floor("accuracy", labels[row.task])
        )
        for row in baselines.itertuples()
    ]
    leading = baselines[np.array(trained, bool)][RUN]
    lost = table[[*SIDES.values()]].set_axis([*SIDES], axis=1).add(SPARED * ahead, axis=0)
    within = (lost >= -1e-12).assign(high=lambda rows: rows["high"] | lost["high"].isna())
    return main_metric(table.drop(columns=["low", "high"]).join(within)).merge(leading, on=RUN)


def as_changes(curves: pd.DataFrame) -> pd.DataFrame:
    """The table of `prune_curves` with the baseline, and with the interval of the change in place of the score's."""
    baseline = curves["value"] - curves["change"]
    moved = curves[["low", "high"]].sub(baseline, axis=0)
    return curves.drop(columns="value").assign(baseline=baseline, **moved)


def single_heads(single: pd.DataFrame) -> pd.DataFrame:
    """M1: the share of heads without a loss, by task and run."""
    if single.empty:
        return untestable(NONE)
    found = single.groupby(RUN, sort=False).agg(
        **{side: (side, "mean") for side in SIDES}, n=("value", "size")
    )
    return tabled(found.reset_index(), "{task}, seed {seed}", "value")


def rising(rises: pd.DataFrame) -> pd.DataFrame:
    """M2: the rise farthest from chance, with its interval; the upper end is the highest of all heads."""
    if rises.empty:
        return untestable(NONE)
    best, heads = rises.loc[rises["p"].idxmin()], int(rises["variants"].sum())
    chance = f"{rises['raised'].sum()} heads rise, swapped answers give up to {rises['raised_by_chance'].sum():.0f}"
    note = f"head {best['largest']} in {best['task']}; {rises['beyond'].sum()} of {heads} beyond chance; {chance}"
    row = pd.DataFrame([best]).assign(high=rises["highest_end"].max(), unit="", n=heads)
    return tabled(row, "unit", "rise", note=note)


def one_head(left: pd.DataFrame) -> pd.DataFrame:
    """M3: the share of layers that can be reduced to one head without a loss, mean over tasks."""
    if left.empty:
        return untestable(NONE)
    found = left.groupby("task")[[*SIDES]].mean()
    return tabled(found.mean().to_frame().T.assign(unit=OVER, n=len(found)), "unit", "value")


def agreeing(transfer: pd.DataFrame) -> pd.DataFrame:
    """M4: correlations of effects on two sets, by metric, of values and of ranks; control: those of halves of one."""
    halves, kinds = transfer["data_a"].str.contains(","), ["metric", "correlation"]
    if halves.all():
        return untestable("no two data sets of one question")
    ceiling = transfer[halves].groupby(kinds)["value"].mean().rename("control")
    rows = transfer[~halves].join(ceiling, on=kinds)
    heads = rows.drop_duplicates("metric").itertuples()
    note = "; ".join(f"{row.metric} changes most without {row.largest}" for row in heads)
    return tabled(rows, "{metric}, {correlation}", "value", n="heads", control="control", note=note)


def prunable(steps: pd.DataFrame) -> pd.DataFrame:
    """M5: the largest share of heads that goes by importance without a loss at any step, by task and run."""
    if steps.empty:
        return untestable(NONE)
    found = pd.DataFrame(
        [
            [*key, len(rows), *(_largest(rows["heads"], rows[side]) for side in SIDES)]
            for key, rows in steps.sort_values("heads").groupby([*RUN, "order"], sort=False)
        ],
        columns=[*RUN, "order", "n", *SIDES],
    )
    random = found[found["order"].str.startswith(RANDOM)].groupby("task")["value"].mean()
    own = found[found["order"] == IMPORTANCE]
    own = own.assign(control=own["task"].map(random), n=own["n"] - 1)  # the row without pruning is no step
    return tabled(own, "task", "value", control="control")


def _largest(heads: pd.Series, fine: pd.Series) -> float:
    """The share of heads pruned at the last step before the first one that is not fine."""
    return float(heads[fine.cummin()].max() / heads.max())


def steadier(means: pd.DataFrame) -> pd.DataFrame:
    """M6: the mean score of pruning by importance minus that by single-head scores, mean over tasks."""
    if means.empty:
        return untestable("no orders")
    gain = (means[IMPORTANCE] - means[SCORE]).groupby("replicate").mean()
    sample = means.xs(0, level="replicate")
    over_random = (sample[IMPORTANCE] - sample.filter(like=RANDOM).mean(axis=1)).mean()
    return sampled({OVER: gain}, n=len(sample), control={OVER: over_random})


def later(gains: Mapping[str, Float[np.ndarray, " draw"]], steps: int) -> pd.DataFrame:
    """M8: how much more of its lead the final classifier keeps than the first one with a lead, by task."""
    if not gains or any(np.isnan(values[0]) for values in gains.values()):
        return untestable(f"{NONE} early on")
    return sampled(gains, n=steps)


def faster(speed: pd.DataFrame) -> pd.DataFrame:
    """M7: the speed-up at large batches, for every encoder, beside the bounds that the arithmetic sets."""
    rows = speed[speed["batch"] >= SHARED]
    if rows.empty:
        return untestable(f"no times at {SHARED} sequences at once or more")
    bounds = ", ".join(f"{bound:.2f}" for bound in rows["bound"].unique())
    note = f"the arithmetic allows {bounds}"
    return tabled(rows, "{model}, {batch}", "speedup", n=len(rows), note=note)
