import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from analysis.papers.pande2021 import evidence, published
from analysis.papers.pande2021.evidence import (
    evidence_of,
    evidence_of_labels,
    replicates,
    resampled,
    resampled_control,
    resampled_skewness,
)
from analysis.statistics.controls import controlled_table
from analysis.statistics.roles import MASSES, PUBLISHED_ROLES, attention_masses
from analysis.statistics.significance import published_table

N, LAYERS, HEADS = 24, 2, 3


@pytest.fixture(autouse=True)
def _few_skewness_tests(monkeypatch):
    """They take most of the time."""
    monkeypatch.setattr(evidence, "SKEWNESS_REPLICATES", 8)


def scores(seed: int, arithmetic: str = "corrected") -> xr.DataArray:
    """Composed scores of N sequences: `block` absent, `advmod` in one sequence, a constant head of `local`."""
    rng = np.random.default_rng(seed)
    data = rng.gamma(3, 1, (N, len(PUBLISHED_ROLES), LAYERS, HEADS)).astype(np.float32)
    data[:, PUBLISHED_ROLES.index("block")] = np.nan
    data[1:, PUBLISHED_ROLES.index("advmod")] = np.nan
    data[5:, PUBLISHED_ROLES.index("amod")] = np.nan
    data[::3, PUBLISHED_ROLES.index("nsubj")] = np.nan
    data[:, 0, 0, 0] = 4.1
    coordinates = {
        "sequence": [f"s{number:02}" for number in range(N)],
        "role": [*PUBLISHED_ROLES],
        "layer": range(LAYERS),
        "head": range(HEADS),
        "tokens": ("sequence", np.arange(N) + 10),
        "separators": ("sequence", np.full(N, 2)),
    }
    dims = ("sequence", "role", "layer", "head")
    return xr.DataArray(data, coordinates, dims, attrs={"arithmetic": arithmetic})


def study() -> list[dict[str, xr.DataArray]]:
    """Scores of two tasks, pre-trained and fine-tuned."""
    return [{"qqp": scores(seed), "mrpc": scores(seed + 1)} for seed in (0, 50)]


def drawn_again(array: xr.DataArray, clusters: np.ndarray, often: np.ndarray) -> xr.DataArray:
    """The scores of the sequences of clusters that were drawn so often."""
    return array.isel(sequence=np.repeat(np.arange(N), often[clusters]))


def clustered(array: xr.DataArray, clusters: np.ndarray) -> xr.DataArray:
    return array.assign_coords(cluster=("sequence", clusters)).astype(float)


def test_sample_has_the_published_labels_the_differences_of_means_and_skewness():
    pretrained, finetuned = study()
    found = evidence_of(pretrained, finetuned, tau=2.8, alpha=0.1)
    before, after = pretrained["qqp"].astype(float), finetuned["qqp"].astype(float)
    step = after.mean("sequence") - before.mean("sequence")
    np.testing.assert_allclose(found.change.sel(task="qqp")[0], step)
    for target in MASSES:
        old, new = (attention_masses(scores)[target].mean("sequence") for scores in (before, after))
        np.testing.assert_allclose(found.mass.sel(task="qqp", target=target)[0], new - old, atol=1e-12)
    skewed = found.skewed.sel(task="qqp")[0]
    for role in ("syntactic", "nsubj"):
        values = after.sel(role=role).dropna("sequence").values.reshape(-1, LAYERS * HEADS)
        expected = [stats.skewtest(column).pvalue < 0.05 for column in values.T]
        assert skewed.sel(role=role).values.ravel().tolist() == expected
    assert skewed.sel(role=["block", "advmod", "amod"]).isnull().all()  # fewer than 8 sequences
    assert np.isnan(skewed.sel(role="local", layer=0, head=0))  # constant
    table = published_table(finetuned["qqp"], 2.8, 0.1)
    for row in table.itertuples():
        where = {"task": "qqp", "role": row.role, "layer": row.layer, "head": row.head}
        expected = np.nan if pd.isna(row.assigned) else float(row.assigned)
        np.testing.assert_equal(found.labels.sel(where).item(), expected)
        np.testing.assert_equal(found.p.sel(where).item(), row.p)


