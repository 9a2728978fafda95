"""The loop over the shards of a corpus: each becomes a file of moments, and together they give one role table."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from analysis.control_scores import DIMENSIONS
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.files import replacing, versions, write_text
from analysis.scores.extraction import extract
from analysis.scores.sieves import resolve
from analysis.statistics.moments import merge, moments, moments_table
from analysis.statistics.roles import PUBLISHED_ROLES
from analysis.texts.corpora import Corpus, chunks
from analysis.texts.examples import UNIVERSAL
from analysis.texts.syntax import parse

BANK = "bank"
CHUNK = 256  # sequences that are in memory together
PROVENANCE = "provenance"  # the variable of a shard's file that holds it, as JSON
Score = Callable[[Encoder, int], Iterable[int]]  # `score_shard` for a run
Engine = Callable[[Score, Sequence[int]], Iterable[int]]


@dataclass(frozen=True)
class Settings:
    """The parameters on which the moments of a run depend, besides the encoder and the inputs.

    `roles` names sieves or relations; "bank" names all elementary sieves and all relations of Universal Dependencies.
    `parser` is "gold", a spaCy pipeline, or None (no relations).
    """

    shards: int = 1
    roles: tuple[str, ...] = PUBLISHED_ROLES
    arithmetic: str = "corrected"
    max_tokens: int = 128
    parser: str | None = None

    @property
    def named(self) -> list[str]:
        """The names of the roles, which do not depend on the data; raises InputError for an unknown one."""
        roles = None if self.roles == (BANK,) else self.roles
        return list(resolve(roles, set(UNIVERSAL), self.arithmetic))


def extract_shards(
    corpus: Corpus,
    output: Path,
    encoder: Encoder,
    settings: Settings,
    shards: Iterable[int],
    engine: Engine | None = None,
    budget: int = 2048,
) -> Path:
    """Writes those of the shards (0-based) that are not there yet; returns the output folder.

    All rows are read before the first is scored, so that a bad row costs little time. `engine` writes the shards in
    other processes and yields numbers of sequences, as `score_shard` does. Raises InputError for bad input, a shard out
    of range, an output folder of another run and a full disk.
    """
    run = identity(corpus, encoder, settings)
    if (output / "run.json").exists():
        _check_same(output / "run.json", read_run(output), run)
    missing = [shard for shard in shards if not shard_path(output, shard, settings.shards).exists()]
    total = sum(1 for shard in missing for _ in corpus.examples(shard, settings.shards))
    write_text(output / "run.json", json.dumps(run, indent=1) + "\n")
    score = partial(score_shard, corpus, output, settings, budget)
    here = chain.from_iterable(score(encoder, shard) for shard in missing)
    with tqdm(total=total, desc="attention", unit="sequence") as bar:
        for count in engine(score, missing) if engine and missing else here:
            bar.update(count)
    return output


def score_shard(
    corpus: Corpus, output: Path, settings: Settings, budget: int, encoder: Encoder, shard: int
) -> Iterator[int]:
    """Writes the moments of one shard, whole or not at all; yields the number of sequences of each part it scores."""
    run = identity(corpus, encoder, settings)
    options = {"arithmetic": settings.arithmetic, "max_tokens": settings.max_tokens, "budget": budget}
    total = no_moments(run)
    for part in chunks(corpus.examples(shard, settings.shards), CHUNK):
        # Without a parser there are no relations: their roles have no score, but every shard has these roles.
        relations = parse(part, settings.parser) if settings.parser else {example.id: () for example in part}
        scores = extract(encoder, part, relations, run["roles"], progress=False, **options)
        total = merge(total, moments(scores))
        yield len(part)
    provenance = run | {"shard": shard, "device": encoder.provenance["device"], "versions": versions()}
    with replacing(shard_path(output, shard, settings.shards)) as temporary:
        # As bytes from memory, since HDF5 crashes when the disk is full.
        temporary.write_bytes(total.assign({PROVENANCE: json.dumps(provenance)}).to_netcdf(engine="h5netcdf"))


def merge_shards(output: Path) -> Path:
    """Writes the role table of all shards (see `moments_table`) as OUTPUT/roles.csv; returns its path.

    Raises InputError naming the shards that are missing, damaged, or of another run.
    """
    run = read_run(output)
    paths = [shard_path(output, shard, run["shards"]) for shard in range(run["shards"])]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        raise InputError(f"{output} lacks {', '.join(missing)}: run these shards first")
    table = moments_table(reduce(merge, (read_shard(path, run) for path in paths)))
    write_text(output / "roles.csv", table.to_csv(index=False, lineterminator="\n"))
    return output / "roles.csv"


def read_shard(path: Path, run: Mapping[str, Any] = {}) -> xr.Dataset:
    """The moments of a shard; raises InputError for a damaged file, and for one of another run than `run`."""
    try:
        shard = xr.load_dataset(path, engine="h5netcdf")
        provenance = json.loads(shard[PROVENANCE].item())
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"{path} is damaged or no shard: delete it and run its shard again") from error
    _check_same(path, provenance, run)
    return shard.drop_vars(PROVENANCE)


def shard_path(output: Path, shard: int, shards: int) -> Path:
    """The file of one shard."""
    return output / f"shard-{shard:05d}-of-{shards:05d}.nc"


def no_moments(run: Mapping[str, Any]) -> xr.Dataset:
    """The moments of no sequence."""
    names = {"role": run["roles"], "layer": range(run["layers"]), "head": range(run["heads"])}
    no_scores = np.empty((0, *map(len, names.values())))
    return moments(xr.DataArray(no_scores, names, DIMENSIONS, attrs={"arithmetic": run["arithmetic"]}))


def identity(corpus: Corpus, encoder: Encoder, settings: Settings) -> dict[str, Any]:
    """The encoder, the parameters, and the names and sizes (bytes) of the inputs, which identify a run."""
    weights = {name: value for name, value in encoder.provenance.items() if name != "device"}
    heads = {"layers": encoder.layers, "heads": encoder.heads, "roles": settings.named}
    return weights | asdict(settings) | heads | {"columns": [*corpus.columns], "inputs": corpus.sizes}


def read_run(output: Path) -> dict[str, Any]:
    """The run an output folder belongs to; raises InputError if none is recorded."""
    path = output / "run.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is missing or damaged: run a shard into a new folder") from error


def _check_same(path: Path, recorded: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    for name, value in run.items():
        if name not in recorded or recorded[name] != value:
            difference = f"{name} is {recorded.get(name)!s:.60}, here {value!s:.60}"
            raise InputError(f"{path} is of another run: {difference}: name another folder")
