"""How far models follow the strongest cue: their answers if "not" is in the right or wrong warrant, or absent."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float, Int

from analysis.papers.niven2019.accuracy import LEARNT, drawn_means, limits, of_runs
from analysis.papers.niven2019.arguments import Argument
from analysis.papers.niven2019.cues import follows_cue
from analysis.papers.niven2019.published import ORIGINAL

RIGHT, WRONG, ABSENT = "right", "wrong", "absent"
SIGNS = {RIGHT: 1, WRONG: -1, ABSENT: 0}
FOLLOWS = "follows"
CUE_HEADS = "cue heads"  # the name of the intervention that switches them off


def following(
    right: Float[np.ndarray, "seed point"], signs: Int[np.ndarray, " point"]
) -> Float[np.ndarray, "seed applicable"]:
    """Whether a run chooses the warrant with the cue, at the points where the cue applies."""
    applies = signs != 0
    return np.where(signs[applies] > 0, right[:, applies], 1 - right[:, applies])


def reliance_draws(
    answers: xr.Dataset, model: str, setup: str, test: Sequence[Argument], resamples: int = 999, seed: int = 0
) -> dict[str, Float[np.ndarray, " draw"]]:
    """Share that follows the cue, and accuracy where it is right, wrong and absent: the sample's value, then draws.

    The runs are those trained on the original arguments; `test` is the original test split. Empty without runs.
    """
    right, signs = of_runs(answers, model, setup), follows_cue(test)
    if not right.sizes["seed"]:
        return {}
    values = right.sel(point=[each.id for each in test]).values
    names = np.array([each.id for each in test])
    kinds = {FOLLOWS: (following(values, signs), signs != 0)}
    kinds |= {kind: (values[:, signs == sign], signs == sign) for kind, sign in SIGNS.items()}
    return {
        kind: drawn_means(part, names[chosen], resamples, seed)
        for kind, (part, chosen) in kinds.items()
        if chosen.any()
    }


def reliance_table(
    answers: xr.Dataset, test: Sequence[Argument], resamples: int = 999, seed: int = 0
) -> pd.DataFrame:
    """Reliance on "not": model, setup, which, runs, then follows, right, wrong and absent with their intervals.

    `which` is "all" runs or the "non-degenerate" ones. always_right: among the points that every run has right and to
    which the cue applies, the share where the cue is right; always_n counts these points. Source: Niven 2019,
    conclusion.
    """
    rows, signs = [], follows_cue(test)
    trained = answers.isel(run=answers["trained_on"].values == ORIGINAL)
    for which, chosen in (
        ("all", trained),
        ("non-degenerate", trained.isel(run=trained["train_accuracy"].values >= LEARNT)),
    ):
        pairs = dict.fromkeys(
            zip(chosen["model"].values.tolist(), chosen["setup"].values.tolist(), strict=True)
        )
        for model, setup in pairs:
            draws = reliance_draws(chosen, model, setup, test, resamples, seed)
            row = {
                "model": model,
                "setup": setup,
                "which": which,
                "runs": of_runs(chosen, model, setup).sizes["seed"],
            }
            for kind, values in draws.items():
                row |= dict(
                    zip((kind, f"{kind}_low", f"{kind}_high"), (values[0], *limits(values)), strict=True)
                )
            right = of_runs(chosen, model, setup).sel(point=[each.id for each in test]).values
            always = (right == 1).all(axis=0) & (signs != 0)
            row |= {
                "always_n": int(always.sum()),
                "always_right": float((signs[always] > 0).mean()) if always.any() else np.nan,
            }
            rows.append(row)
    return pd.DataFrame(rows)