@pytest.mark.parametrize("arithmetic", ["corrected", "published"])
def test_replicate_is_the_evidence_of_the_drawn_sequences(arithmetic):
    clusters = np.random.default_rng(4).permutation(np.arange(N) // 2)
    before, after = (clustered(scores(seed, arithmetic=arithmetic), clusters) for seed in (1, 2))
    counts = np.random.default_rng(5).multinomial(N // 2, np.full(N // 2, 2 / N), size=4)
    found = resampled(before, after, counts, 2.8, 0.1) | {"skewed": resampled_skewness(after, counts)}
    for number, often in enumerate(counts):
        old, new = (drawn_again(array, clusters, often) for array in (before, after))
        table = published_table(new, 2.8, 0.1)
        labels = table["assigned"].astype("Float64").to_numpy(float, na_value=np.nan)
        np.testing.assert_array_equal(found["labels"][number].values.ravel(), labels)
        np.testing.assert_allclose(found["p"][number].values.ravel(), table["p"], rtol=1e-7)
        above = (table["mean"] > 2.8).where(table["p"].notna()).to_numpy(float)
        np.testing.assert_array_equal(found["above"][number].values.ravel(), above)
        step = (new.mean("sequence") - old.mean("sequence")).values
        np.testing.assert_allclose(found["change"][number], step, atol=1e-12)
        for target in MASSES:
            later, earlier = (attention_masses(state)[target].mean("sequence") for state in (new, old))
            mass = (later - earlier).values
            np.testing.assert_allclose(found["mass"].sel(target=target)[number], mass, atol=1e-12)
        nsubj = new.sel(role="nsubj", layer=1, head=2).dropna("sequence")
        skewed = found["skewed"].sel(role="nsubj", layer=1, head=2)[number]
        assert skewed == (stats.skewtest(nsubj.values).pvalue < 0.05)


def test_clusters_are_drawn_whole():
    """Scores that are opposite within each cluster have the same mean in every replicate."""
    before = 0 * scores(0)
    after = before + xr.DataArray(np.tile([1.0, -1.0], N // 2), dims="sequence")
    alone = replicates({"mrpc": before}, {0: {"mrpc": after}}, number=99).change.sel(role="sep")
    assert alone.sel(layer=0, head=0).std() == pytest.approx(np.sqrt(1 / N), rel=0.25)
    before, after = (clustered(each, np.arange(N) // 2) for each in (before, after))
    pairs = replicates({"mrpc": before}, {0: {"mrpc": after}}, number=99).change.sel(role="sep")
    np.testing.assert_allclose(pairs, 0, atol=1e-12)


def test_replicates_draw_a_run_for_every_task():
    pretrained, _ = study()
    runs = {seed: {task: array + seed for task, array in pretrained.items()} for seed in (0, 1, 2)}
    found = replicates(pretrained, runs, number=200)
    assert found.drawn == "sequences, 3 fine-tuning seeds"
    drawn = found.change.sel(role="sep", layer=0, head=0).round(6)
    for task in ("mrpc", "qqp"):
        assert set(drawn.sel(task=task).values) == {0, 1, 2}
    together = drawn.sel(task="mrpc") * 3 + drawn.sel(task="qqp")
    assert len(np.unique(together)) == 9
    assert found.skewed.sizes["replicate"] == 8


def test_released_maps_are_evidence():
    table = published.roles()
    found = evidence_of_labels(table)
    failing = table["assigned"].eq(False).fillna(False) & (table["mean"] > 3)
    assert ((found.labels == 0) & (found.above == 1)).sum() == failing.sum() == 382
    assert found.labels.sum() == table["assigned"].sum()
    assert found.labels.sel(task="sst-2", role="block").isnull().all()
    few = evidence_of_labels(table[table["role"] == "cls"]).labels
    assert few.sel(role="sep").isnull().all()


def control_of(array: xr.DataArray, seed: int, share: float = 0.3) -> xr.DataArray:
    """Control scores: a share of the head's own, with noise; constant in cls and sep."""
    noise = 1 + 0.1 * np.random.default_rng(seed).standard_normal(array.shape)
    drawn = (share * array * noise).assign_attrs(array.attrs)
    uniform = xr.DataArray([role in ("cls", "sep", "delimiter") for role in PUBLISHED_ROLES], dims="role")
    return drawn.where(~uniform | array.isnull(), 1.0).transpose(*array.dims).assign_attrs(array.attrs)


def test_controlled_labels_of_a_replicate_are_those_of_the_drawn_sequences():
    """The table's own label needs the bootstrap's bound besides, which replicates leave out."""
    clusters = np.arange(N)
    after = clustered(1.4 * scores(2), clusters)
    control = control_of(after, 3).astype(float)
    counts = np.random.default_rng(5).multinomial(N, np.full(N, 1 / N), size=3)
    found = resampled_control(after, control, counts, 3.0, 0.05, 10)
    for number, often in enumerate(counts):
        own, against = (drawn_again(array, clusters, often) for array in (after, control))
        names = {"sequence": range(N)}
        own, against = (array.assign_coords(names).assign_attrs(after.attrs) for array in (own, against))
        table = controlled_table(own, against, 3.0, 0.05, 2, 99).set_index(["role", "layer", "head"])
        for role in ("syntactic", "nsubj", "block", "sep"):
            mine = found[number].sel(role=role).values.ravel()
            expected = table.loc[role, "controlled_p_by"]
            np.testing.assert_array_equal(mine == 1, expected < 0.05)
            np.testing.assert_array_equal(np.isnan(mine), expected.isna())
        assert found[number].sel(role=["amod", "advmod"]).isnull().all()  # fewer than 10 sequences
    assert 0 < float((found == 1).mean()) < float(found.notnull().mean())
