"""The file of a shard gives back its content unchanged, and only one part of it is ever in memory."""

from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analysis.scale.shards import merged, read_moments, read_provenance, read_scores, write_shard
from analysis.statistics.moments import merge, moments

ROLES = ["cls", "nsubj"]
LAYERS, HEADS = 6, 12
RUN = {"roles": ROLES, "layers": LAYERS, "heads": HEADS, "arithmetic": "published", "max_tokens": 32}


def part(sequences: int, seed: int) -> xr.DataArray:
    """Random scores; one role is absent from half of the sequences."""
    generator = np.random.default_rng(seed)
    values = generator.random((sequences, len(ROLES), LAYERS, HEADS)).astype(np.float32)
    values[::2, 1] = np.nan
    return xr.DataArray(
        values,
        dims=("sequence", "role", "layer", "head"),
        coords={
            "sequence": [f"{seed}-{number}" for number in range(sequences)],
            "role": ROLES,
            "layer": range(LAYERS),
            "head": range(HEADS),
            "tokens": ("sequence", generator.integers(3, 32, sequences)),
            "separators": ("sequence", generator.integers(1, 3, sequences)),
            "units": (("sequence", "role"), np.isfinite(values[:, :, 0, 0]).astype(np.int32)),
        },
        attrs={"arithmetic": "published", "max_tokens": 32},
    )


def test_scores_come_back_as_they_were(tmp_path: Path):
    parts = [part(3, 0), part(5, 1)]
    write_shard(tmp_path / "a.parquet", iter(parts), RUN | {"keep": "scores"})
    found = xr.concat(list(read_scores(tmp_path / "a.parquet")), "sequence")
    xr.testing.assert_identical(found, xr.concat(parts, "sequence"))
    assert read_provenance(tmp_path / "a.parquet") == RUN | {"keep": "scores"}


def test_moments_are_the_same_whether_kept_or_made_of_kept_scores(tmp_path: Path):
    parts = [part(3, 0), part(5, 1)]
    expected = reduce(merge, map(moments, parts))
    for keep in ("scores", "moments"):
        write_shard(tmp_path / f"{keep}.parquet", iter(parts), RUN | {"keep": keep})
        xr.testing.assert_allclose(read_moments(tmp_path / f"{keep}.parquet"), expected, rtol=1e-12)
    assert read_moments(tmp_path / "moments.parquet").attrs == {"arithmetic": "published"}


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
    result = merged(parts, RUN | {"layers": layers, "heads": heads})
    xr.testing.assert_equal(result["n"], expected["n"])
    for power, field in enumerate(("mean", "m2", "m3"), 1):
        size = max(np.nanmax(np.abs(values), initial=0), 1) ** power * max(sequences, 1)
        np.testing.assert_allclose(
            result[field], expected[field], rtol=1e-9, atol=1e-12 * size, err_msg=field
        )


def test_writing_holds_one_part_at_a_time(tmp_path: Path):
    held = []

    def parts() -> Iterator[xr.DataArray]:
        for seed in range(20):
            held.append(pa.total_allocated_bytes())
            yield part(256, seed)

    write_shard(tmp_path / "a.parquet", parts(), RUN | {"keep": "scores"})
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 20
    assert max(held[10:]) <= 1.2 * max(held[:5])  # the writer's own buffers are there from the start
