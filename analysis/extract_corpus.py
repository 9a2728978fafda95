"""Scores of a corpus of any size, shard by shard: `python -m analysis.extract_corpus INPUT OUTPUT --shards N`.

Every shard writes one Parquet file into OUTPUT, whole or not at all, and is skipped where that file stands. --shards N
makes all of them, one after the other or, with --engine ray, on a cluster; --shard i/N makes one; --merge makes
OUTPUT/roles.csv, the role table of all sequences. OUTPUT belongs to one run: run.json holds its encoder, parameters
and inputs, and any other run is refused.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from tqdm import tqdm

from .corpora import GOLD, Corpus, chunks, open_corpus
from .errors import InputError, exit_status
from .examples import Example
from .extraction import extract
from .models import PRECISIONS, Encoder, load_encoder
from .moments import moments_table
from .roles import ROLES
from .shards import merged, read_moments, read_provenance, write_shard
from .sieves import resolve
from .store import expand, versions, write_text
from .syntax import UNIVERSAL, Relations, parse

Part = tuple[list[Example], Relations | None]  # sequences that are in memory together, and their relations

BANK = "bank"
CHUNK = 256  # sequences of a part


@dataclass(frozen=True)
class Settings:
    """What the scores of a run depend on besides the encoder and the inputs.

    `roles` names sieves or relations, "bank" all elementary sieves and the relations of Universal Dependencies;
    `parser` is "gold", a spaCy pipeline, or None (no relations); `keep` is "scores" or "moments".
    """

    shards: int = 1
    roles: tuple[str, ...] = ROLES
    arithmetic: str = "corrected"
    max_tokens: int = 128
    parser: str | None = None
    keep: str = "scores"

    @property
    def named(self) -> list[str]:
        """The roles one by one, the same whatever relations the data show; raises InputError if unknown."""
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

    All its rows are read once before the first is scored, so that a bad one costs no time. A killed shard
    leaves nothing under that name. Raises InputError for bad input, a shard out of range, an output folder of
    another run and a full disk.
    """
    examples = corpus.examples(shard, settings.shards)
    run = identity(corpus, encoder, settings)
    check_output(output, run)
    path = shard_path(output, shard, settings.shards)
    if path.exists():
        read_provenance(path)
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
    """Scores the parts of a shard into its file; `total` sequences show a progress bar.

    Raises InputError as `extract` and `write_shard` do.
    """
    remove_unfinished(path)
    about = about | {"device": encoder.provenance["device"], "versions": versions()}
    with closing(
        _scores(parts, encoder, settings, budget, total)
    ) as scores:  # its bar ends before an error shows
        write_shard(path, scores, about)


def parsed(examples: Iterator[Example], parser: str | None) -> Iterator[Part]:
    """The examples in parts of CHUNK, with their relations where a parser is named (see `parse`)."""
    for chunk in chunks(examples, CHUNK):
        yield chunk, None if parser is None else parse(chunk, parser)


def remove_unfinished(path: Path) -> None:
    """Removes what a killed process left of a shard's file."""
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


def identity(corpus: Corpus, encoder: Encoder, settings: Settings) -> dict[str, Any]:
    """What makes a run that run: encoder, parameters, and the names and sizes (bytes) of its inputs."""
    about = {name: value for name, value in encoder.provenance.items() if name != "device"}
    heads = {"layers": encoder.layers, "heads": encoder.heads, "roles": settings.named}
    inputs = {"columns": [*corpus.columns], "inputs": corpus.sizes}
    return about | asdict(settings) | heads | inputs


def check_output(output: Path, run: dict[str, Any]) -> None:
    """Raises InputError where the output folder belongs to another run."""
    path = output / "run.json"
    if path.exists():
        _same(path, read_run(output), run)
    elif any(output.glob("shard-*.parquet")):
        raise InputError(f"{output} holds shards but no run.json: name another folder")


