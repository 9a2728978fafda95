"""The shards of a corpus: each scored into one file, whole or not at all, and merged into one role table."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from tqdm import tqdm

from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.files import versions, write_text
from analysis.scale.shards import merged, read_moments, read_provenance, write_shard
from analysis.scores.extraction import extract
from analysis.scores.sieves import resolve
from analysis.statistics.moments import moments_table
from analysis.statistics.roles import PUBLISHED_ROLES
from analysis.statistics.significance import Rule
from analysis.texts.corpora import Corpus, chunks
from analysis.texts.syntax import UNIVERSAL, parse

BANK = "bank"
CHUNK = 256  # sequences that are in memory together


@dataclass(frozen=True)
class Settings:
    """What the scores of a run depend on besides the encoder and the inputs.

    `roles` names sieves or relations; "bank" names all elementary sieves and all relations of Universal Dependencies.
    `parser` is "gold", a spaCy pipeline, or None (no relations); `keep` is "scores" or "moments".
    """

    shards: int = 1
    roles: tuple[str, ...] = PUBLISHED_ROLES
    arithmetic: str = "corrected"
    max_tokens: int = 128
    parser: str | None = None
    keep: str = "scores"

    @property
    def named(self) -> list[str]:
        """The names of the roles, which do not depend on the data; raises InputError for an unknown one."""
        roles = None if self.roles == (BANK,) else self.roles
        return list(resolve(roles, set(UNIVERSAL), self.arithmetic))


def extract_shard(
    corpus: Corpus,
    output: Path,
    encoder: Encoder,
    settings: Settings,
    shard: int,
    budget: int = 2048,
    progress: bool = True,
) -> Path:
    """Writes one shard (0-based) of a run unless its file is there already; returns the file's path.

    All rows are read before the first is scored, so that a bad row costs little time. A process that is killed leaves
    no file under that name. Raises InputError for bad input, a shard out of range, an output folder of another run and
    a full disk.
    """
    examples = corpus.examples(shard, settings.shards)
    run = identity(corpus, encoder, settings)
    check_output(output, run)
    path = shard_path(output, shard, settings.shards)
    if is_finished(path):
        return path
    total = sum(1 for _ in examples)
    write_run(output, run)
    remove_unfinished(path)
    options = {"arithmetic": settings.arithmetic, "max_tokens": settings.max_tokens, "budget": budget}

    def scores(bar: tqdm) -> Iterator[xr.DataArray]:
        for part in chunks(corpus.examples(shard, settings.shards), CHUNK):
            # Without a parser there are no relations: the roles of relations are absent, but every shard has them.
            without = {example.id: () for example in part}
            relations = parse(part, settings.parser) if settings.parser else without
            yield extract(encoder, part, relations, run["roles"], progress=False, **options)
            bar.update(len(part))

    provenance = run | {"shard": shard, "device": encoder.provenance["device"], "versions": versions()}
    with tqdm(total=total, desc="attention", unit="sequence", disable=not progress) as bar:
        write_shard(path, scores(bar), provenance)
    return path


def merge_shards(output: Path, tau: float | int = 3.0) -> Path:
    """Writes the role table of all shards (see `moments_table`) as OUTPUT/roles.csv; returns its path.

    Raises InputError naming the shards that are missing, damaged, or of another run.
    """
    run = read_run(output)
    paths = [shard_path(output, shard, run["shards"]) for shard in range(run["shards"])]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        raise InputError(f"{output} lacks {', '.join(missing)}: run these shards first")
    for path in paths:
        _check_same(path, read_provenance(path), run)
    table = moments_table(merged(map(read_moments, paths), run), Rule(tau))
    write_text(output / "roles.csv", table.to_csv(index=False, lineterminator="\n"))
    return output / "roles.csv"


def shard_path(output: Path, shard: int, shards: int) -> Path:
    """The file of one shard."""
    return output / f"shard-{shard:05d}-of-{shards:05d}.parquet"


def is_finished(path: Path) -> bool:
    """Whether the file of a shard is there; raises InputError if it is damaged."""
    return path.exists() and bool(read_provenance(path))


def remove_unfinished(path: Path) -> None:
    """Removes the unfinished file of a shard that a killed process left."""
    for unfinished in path.parent.glob(f".{path.stem}-*"):
        unfinished.unlink(missing_ok=True)


def identity(corpus: Corpus, encoder: Encoder, settings: Settings) -> dict[str, Any]:
    """What identifies a run: encoder, parameters, and the names and sizes (bytes) of its inputs."""
    weights = {name: value for name, value in encoder.provenance.items() if name != "device"}
    heads = {"layers": encoder.layers, "heads": encoder.heads, "roles": settings.named}
    return weights | asdict(settings) | heads | {"columns": [*corpus.columns], "inputs": corpus.sizes}


def check_output(output: Path, run: dict[str, Any]) -> None:
    """Raises InputError if the output folder belongs to another run."""
    path = output / "run.json"
    if path.exists():
        _check_same(path, read_run(output), run)
    elif any(output.glob("shard-*.parquet")):
        raise InputError(f"{output} holds shards but no run.json: name another folder")


def write_run(output: Path, run: dict[str, Any]) -> None:
    """Records in the output folder which run it belongs to; raises InputError if that cannot be written."""
    if not (output / "run.json").exists():
        write_text(output / "run.json", json.dumps(run, indent=1) + "\n")


def read_run(output: Path) -> dict[str, Any]:
    """The run an output folder belongs to; raises InputError if none is recorded."""
    path = output / "run.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is missing or damaged: run a shard into a new folder") from error


def _check_same(path: Path, recorded: dict[str, Any], run: dict[str, Any]) -> None:
    for name, value in run.items():
        if name not in recorded or recorded[name] != value:
            difference = f"{name} is {recorded.get(name)!s:.60}, here {value!s:.60}"
            raise InputError(f"{path} is of another run: {difference}: name another folder")
