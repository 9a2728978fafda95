"""The cost of scoring compared with the forward pass of the same encoder alone, as ratios of medians from one run.

    python benchmarks/extraction.py [--device cuda] [--repeats 5] [--threads 2] [--agreement 1000]

Competitors take turns (see `timing`). `minilm` is all-MiniLM-L6-v2, `bert-base` an encoder of BERT-base's size with
random weights; both read the bundled paraphrase pairs, joined to 128 tokens on a GPU. Results go to
benchmarks/results/ and, as a table, to the screen.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from transformers import AutoModel, BertConfig

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from oracles import Oracle

from analysis.encoders.layout import Layout, batches, layouts, token_pairs
from analysis.encoders.models import Encoder, load_encoder, load_tokenizer
from analysis.encoders.tap import (
    read_layers,
    tap,
)
from analysis.scores import extraction
from analysis.scores.extraction import Scored, extract, stack
from analysis.scores.sieves import resolve
from analysis.statistics.roles import ROLES
from analysis.statistics.significance import published_table
from analysis.study.results import Results
from analysis.texts.examples import Example, Relation
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse
from benchmarks.timing import Values, medians, report, speeds

PUBLISHED = ["local", "cls", "sep", "delimiter", "block"]
SEQUENCES = {"minilm": 400, "bert-base": 64}
PADDED = 128  # tokens of the maps to whose size the scores are compared
BARE = "bare forward pass (sdpa)"


def load(name: str, device: str, precision: str = "float32") -> Encoder:
    """MiniLM, or an encoder of BERT-base's size with random weights."""
    if name == "minilm":
        return load_encoder(name, device, precision)
    torch.manual_seed(0)
    model = AutoModel.from_config(BertConfig()).eval().to(device)
    return Encoder(name, model, load_tokenizer("minilm"), precision)


def sequences(name: str, device: str) -> list[Example]:
    """Paraphrase pairs; on a GPU there are more, and they are longer."""
    if device == "cpu":
        return load_examples("toy-mrpc", split="dev", n=SEQUENCES[name])
    return [replace(long, id=f"{long.id}-{copy}") for long in long_sequences(name) for copy in range(8)]


def long_sequences(name: str) -> list[Example]:
    """Pairs of texts of more than 128 tokens, made of the words of several pairs; extraction truncates them."""
    texts = [
        text for pair in load_examples("toy-mrpc", split="dev", n=SEQUENCES[name]) for text in pair.texts
    ]
    joined = [" ".join(texts[start : start + 5]) for start in range(len(texts))]
    return [Example(f"{name}-{number}", text, text) for number, text in enumerate(joined)]


def throughput(name: str, repeats: int, device: str) -> Values:
    """Sequences per second of the forward pass alone and of extraction, and the cost of the stages."""
    encoder, half = load(name, device), load(name, device, "bfloat16")
    examples = sequences(name, device)
    budget = 2048 if device == "cpu" else 32768
    relations = parse(examples) if device == "cpu" else None
    found = layouts(encoder.tokenizer, examples)
    plan = list(batches(found, budget))
    inputs = [encoder.inputs([found[index] for index in batch]) for batch in plan]

    def related(layout: Layout) -> Sequence[Relation]:
        return relations[layout.id] if relations else ()

    scored = [Scored(layout, token_pairs(layout, related(layout))) for layout in found]
    bank = resolve(None, {label for s in scored for label in s.pairs}, "corrected")

    def forward(encoder: Encoder = encoder) -> None:
        with torch.no_grad(), encoder.autocast():  # cast weights are kept over all batches
            for batch in inputs:
                encoder.model(**batch)

    def tapped() -> None:
        with tap(encoder.model):
            forward()

    def attention_alone() -> None:
        for batch in plan:
            read_layers(encoder, [found[index] for index in batch], lambda *_: None)

    contractions = [stack([scored[index] for index in batch], bank, encoder.device)[0] for batch in plan]

    def contracted() -> None:
        for batch, contraction in zip(plan, contractions, strict=True):
            read_layers(
                encoder, [found[index] for index in batch], lambda _, maps, own=contraction: own(maps)
            )

    def extraction(encoder: Encoder, roles: list[str] | None = None) -> object:
        return extract(encoder, examples, relations, roles, budget=budget, progress=False)

    scoring = {
        "extract, published roles": lambda: extraction(encoder, PUBLISHED),
        "extract, whole bank": lambda: extraction(encoder),
        "extract, whole bank, bfloat16": lambda: extraction(half),
    }
    finish = torch.cuda.synchronize if device != "cpu" else lambda: None
    ratios = speeds(forward, scoring, repeats, finish)
    seconds = medians(
        {
            BARE: forward,
            "bare forward pass, bfloat16": lambda: forward(half),
            "forward pass read by tap": tapped,
            "forward pass up to the last attention": attention_alone,
            "the same, contracted with the whole bank": contracted,
            **scoring,
            "tokenise": lambda: layouts(encoder.tokenizer, examples),
            "find word pairs": lambda: [token_pairs(layout, related(layout)) for layout in found],
            "build sieves": lambda: [stack([scored[i] for i in b], bank, encoder.device) for b in plan],
        },
        repeats,
        finish,
    )
    whole, published = extraction(encoder), extraction(encoder, [*ROLES] if relations else PUBLISHED)
    maps = encoder.layers * encoder.heads * PADDED * PADDED * 4
    return {
        "sequences": len(examples),
        "tokens per sequence": float(whole.tokens.mean()),
        "sieves": whole.sizes["role"],
        **{f"{stage}, sequences/s": len(examples) / value for stage, value in seconds.items()},
        **{f"{stage} / bare, throughput": value for stage, value in ratios.items()},
        "padded maps / scores of the bank, bytes": maps / (whole.nbytes / len(examples)),
        "padded maps / scores of the published roles, bytes": maps / (published.nbytes / len(examples)),
    }


