"""The moments of shards are those of all sequences, however these are divided."""

from functools import reduce

import numpy as np
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analysis.scale.loop import no_moments
from analysis.statistics.moments import merge, moments

ROLES = ["cls", "nsubj"]
SHAPE = st.tuples(st.integers(0, 12), st.just(2), st.just(1), st.integers(1, 2))
SCORES = st.one_of(st.just(float("nan")), st.floats(0, 1000, width=32))


@settings(deadline=None)
@given(arrays.arrays(np.float32, SHAPE, elements=SCORES), st.data())
def test_moments_of_any_split_in_any_order_are_those_of_all(values: np.ndarray, data: st.DataObject):
    """Each sequence goes to one of up to five shards, some of them empty; the shards are merged in any order."""
    sequences, _, layers, heads = values.shape
    names = {"role": ROLES, "layer": range(layers), "head": range(heads)}
    whole = xr.DataArray(values, names, ("sequence", *names), attrs={"arithmetic": "published"})
    shards = data.draw(st.permutations(range(5)))
    assignment = np.array(data.draw(st.lists(st.integers(0, 4), min_size=sequences, max_size=sequences)), int)
    parts = [moments(whole.isel(sequence=assignment == shard)) for shard in shards]
    expected = moments(whole)
    run = {"roles": ROLES, "layers": layers, "heads": heads, "arithmetic": "published"}
    result = reduce(merge, parts, no_moments(run))
    xr.testing.assert_equal(result["n"], expected["n"])
    for power, field in enumerate(("mean", "m2", "m3"), 1):
        size = max(np.nanmax(np.abs(values), initial=0), 1) ** power * max(sequences, 1)
        np.testing.assert_allclose(
            result[field], expected[field], rtol=1e-9, atol=1e-12 * size, err_msg=field
        )