def claim(output: Path, run: dict[str, Any]) -> None:
    """Records in the output folder which run it belongs to; raises InputError where that cannot be written."""
    path = output / "run.json"
    if path.exists():
        return
    try:
        write_text(path, json.dumps(run, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}: name another folder") from error


def read_run(output: Path) -> dict[str, Any]:
    """The run an output folder belongs to; raises InputError where that is not recorded."""
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
    options = settings.named, settings.arithmetic, settings.max_tokens, budget
    with tqdm(total=total, desc="attention", unit="sequence", disable=total is None) as bar:
        for examples, relations in parts:
            yield extract(encoder, examples, relations, *options, progress=False)
            bar.update(len(examples))


def _shard(text: str) -> tuple[int, int]:
    try:
        shard, shards = (int(part) for part in text.split("/"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not i/N, such as 0/16") from None
    return shard, shards


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m analysis.extract_corpus", description=__doc__.splitlines()[0]
    )
    parser.add_argument("input", help="a .txt, .jsonl, .parquet or .conllu file, or a folder of them")
    parser.add_argument("output", help="the folder for the shards of this run")
    parser.add_argument("--encoder", default="minilm", help="minilm, tiny, a checkpoint folder or a Hub id")
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--shards", type=int, default=1, metavar="N", help="all shards of N; default 1")
    task.add_argument("--shard", type=_shard, metavar="i/N", help="one of them, 0-based")
    task.add_argument("--merge", action="store_true", help="the role table of all shards, OUTPUT/roles.csv")
    parser.add_argument(
        "--engine", default="loop", choices=("loop", "ray"), help="ray: all shards on a cluster"
    )
    parser.add_argument("--moments", action="store_true", help="keep the moments alone, not the scores")
    parser.add_argument("--columns", nargs="+", default=["text"], help="the one or two texts of a row")
    parser.add_argument("--parser", help="gold or a spaCy pipeline; default gold for CoNLL-U, else none")
    parser.add_argument(
        "--roles", nargs="+", default=[*ROLES], help="default: the published ones; bank: all sieves"
    )
    parser.add_argument("--arithmetic", default="corrected", choices=("corrected", "published"))
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", choices=PRECISIONS)
    parser.add_argument("--budget", type=int, default=2048, help="padded tokens of a batch")
    parser.add_argument(
        "--actors-per-gpu", type=int, default=1, help="with --engine ray; they share its memory"
    )
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> None:
    corpus, output = open_corpus(options.input, options.columns), expand(options.output)
    if output.exists() and not output.is_dir():
        raise InputError(f"{output} is a file: name a folder")
    if output.resolve().is_relative_to(expand(options.input).resolve()):
        raise InputError(f"{output} lies in the input: name a folder outside of {options.input}")
    if str(options.parser).endswith(GOLD):  # it would have to be in memory whole
        raise InputError(f"parser is {options.parser}: give the CoNLL-U file as INPUT, or a spaCy pipeline")
    if options.engine == "ray" and (options.merge or options.shard):
        raise InputError("--engine ray makes all shards: give --shards N alone, and merge them without it")
    first, shards = options.shard or (0, read_run(output)["shards"] if options.merge else options.shards)
    corpus.examples(first, shards)  # a shard out of range shows before the encoder is loaded
    settings = Settings(
        shards,
        tuple(options.roles),
        options.arithmetic,
        options.max_tokens,
        options.parser or ("gold" if corpus.gold else None),
        "moments" if options.moments else "scores",
    )
    if options.engine == "ray":
        from .ray_engine import extract_shards  # Ray is an optional extra

        model = options.encoder, options.device, options.precision
        print(extract_shards(corpus, output, model, settings, options.budget, options.actors_per_gpu))
        return
    encoder = load_encoder(options.encoder, options.device, options.precision)
    if options.merge:
        check_output(output, identity(corpus, encoder, settings))
        print(merge_shards(output))
        return
    for shard in [first] if options.shard else range(shards):
        print(extract_shard(corpus, output, encoder, settings, shard, options.budget))


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    options = _arguments(arguments)
    return exit_status(lambda: _run(options))


if __name__ == "__main__":
    # What Slurm sends at the time limit: end as after an error, so that no unfinished file stays.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
