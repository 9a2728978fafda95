"""What scoring costs beside the bare forward pass of the same encoder, as ratios of medians from one run.

    python benchmarks/extraction.py [--device cuda] [--repeats 5] [--threads 2]

Every repetition runs all competitors in turn, so that a machine that slows down slows them alike; the first
repetition warms up and does not count. Results go to benchmarks/results/ and, as a table, to the screen.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from transformers import AutoModel, BertConfig

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from oracles import Oracle  # noqa: E402  (the loop implementation that the tests compare with)

from analysis.extraction import Scored, extract, read_attention, stack  # noqa: E402
from analysis.layout import batches, layouts  # noqa: E402
from analysis.models import Encoder, load_encoder, load_tokenizer  # noqa: E402
from analysis.sieves import resolve  # noqa: E402
from analysis.store import versions, write_text  # noqa: E402
from analysis.syntax import parse, token_pairs  # noqa: E402
from analysis.tap import tap  # noqa: E402
from analysis.tasks import load_examples  # noqa: E402

PUBLISHED = ["local", "cls", "sep", "delimiter", "block"]
SEQUENCES = {"minilm": 400, "bert-base": 64}


def load(name: str, device: str) -> Encoder:
    """MiniLM, or an encoder of BERT-base's size with random weights."""
    if name == "minilm":
        return load_encoder(name, device)
    torch.manual_seed(0)
    model = AutoModel.from_config(BertConfig()).eval().to(device)
    return Encoder(name, model, load_tokenizer("minilm"))


def medians(competitors: dict[str, Callable[[], object]], repeats: int, device: str) -> dict[str, float]:
    """Median seconds of each competitor."""
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(repeats + 1):
        for name, run in competitors.items():
            start = time.perf_counter()
            run()
            if device != "cpu":
                torch.cuda.synchronize()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values[1:]) for name, values in seconds.items()}


def throughput(name: str, repeats: int, device: str) -> dict[str, float]:
    """Sequences per second of the bare forward pass and of extraction, and what the stages cost."""
    encoder = load(name, device)
    examples = load_examples("mrpc", "bundled", "dev", SEQUENCES[name])
    relations = parse(examples)
    found = layouts(encoder.tokenizer, examples)
    plan = list(batches(found))
    inputs = [encoder.inputs([found[index] for index in batch]) for batch in plan]
    sequences = [Scored(layout, token_pairs(layout, relations[layout.id])) for layout in found]
    bank = resolve(None, {label for s in sequences for label in s.pairs}, "corrected")

    def forward() -> None:
        with torch.inference_mode():
            for batch in inputs:
                encoder.model(**batch)

    def tapped() -> None:
        with tap(encoder.model):
            forward()

    seconds = medians(
        {
            "bare forward pass (sdpa)": forward,
            "forward pass read by tap": tapped,
            "extract, published roles": lambda: extract(encoder, examples, roles=PUBLISHED, progress=False),
            "extract, whole bank": lambda: extract(encoder, examples, relations, progress=False),
            "tokenise": lambda: layouts(encoder.tokenizer, examples),
            "word pairs": lambda: [token_pairs(layout, relations[layout.id]) for layout in found],
            "build sieves": lambda: [stack([sequences[i] for i in b], bank, encoder.device) for b in plan],
        },
        repeats,
        device,
    )
    bare = seconds["bare forward pass (sdpa)"]
    rates = {f"{stage}, sequences/s": len(examples) / value for stage, value in seconds.items()}
    ratios = {f"{stage} / bare": bare / seconds[stage] for stage in seconds if stage.startswith("extract")}
    scores = extract(encoder, examples, relations, progress=False)
    padded = encoder.layers * encoder.heads * 128 * 128 * 4
    return {
        "sequences": len(examples),
        "tokens per sequence": float(scores.tokens.mean()),
        "sieves": scores.sizes["role"],
        **rates,
        **ratios,
        "maps / scores, bytes per sequence": padded / (scores.nbytes / len(examples)),
    }


def kernel(repeats: int) -> dict[str, float]:
    """The contraction of the five published roles against loops over tokens, on the maps of one sequence."""
    encoder = load("minilm", "cpu")
    example = load_examples("mrpc", "bundled", "dev", 1)[0]
    layout, maps = read_attention(encoder, example)
    contraction, _ = stack([Scored(layout, {})], resolve(PUBLISHED, set(), "corrected"))
    attention = [torch.from_numpy(layer)[None] for layer in maps]
    oracle = Oracle(layout.tokens, {})
    merged = maps.reshape(-1, *maps.shape[2:]).astype(np.float64)
    seconds = medians(
        {
            "loops": lambda: [oracle.scores(role, merged) for role in PUBLISHED],
            "contraction": lambda: [contraction(layer) for layer in attention],
        },
        repeats,
        "cpu",
    )
    return {"loops / contraction, seconds": seconds["loops"] / seconds["contraction"]}


def main() -> None:
    """Runs everything, prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results = {name: throughput(name, options.repeats, options.device) for name in SEQUENCES}
    results["kernel"] = kernel(options.repeats)
    about = {"machine": platform.machine(), "threads": options.threads, "versions": versions()}
    path = ROOT / "benchmarks" / "results" / f"extraction-{options.device}.json"
    write_text(path, json.dumps({**about, **results}, indent=2) + "\n")
    for name, values in results.items():
        for key, value in values.items():
            print(f"{name:10} {key:45} {value:12.2f}")


if __name__ == "__main__":
    main()