def agreement(count: int) -> Values:
    """Labels of the published roles that change with bfloat16, and how far these heads are from the threshold."""
    examples = [
        e for task in ("toy-mrpc", "toy-qnli") for e in load_examples(task, split="dev", n=count // 2)
    ]
    relations = parse(examples)
    full, half = (
        published_table(extract(load("minilm", "cpu", precision), examples, relations, [*ROLES]))
        for precision in ("float32", "bfloat16")
    )
    changed = full[(full["assigned"] != half["assigned"]).fillna(False)]
    margins = {
        f"changed: {role}, layer {layer}, head {head}: mean - tau": mean - 3.0
        for role, layer, head, mean in changed[["role", "layer", "head", "mean"]].itertuples(index=False)
    }
    return {
        "sequences": len(examples),
        "labels": len(full),
        "equal labels, proportion": 1 - len(changed) / len(full),
        "largest difference of a mean score": float((full["mean"] - half["mean"]).abs().max()),
        **margins,
    }


def contracted(examples: Sequence[Example], repeats: int, budget: int = 2048, passes: int = 100) -> Values:
    """The contraction of the five published roles compared with loops over tokens, on the maps of one batch.

    A pass of the contraction takes a millisecond or two, which is too short to time alone. So each round runs several
    passes over every layer; its maps are in the cache, as they are right after the encoder has computed them.
    """
    encoder = load("minilm", "cpu")
    found = layouts(encoder.tokenizer, examples)
    plan = list(batches(found, budget))
    batch = [found[index] for index in plan[len(plan) // 2]]
    maps: list[torch.Tensor] = []
    read_layers(encoder, batch, lambda _, attention: maps.append(attention))
    contraction, _ = stack([Scored(layout, {}) for layout in batch], resolve(PUBLISHED, set(), "corrected"))

    plain = [  # the maps of each sequence without padding
        (
            Oracle(layout.tokens, {}),
            torch.stack(maps, 1)[i, ..., : len(layout), : len(layout)].double().numpy(),
        )
        for i, layout in enumerate(batch)
    ]

    def loops() -> None:
        for oracle, own in plain:
            for role in PUBLISHED:
                oracle.scores(role, own)

    ratios = speeds(
        loops,
        {
            "contraction": lambda: [contraction(layer) for layer in maps for _ in range(passes)],
        },
        repeats,
    )
    return {
        "sequences": len(batch),
        "tokens per sequence": float(np.mean([len(layout) for layout in batch])),
        **{f"loops / {name}, seconds": passes * ratio for name, ratio in ratios.items()},
    }


def pipeline(repeats: int) -> Values:
    """The share of time that 01_extract spends outside the model, with the parses in the cache.

    Outside the model is everything except the forward passes and the contraction in them. `files` reads MRPC and parses
    by spaCy if DATA_DIR and PARSER are set; `toy` reads toy-mrpc with its gold relations.
    """
    sources = {"toy": ("toy-mrpc", None, "gold")}
    if {"DATA_DIR", "PARSER"} <= {*os.environ}:
        sources["files"] = ("mrpc", str(Path(os.environ["DATA_DIR"]) / "glue"), os.environ["PARSER"])
    encoder = load("minilm", "cpu")
    found: Values = {}
    for name, (task, source, parser) in sources.items():
        with tempfile.TemporaryDirectory() as work:
            results = Results("benchmark")
            results.cache = Path(work)
            shares = [_outside(encoder, task, source, parser, results) for _ in range(repeats + 1)]
        found[f"{name}: outside of the model, proportion"] = statistics.median(shares[1:])
    return found


def _outside(encoder: Encoder, task: str, source: str | None, parser: str, results: Results) -> float:
    """The share of time in one run of the pipeline that is not spent in `score_batch`."""
    inside = 0.0
    score_batch = extraction.score_batch

    def timed(*arguments, **options):
        nonlocal inside
        start = time.perf_counter()
        scores = score_batch(*arguments, **options)
        inside += time.perf_counter() - start
        return scores

    with mock.patch.object(extraction, "score_batch", timed):
        start = time.perf_counter()
        examples = load_examples(task, source, "dev", SEQUENCES["minilm"])
        relations = parse(examples, parser, cache=results.cache / "parses")
        results.save_scores(extract(encoder, examples, relations, progress=False), "mrpc", None)
        return 1 - inside / (time.perf_counter() - start)


def main() -> None:
    """Runs everything, prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--agreement", type=int, default=1000, help="sequences for testing bfloat16")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results = {name: throughput(name, options.repeats, options.device) for name in SEQUENCES}
    if options.device == "cpu":
        results |= {
            "bfloat16": agreement(options.agreement),
            "contraction": contracted(sequences("minilm", "cpu"), options.repeats),
            "contraction, long sequences": contracted(long_sequences("minilm"), options.repeats),
            "pipeline": pipeline(options.repeats),
        }
    report(f"extraction-{options.device}", {"threads": options.threads}, results)


if __name__ == "__main__":
    main()
