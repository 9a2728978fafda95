"""The shards of a corpus one after the other: each scored into one file, whole or not at all, and merged."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
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
from analysis.texts.corpora import Corpus, chunks
from analysis.texts.examples import Example
from analysis.texts.syntax import UNIVERSAL, Relations, parse

Part = tuple[list[Example], Relations | None]  # sequences that are in memory together, and their relations
BANK = "bank"
CHUNK = 256  # sequences of a part


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
    claim(output, run)
    parts = parsed(corpus.examples(shard, settings.shards), settings.parser)
    write_scores(path, parts, encoder, settings, run | {"shard": shard}, budget, total if progress else None)
    return path


def write_scores(
    path: Path,
    parts: Iterable[Part],
    encoder: Encoder,
    settings: Settings,
    about: dict[str, Any],
    budget: int,
    total: int | None = None,
) -> None:
    """Scores the parts of a shard into its file; with `total` sequences given, a progress bar shows.

    Raises InputError as `extract` and `write_shard` do, and for a file that cannot be read.
    """
    remove_unfinished(path)
    about = about | {"device": encoder.provenance["device"], "versions": versions()}
    # Closing ends the progress bar before an error is printed.
    with closing(_scores(parts, encoder, settings, budget, total)) as scores:
        write_shard(path, scores, about)


def parsed(examples: Iterator[Example], parser: str | None) -> Iterator[Part]:
    """The examples in parts of CHUNK, with their relations if a parser is named (see `parse`)."""
    for chunk in chunks(examples, CHUNK):
        yield chunk, None if parser is None else parse(chunk, parser)


def remove_unfinished(path: Path) -> None:
    """Removes the unfinished file of a shard that a killed process left."""
    for unfinished in path.parent.glob(f".{path.stem}-*"):
        unfinished.unlink(missing_ok=True)


def merge_shards(output: Path, tau: float | int = 3.0, alpha: float = 0.05, minimum: int = 2) -> Path:
    """Writes the role table of all shards (see `moments_table`) as OUTPUT/roles.csv; returns its path.

    Raises InputError naming the shards that are missing, damaged, or of another run.
    """
    run = read_run(output)
    paths = [shard_path(output, shard, run["shards"]) for shard in range(run["shards"])]
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        raise InputError(f"{output} lacks {', '.join(missing)}: run these shards first")
    for path in paths:
        _same(path, read_provenance(path), run)
    table = moments_table(merged(map(read_moments, paths), run), tau, alpha, minimum)
    target = output / "roles.csv"
    write_text(target, table.to_csv(index=False, lineterminator="\n"))
    return target


def shard_path(output: Path, shard: int, shards: int) -> Path:
    """The file of one shard."""
    return output / f"shard-{shard:05d}-of-{shards:05d}.parquet"


def is_finished(path: Path) -> bool:
    """Whether the file of a shard is there; raises InputError if it is damaged."""
    return path.exists() and bool(read_provenance(path))


def identity(corpus: Corpus, encoder: Encoder, settings: Settings) -> dict[str, Any]:
    """What identifies a run: encoder, parameters, and the names and sizes (bytes) of its inputs."""
    about = {name: value for name, value in encoder.provenance.items() if name != "device"}
    heads = {"layers": encoder.layers, "heads": encoder.heads, "roles": settings.named}
    inputs = {"columns": [*corpus.columns], "inputs": corpus.sizes}
    return about | asdict(settings) | heads | inputs


def check_output(output: Path, run: dict[str, Any]) -> None:
    """Raises InputError if the output folder belongs to another run."""
    path = output / "run.json"
    if path.exists():
        _same(path, read_run(output), run)
    elif any(output.glob("shard-*.parquet")):
        raise InputError(f"{output} holds shards but no run.json: name another folder")


def claim(output: Path, run: dict[str, Any]) -> None:
    """Records in the output folder which run it belongs to; raises InputError if that cannot be written."""
    path = output / "run.json"
    if path.exists():
        return
    try:
        write_text(path, json.dumps(run, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}: name another folder") from error


def read_run(output: Path) -> dict[str, Any]:
    """The run an output folder belongs to; raises InputError if none is recorded."""
    path = output / "run.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is missing or damaged: run a shard into a new folder") from error


def _same(path: Path, found: dict[str, Any], run: dict[str, Any]) -> None:
    for name, value in run.items():
        if name not in found or found[name] != value:
            there, here = (_shown(part) for part in (found.get(name), value))
            raise InputError(f"{path} is of another run: {name} is {there}, here {here}: name another folder")


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _scores(
    parts: Iterable[Part], encoder: Encoder, settings: Settings, budget: int, total: int | None
) -> Iterator[xr.DataArray]:
    reading = {"arithmetic": settings.arithmetic, "max_tokens": settings.max_tokens, "budget": budget}
    roles = settings.named
    with tqdm(total=total, desc="attention", unit="sequence", disable=total is None) as bar:
        try:
            for examples, relations in parts:
                # Without a parser there are no relations: the roles of relations are absent, but every shard has them.
                known = {each.id: () for each in examples} if relations is None else relations
                yield extract(encoder, examples, known, roles, progress=False, **reading)
                bar.update(len(examples))
        except OSError as error:  # of reading; errors of writing do not pass here
            reason = error.strerror or " ".join(str(error).split())
            name = f"{error.filename}: " if error.filename else ""
            raise InputError(
                f"the shard cannot be scored: {name}{reason}: mend that and run this shard again"
            ) from error
