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

from analysis.errors import InputError
from analysis.files import replacing
from analysis.scores.banks import DIMENSIONS
from analysis.statistics.moments import FIELDS, merge, moments

Provenance = Mapping[str, Any]


def write_shard(path: Path, scores: Iterable[xr.DataArray], provenance: Provenance) -> None:
    """Writes the scores of a shard, part by part, or their moments, as `provenance["keep"]` says.

    The file is written whole or not at all; no more than one part is in memory. Raises InputError if it cannot be
    written.
    """
    if provenance["keep"] == "moments":
        schema, tables = _moment_schema(), _moment_tables(scores, provenance)
    else:
        schema, tables = _score_schema(provenance), map(_score_table, scores)
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
    heads = (-1, provenance["layers"], provenance["heads"])
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=512):
            roles = [batch.column(role).flatten().to_numpy().reshape(heads) for role in provenance["roles"]]
            units = batch.column("units").flatten().to_numpy().reshape(len(batch), -1)
            coordinates = {
                "sequence": batch.column("sequence").to_pylist(),
                **_heads(provenance),
                "tokens": ("sequence", batch.column("tokens").to_numpy()),
                "separators": ("sequence", batch.column("separators").to_numpy()),
                "units": (("sequence", "role"), units),
            }
            about = {name: provenance[name] for name in ("arithmetic", "max_tokens")}
            yield xr.DataArray(np.stack(roles, axis=1), coordinates, DIMENSIONS, attrs=about)


def read_moments(path: Path) -> xr.Dataset:
    """The moments of a shard, or of its scores part by part; raises InputError for a damaged file."""
    provenance = read_provenance(path)
    try:
        if provenance["keep"] == "scores":
            return merged(map(moments, read_scores(path)), provenance)
        columns, heads = pq.read_table(path), _heads(provenance)
        shape = [len(names) for names in heads.values()]
        found = {field: ([*heads], columns[field].to_numpy().reshape(shape)) for field in FIELDS}
        return merged([xr.Dataset(found, heads, {"arithmetic": provenance["arithmetic"]})], provenance)
    except (OSError, pa.lib.ArrowException) as error:
        raise InputError(f"{path} is damaged: delete it and run its shard again") from error


def merged(parts: Iterable[xr.Dataset], provenance: Provenance) -> xr.Dataset:
    """The moments of all parts together; without a part, those of no sequence."""
    heads = _heads(provenance)
    nothing = np.zeros((0, *(len(names) for names in heads.values())))
    about = {"arithmetic": provenance["arithmetic"]}
    return reduce(merge, parts, moments(xr.DataArray(nothing, heads, DIMENSIONS, attrs=about)))


def _heads(provenance: Provenance) -> dict[str, Any]:
    return {
        "role": provenance["roles"],
        "layer": range(provenance["layers"]),
        "head": range(provenance["heads"]),
    }


def _score_schema(provenance: Provenance) -> pa.Schema:
    columns = {
        "sequence": pa.string(),
        "tokens": pa.int32(),
        "separators": pa.int32(),
        "units": pa.list_(pa.int32(), len(provenance["roles"])),
    }
    heads = pa.list_(pa.float32(), provenance["layers"] * provenance["heads"])
    return pa.schema(columns | dict.fromkeys(provenance["roles"], heads))


def _score_table(part: xr.DataArray) -> pa.Table:
    columns = {name: pa.array(part[name].values.tolist()) for name in ("sequence", "tokens", "separators")}
    columns["units"] = _lists(part["units"].values)
    return pa.table(columns | {role: _lists(part.sel(role=role).values) for role in part["role"].values})


def _lists(values: np.ndarray) -> pa.FixedSizeListArray:
    """One list per row; further axes are written out in order."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values[0].size)


def _moment_schema() -> pa.Schema:
    names = {"role": pa.string(), "layer": pa.int32(), "head": pa.int32()}
    return pa.schema(names | {field: pa.int64() if field == "n" else pa.float64() for field in FIELDS})


def _moment_tables(scores: Iterable[xr.DataArray], provenance: Provenance) -> Iterator[pa.Table]:
    found = merged(map(moments, scores), provenance)
    frame = found.to_dataframe(dim_order=DIMENSIONS[1:]).reset_index()
    yield pa.Table.from_pandas(frame, preserve_index=False)
