"""The Parquet file of one shard: scores sequence by sequence, or their moments alone, with their provenance.

A file of scores has one row per sequence: its id, tokens, separators, units (one number per role), and a column
per role with the scores of all heads, layer by layer (NaN if the role is absent). A file of moments has one row per
role, layer and head (see `moments`). The metadata hold, as JSON, what identifies a run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

from analysis.banks import DIMENSIONS
from analysis.errors import InputError
from analysis.files import replacing
from analysis.statistics.moments import FIELDS, merge, moments

Provenance = Mapping[str, Any]
COUNTS = ("tokens", "separators")


def write_shard(path: Path, scores: Iterable[xr.DataArray], provenance: Provenance) -> None:
    """Writes the scores of a shard, part by part, or their moments, as `provenance["keep"]` says.

    The file is written whole or not at all; no more than one part is in memory. Raises InputError if it cannot be
    written.
    """
    tables = map(_score_table, scores)
    schema = _score_table(_no_scores(provenance)).schema
    if provenance["keep"] == "moments":
        table = _moment_table(merged(map(moments, scores), provenance))
        tables, schema = [table], table.schema
    schema = schema.with_metadata({"provenance": json.dumps(provenance)})
    with replacing(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table.cast(schema))


def read_provenance(path: Path) -> dict[str, Any]:
    """The metadata of a shard; raises InputError for a file that is damaged or no shard."""
    try:
        return json.loads(pq.read_metadata(path).metadata[b"provenance"])
    except (OSError, pa.lib.ArrowException, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged or no shard: delete it and run its shard again") from error


def read_scores(path: Path) -> Iterator[xr.DataArray]:
    """The scores of a shard, part by part, as `extract` gives them, without clusters.

    Raises InputError for a damaged file and for one that holds moments alone.
    """
    provenance = read_provenance(path)
    if provenance["keep"] != "scores":
        raise InputError(f"{path} holds moments alone: extract it again without --moments")
    heads = _heads(provenance)
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=512):
            columns = [batch.column(role).flatten().to_numpy() for role in heads["role"]]
            scores = np.stack(columns).reshape(
                [len(heads["role"]), len(batch), *map(len, [*heads.values()][1:])]
            )
            units = batch.column("units").flatten().to_numpy().reshape(len(batch), -1)
            sequences = {name: ("sequence", batch.column(name).to_numpy()) for name in COUNTS}
            sequences |= {"sequence": batch.column("sequence").to_pylist(), "units": (DIMENSIONS[:2], units)}
            attributes = {name: provenance[name] for name in ("arithmetic", "max_tokens")}
            yield xr.DataArray(scores.swapaxes(0, 1), sequences | heads, DIMENSIONS, attrs=attributes)


def read_moments(path: Path) -> xr.Dataset:
    """The moments of a shard, or of its scores part by part; raises InputError for a damaged file."""
    provenance = read_provenance(path)
    try:
        if provenance["keep"] == "scores":
            return merged(map(moments, read_scores(path)), provenance)
        columns, heads = pq.read_table(path), _heads(provenance)
        values = {name: columns[name].to_numpy().reshape([*map(len, heads.values())]) for name in FIELDS}
        fields = {name: (DIMENSIONS[1:], value) for name, value in values.items()}
        return merged([xr.Dataset(fields, heads, {"arithmetic": provenance["arithmetic"]})], provenance)
    except (OSError, pa.lib.ArrowException) as error:
        raise InputError(f"{path} is damaged: delete it and run its shard again") from error


def merged(parts: Iterable[xr.Dataset], provenance: Provenance) -> xr.Dataset:
    """The moments of all parts together; without a part, those of no sequence."""
    return reduce(merge, parts, moments(_no_scores(provenance)))


def _heads(provenance: Provenance) -> dict[str, Any]:
    return {
        "role": provenance["roles"],
        "layer": range(provenance["layers"]),
        "head": range(provenance["heads"]),
    }


def _no_scores(provenance: Provenance) -> xr.DataArray:
    heads = _heads(provenance)
    counts = {name: ("sequence", np.zeros(0, np.int32)) for name in COUNTS}
    units = {"units": (DIMENSIONS[:2], np.zeros((0, len(heads["role"])), np.int32))}
    coordinates = {"sequence": np.zeros(0, "U1"), **heads, **counts, **units}
    scores = np.zeros((0, *map(len, heads.values())), np.float32)
    return xr.DataArray(scores, coordinates, DIMENSIONS, attrs={"arithmetic": provenance["arithmetic"]})


def _score_table(part: xr.DataArray) -> pa.Table:
    columns = {"sequence": pa.array(part["sequence"].values.tolist(), pa.string())}
    columns |= {name: pa.array(part[name].values, pa.int32()) for name in COUNTS}
    lists = {
        "units": part["units"].astype(np.int32),
        **{role: part.sel(role=role) for role in part["role"].values},
    }
    for name, values in lists.items():
        columns[name] = pa.FixedSizeListArray.from_arrays(
            pa.array(values.values.ravel()), int(np.prod(values.shape[1:]))
        )
    return pa.table(columns)


def _moment_table(moments_of_heads: xr.Dataset) -> pa.Table:
    frame = moments_of_heads.to_dataframe(dim_order=DIMENSIONS[1:]).reset_index()
    return pa.Table.from_pandas(frame, preserve_index=False)
