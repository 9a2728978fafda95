import numpy as np
import pandas as pd
import pytest
import xarray as xr
from headtables import score_array

from analysis.papers.pande2021 import published
from analysis.papers.pande2021.evidence import evidence_of, evidence_of_labels, replicated
from analysis.statistics.roles import MASSES, PUBLISHED_ROLES, attention_masses
from analysis.statistics.significance import Rule, published_table

N, LAYERS, HEADS = 24, 2, 3
RULE = Rule(tau=2.8, alpha=0.1)


def scores(seed: int, arithmetic: str = "corrected") -> xr.DataArray:
    """Composed scores of N sequences: `block` absent, `advmod` in one sequence, a constant head of `local`."""
    rng = np.random.default_rng(seed)
    data = rng.gamma(3, 1, (N, len(PUBLISHED_ROLES), LAYERS, HEADS)).astype(np.float32)
    data[:, PUBLISHED_ROLES.index("block")] = np.nan
    data[1:, PUBLISHED_ROLES.index("advmod")] = np.nan
    data[5:, PUBLISHED_ROLES.index("amod")] = np.nan
    data[::3, PUBLISHED_ROLES.index("nsubj")] = np.nan
    data[:, 0, 0, 0] = 4.1
    return score_array(data, PUBLISHED_ROLES, arithmetic, tokens=np.arange(N) + 10, separators=np.full(N, 2))


def study() -> list[dict[str, xr.DataArray]]:
    return [{"qqp": scores(seed), "mrpc": scores(seed + 1)} for seed in (0, 50)]


def assigned(table: pd.DataFrame) -> np.ndarray:
    """1, 0 or NaN for every head."""
    return table["assigned"].astype("Float64").to_numpy(float, na_value=np.nan)


def standardised(differences: xr.DataArray) -> xr.DataArray:
    """Mean over standard deviation; missing without spread."""
    spread = differences.std("sequence", ddof=1)
    return differences.mean("sequence") / spread.where(spread > 1e-4)


def clustered(array: xr.DataArray, clusters: np.ndarray) -> xr.DataArray:
    return array.assign_coords(cluster=("sequence", clusters)).astype(float)


def test_sample_has_the_published_labels_and_the_differences_of_means():
    pretrained, finetuned = study()
    result = evidence_of(pretrained, {0: finetuned}, RULE, replicates=99)
    before, after = pretrained["qqp"].astype(float), finetuned["qqp"].astype(float)
    sample = {"run": 0, "replicate": 0, "task": "qqp"}
    np.testing.assert_allclose(result.change.isel(replicate=[0]).sel(sample), standardised(after - before))
    labels = assigned(published_table(finetuned["qqp"], RULE))
    np.testing.assert_array_equal(result.labels.sel(sample).values.ravel(), labels)


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
def test_replicate_is_the_evidence_of_the_drawn_sequences(arithmetic):
    clusters = np.random.default_rng(4).permutation(np.arange(N) // 2)
    before, after = (clustered(scores(seed, arithmetic=arithmetic), clusters) for seed in (1, 2))
    counts = np.random.default_rng(5).multinomial(N // 2, np.full(N // 2, 2 / N), size=4)
    result = replicated(before, after, counts, RULE)
    for number, often in enumerate(counts):
        drawn = np.repeat(np.arange(N), often[clusters])
        old, new = (array.isel(sequence=drawn) for array in (before, after))
        table = published_table(new, RULE)
        np.testing.assert_array_equal(result["labels"][number].values.ravel(), assigned(table))
        np.testing.assert_allclose(result["p"][number].values.ravel(), table["p"], rtol=1e-7)
        np.testing.assert_allclose(result["change"][number], standardised(new - old), atol=1e-12)
        for target in MASSES:
            later, earlier = (attention_masses(state)[target].mean("sequence") for state in (new, old))
            mass = (later - earlier).values
            np.testing.assert_allclose(result["mass"].sel(target=target)[number], mass, atol=1e-12)


def test_clusters_are_drawn_whole():
    """Scores that are opposite within each cluster have the same mean in every replicate."""
    before = clustered(0 * scores(0), np.arange(N) // 2)
    after = before + xr.DataArray(np.tile([1.0, -1.0], N // 2), dims="sequence")
    pairs = evidence_of({"mrpc": before}, {0: {"mrpc": after}}).change.sel(role="sep")
    np.testing.assert_allclose(pairs, 0, atol=1e-12)


def test_runs_share_the_sequences_of_a_replicate():
    pretrained, finetuned = study()
    # Twice the differences.
    moved = {task: 2 * finetuned[task] - before for task, before in pretrained.items()}
    change = evidence_of(pretrained, {0: finetuned, 1: moved}, replicates=99).change
    np.testing.assert_allclose(change.sel(run=1), change.sel(run=0), rtol=1e-4, atol=1e-5)
    assert change.sel(run=0, role="sep", layer=0, head=0, task="qqp").std() > 0


def test_released_maps_are_evidence():
    table = published.roles()
    result = evidence_of_labels(table)
    assert result.labels.sum() == table["assigned"].sum()
    assert result.labels.sel(task="sst-2", role="block").isnull().all()
    few = evidence_of_labels(table[table["role"] == "cls"]).labels
    assert few.sel(role="sep").isnull().all()
