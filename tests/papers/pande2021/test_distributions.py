import numpy as np
import pytest
import xarray as xr
from drawing import HEADS, LAYERS, ROLES, role_table, unnamed

from analysis.papers.pande2021.distributions import p_values, score_distributions


@pytest.fixture
def scores() -> xr.DataArray:
    """Right-skewed scores of 30 sequences; `dobj` is missing from half of them, `block` from all."""
    values = np.random.default_rng(0).lognormal(0, 1, (30, len(ROLES), LAYERS, HEADS)).astype(np.float32)
    values[::2, ROLES.index("dobj")] = np.nan
    values[:, ROLES.index("block")] = np.nan
    values[0, 0, 0, 0] = 0
    names = {"role": ROLES, "layer": range(LAYERS), "head": range(HEADS)}
    return xr.DataArray(values, dims=["sequence", "role", "layer", "head"], coords=names)


def test_a_panel_per_role_marks_mean_and_median_of_the_head_nearest_to_tau(scores):
    figure = score_distributions(scores, tau=2.0)
    for axes, role in zip(figure.axes, ROLES, strict=True):
        values = scores.sel(role=role).values.astype(float).reshape(30, -1)
        if role == "block":
            assert [text.get_text() for text in axes.texts] == ["untestable"]
            continue
        head = np.abs(np.nanmean(values, axis=0) - 2).argmin()
        assert axes.get_title() == f"{role}, {head // HEADS}-{head % HEADS}"
        tau, mean, median = (line.get_xdata()[0] for line in axes.lines)
        own = values[:, head][np.isfinite(values[:, head])]
        assert (tau, mean, median) == pytest.approx((2, own.mean(), np.median(own)), rel=1e-5)
        assert axes.get_xscale() == "linear"
    assert unnamed(figure) == []


def test_histograms_count_all_heads_and_the_head_itself(scores):
    axes = score_distributions(scores, tau=2.0).axes[0]
    pooled, own = (patch.get_data() for patch in axes.patches)
    values = scores.sel(role="local").values.astype(float).reshape(30, -1)
    head = np.abs(values.mean(axis=0) - 2).argmin()
    for drawn, sample in ((pooled, values), (own, values[:, head])):
        counts = np.histogram(sample, drawn.edges)[0]
        np.testing.assert_allclose(drawn.values, counts / counts.max())
    assert own.edges[-1] == pytest.approx(max(np.percentile(values[:, head], 99), 2.4), rel=1e-5)


def test_p_values_are_counted_and_stand_in_the_row_of_their_role():
    table = role_table()
    table.loc[table.index[0], "p"] = 1e-40
    left, right = p_values(table, alpha=0.05).axes
    tested = table.dropna(subset="p")
    assert sum(bar.get_height() for bar in left.patches) == len(tested)
    roles = [label.get_text() for label in right.get_yticklabels()]
    assert roles == ROLES
    for row, (role, points) in enumerate(zip(roles, right.collections, strict=True)):
        across, down = np.asarray(points.get_offsets()).reshape(-1, 2).T
        p = tested.loc[tested["role"] == role, "p"]
        np.testing.assert_allclose(across, np.log10(p.clip(lower=1e-20)))
        assert (np.abs(down - row) < 0.5).all()
    assert [0.05, 0.05] in [list(line.get_xdata()) for line in left.lines]
    assert right.lines[0].get_xdata()[0] == pytest.approx(np.log10(0.05))
    assert LAYERS * HEADS * len(ROLES) > len(tested)


def test_p_values_name_their_axes():
    assert unnamed(p_values(role_table(), 0.05)) == []
