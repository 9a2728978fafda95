"""How exact sampled attribution is, and how much the input point matters, on a few short sequences."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from tqdm import tqdm

from analysis.encoders.layout import Layout
from analysis.encoders.models import Encoder
from analysis.papers.pascual2021.discrepancy import measures
from analysis.papers.pascual2021.names import JSD, MEASURES, PEARSON, SPEARMAN, TOP_1, TV
from analysis.scores.attribution import attributed

SHOWN = (PEARSON, SPEARMAN, TV, JSD, TOP_1)
NORMALISED = "input before normalisation"


def validation_table(
    encoder: Encoder, sequences: Sequence[Layout], probes: Sequence[int], seed: int = 0, progress: bool = True
) -> pd.DataFrame:
    """Sampled attribution compared with exact, and attribution to the input before normalisation with that after it.

    Columns compared, probes (of the compared map; NaN for all), layer, SHOWN (mean over rows, heads and sequences),
    score_error (mean absolute difference of a head's score of [CLS], 1 = uniform), n (sequences). In the second
    comparison both sides are exact, so that it shows the effect of the input point alone.
    """
    rows = []
    for layout in tqdm(sequences, desc="exact attribution", unit="sequence", disable=not progress):
        exact = _maps(encoder, layout, None, seed)
        compared = {("sampled", count): _maps(encoder, layout, count, seed) for count in probes}
        compared[NORMALISED, None] = _maps(encoder, layout, None, seed, start="pre_ln")
        rows += [_row(name, exact, maps) for name, maps in compared.items()]
    table = pd.concat(rows, ignore_index=True)
    means = table.groupby(["compared", "probes", "layer"], sort=False, dropna=False).mean()
    return means.reset_index().assign(n=len(sequences))


def _maps(
    encoder: Encoder, layout: Layout, probes: int | None, seed: int, start: str = "post_ln"
) -> np.ndarray:
    return attributed(encoder, layout, probes, seed, start).double().cpu().numpy()


def _row(name: tuple[str, int | None], exact: np.ndarray, maps: np.ndarray) -> pd.DataFrame:
    """The measures of one sequence, layer by layer."""
    found = dict(zip(MEASURES, measures(exact, maps), strict=True))
    error = exact.shape[-1] * np.abs((maps - exact)[..., 0].mean(-1))
    columns = {measure: found[measure].mean(axis=1) for measure in SHOWN} | {
        "score_error": error.mean(axis=1)
    }
    compared, probes = name
    return pd.DataFrame({"compared": compared, "probes": probes, "layer": range(len(exact)), **columns})
