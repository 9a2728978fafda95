"""The Parquet file of one shard: scores sequence by sequence, or their moments alone, with their provenance.

A file of scores has one row per sequence: its id, tokens, separators, units (one number per role), and a column
per role with the scores of all heads, layer by layer (NaN if the role is absent). A file of moments has one row per
role, layer and head (see `moments`). The metadata hold, as JSON, what identifies a run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

from analysis.errors import InputError
from analysis.files import replacing
from analysis.statistics.moments import FIELDS, merge, moments

Provenance = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """What a shard keeps: the columns of its file, how scores become tables, and how moments are read back."""

    schema: Callable[[Provenance], pa.Schema]
    tables: Callable[[Iterable[xr.DataArray], Provenance], Iterator[pa.Table]]
    moments: Callable[[pq.ParquetFile, Provenance], Iterator[xr.Dataset]]


def write_shard(path: Path, scores: Iterable[xr.DataArray], provenance: Provenance) -> None:
    """Writes the scores of a shard, part by part, or their moments, as `provenance["keep"]` says.

    The file is written whole or not at all; no more than one part is in memory. Raises InputError if it cannot be
    written.
    """
    kind = KINDS[provenance["keep"]]
    schema = kind.schema(provenance).with_metadata({"provenance": json.dumps(provenance)})
    try:
        with replacing(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for table in kind.tables(scores, provenance):
                writer.write_table(table.cast(schema))
    except OSError as error:
        reason = error.strerror or " ".join(str(error).split())
        raise InputError(f"{path} cannot be written: {reason}: mend that and run this shard again") from error


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
    with pq.ParquetFile(path) as file:
        yield from _score_parts(file, provenance)


def read_moments(path: Path) -> xr.Dataset:
    """The moments of a shard, or of its scores part by part; raises InputError for a damaged file."""
    provenance = read_provenance(path)
    try:
        with pq.ParquetFile(path) as file:
            return merged(KINDS[provenance["keep"]].moments(file, provenance), provenance)
    except (OSError, pa.lib.ArrowException) as error:
        raise InputError(f"{path} is damaged: delete it and run its shard again") from error


def merged(parts: Iterable[xr.Dataset], provenance: Provenance) -> xr.Dataset:
    """The moments of all parts together; without a part, those of no sequence."""
    shape = (0, len(provenance["roles"]), provenance["layers"], provenance["heads"])
    nothing = xr.DataArray(
        np.zeros(shape),
        dims=("sequence", "role", "layer", "head"),
        coords=_heads(provenance),
        attrs={"arithmetic": provenance["arithmetic"]},
    )
    return reduce(merge, parts, moments(nothing))


def _heads(provenance: Provenance) -> dict[str, Any]:
    return {
        "role": provenance["roles"],
        "layer": range(provenance["layers"]),
        "head": range(provenance["heads"]),
    }


def _score_schema(provenance: Provenance) -> pa.Schema:
    heads = pa.list_(pa.float32(), provenance["layers"] * provenance["heads"])
    columns = {
        "sequence": pa.string(),
        "tokens": pa.int32(),
        "separators": pa.int32(),
        "units": pa.list_(pa.int32(), len(provenance["roles"])),
    }
    return pa.schema(columns | dict.fromkeys(provenance["roles"], heads))


def _score_tables(scores: Iterable[xr.DataArray], provenance: Provenance) -> Iterator[pa.Table]:
    for part in scores:
        columns = {
            "sequence": pa.array(part["sequence"].values.tolist()),
            "tokens": pa.array(part["tokens"].values),
            "separators": pa.array(part["separators"].values),
            "units": _lists(part["units"].values),
        }
        yield pa.table(columns | {role: _lists(part.sel(role=role).values) for role in provenance["roles"]})


def _lists(values: np.ndarray) -> pa.FixedSizeListArray:
    """One list per row; further axes are written out in order."""
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values[0].size)


def _score_parts(file: pq.ParquetFile, provenance: Provenance) -> Iterator[xr.DataArray]:
    heads = (-1, provenance["layers"], provenance["heads"])
    for batch in file.iter_batches(batch_size=512):
        roles = [batch.column(role).flatten().to_numpy().reshape(heads) for role in provenance["roles"]]
        units = batch.column("units").flatten().to_numpy().reshape(len(batch), -1)
        yield xr.DataArray(
            np.stack(roles, axis=1),
            dims=("sequence", "role", "layer", "head"),
            coords={
                "sequence": batch.column("sequence").to_pylist(),
                **_heads(provenance),
                "tokens": ("sequence", batch.column("tokens").to_numpy()),
                "separators": ("sequence", batch.column("separators").to_numpy()),
                "units": (("sequence", "role"), units),
            },
            attrs={"arithmetic": provenance["arithmetic"], "max_tokens": provenance["max_tokens"]},
        )


def _moment_schema(provenance: Provenance) -> pa.Schema:
    names = {"role": pa.string(), "layer": pa.int32(), "head": pa.int32()}
    return pa.schema(names | {field: pa.int64() if field == "n" else pa.float64() for field in FIELDS})


def _moment_tables(scores: Iterable[xr.DataArray], provenance: Provenance) -> Iterator[pa.Table]:
    found = merged(map(moments, scores), provenance)
    frame = found.to_dataframe(dim_order=("role", "layer", "head")).reset_index()
    yield pa.Table.from_pandas(frame, preserve_index=False)


def _moment_parts(file: pq.ParquetFile, provenance: Provenance) -> Iterator[xr.Dataset]:
    shape = tuple(len(names) for names in _heads(provenance).values())
    columns = file.read()  # one row per role and head, however many sequences
    found = {field: (tuple(_heads(provenance)), columns[field].to_numpy().reshape(shape)) for field in FIELDS}
    yield xr.Dataset(found, _heads(provenance), {"arithmetic": provenance["arithmetic"]})


KINDS = {
    "scores": Kind(_score_schema, _score_tables, lambda file, run: map(moments, _score_parts(file, run))),
    "moments": Kind(_moment_schema, _moment_tables, _moment_parts),
}
