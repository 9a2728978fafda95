"""Roles of heads on a corpus of any size, shard by shard: `python -m analysis.extract_corpus INPUT OUTPUT --shards N`.

Every shard is one file of moments in OUTPUT, written as a whole or not at all; finished shards are skipped. --shards N
makes all of them, one after the other or, with --engine ray, on a cluster; --shard i/N makes one; --merge makes
OUTPUT/roles.csv, the role table of all sequences. OUTPUT belongs to one run: run.json holds its encoder, parameters
and inputs, and other runs are refused.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from analysis.encoders.models import PRECISIONS, load_encoder
from analysis.errors import InputError, exit_status
from analysis.files import expand, suffix
from analysis.scale.loop import Settings, extract_shards, merge_shards
from analysis.statistics.roles import PUBLISHED_ROLES
from analysis.texts.corpora import GOLD, open_corpus


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
    parser.add_argument("--columns", nargs="+", default=["text"], help="the one or two texts of a row")
    parser.add_argument("--parser", help="gold or a spaCy pipeline; default gold for CoNLL-U, else none")
    parser.add_argument(
        "--roles", nargs="+", default=[*PUBLISHED_ROLES], help="default: the published ones; bank: all sieves"
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    options = _arguments(arguments)
    return exit_status(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    output = expand(options.output)
    if options.engine == "ray" and (options.merge or options.shard):
        raise InputError("--engine ray makes all shards: give --shards N alone, and merge them without it")
    if options.merge:
        print(merge_shards(output))
        return
    corpus = open_corpus(options.input, options.columns)
    for folder in (output, *output.parents):
        if folder.is_file():
            raise InputError(f"{folder} is a file: name a folder")
    if output.resolve().is_relative_to(expand(options.input).resolve()):
        raise InputError(f"{output} lies in the input: name a folder outside of {options.input}")
    if suffix(options.parser or "") == GOLD:  # the whole file would have to be in memory
        raise InputError(f"parser is {options.parser}: give the CoNLL-U file as INPUT, or a spaCy pipeline")
    first, shards = options.shard or (0, options.shards)
    corpus.examples(first, shards)  # raises for a shard out of range before the encoder is loaded
    parser = options.parser or ("gold" if corpus.gold else None)
    settings = Settings(shards, tuple(options.roles), options.arithmetic, options.max_tokens, parser)
    engine, device = None, options.device
    if options.engine == "ray":
        from analysis.scale.ray import on_cluster  # Ray is an optional extra

        if device.startswith("cuda:"):
            raise InputError(f"device is {device}: give cuda, since every actor has a GPU of its own")
        if options.actors_per_gpu < 1:
            raise InputError(f"actors per GPU is {options.actors_per_gpu}: give 1 or more")
        model = options.encoder, device, options.precision
        engine = partial(on_cluster, model, options.actors_per_gpu)
        device = "cpu"  # this computer may have no GPU
    encoder = load_encoder(options.encoder, device, options.precision)
    numbers = [first] if options.shard else range(shards)
    print(extract_shards(corpus, output, encoder, settings, numbers, engine, options.budget))


if __name__ == "__main__":
    sys.exit(main())
