"""MPNet beside MiniLM: CPU seconds of reading, ablation, edits and training, and what reading costs beside a bare pass.

    python benchmarks/encoders.py [--repeats 5] [--pairs 16]

One thread, CPU time. Of `extract`, the median over rounds of the ratio to a forward pass of the same encoder alone that
runs right before it. Memory is how far the largest resident set grows in one pass, each in its own process (Linux).
"""

import argparse
import multiprocessing
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import PreTrainedModel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analysis.encoders.classifiers import trainable_classifier
from analysis.encoders.interventions import predict, sets, single_heads
from analysis.encoders.layout import batches, layouts
from analysis.encoders.models import Encoder, load_encoder, load_tokenizer
from analysis.encoders.redirection import Redirection
from analysis.encoders.tap import tap
from analysis.scores.extraction import extract
from analysis.texts.examples import Example
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse
from benchmarks.timing import Values, medians, report, speeds

NAMES = ("minilm", "mpnet")
BATCH, LENGTH = 32, 128  # of a training step, and of the pass whose memory is measured
MEGABYTE = 1e6


def classifier(name: str) -> Encoder:
    """The encoder under a random classification head."""
    torch.manual_seed(0)
    return Encoder(name, trainable_classifier(name, 2).eval(), load_tokenizer(name))


def training_step(encoder: Encoder) -> Callable[[], object]:
    """A step of AdamW on a batch of pairs."""
    examples = load_examples("toy-mrpc", split="dev", n=BATCH)
    inputs = encoder.inputs(layouts(encoder.tokenizer, examples))
    inputs["labels"] = torch.tensor([example.label for example in examples])
    optimiser = torch.optim.AdamW(encoder.model.parameters(), lr=1e-5)

    def step() -> None:
        encoder.model.train()
        encoder.model(**inputs).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        encoder.model.eval()

    return step


def cost(name: str, examples: list[Example], repeats: int) -> Values:
    """CPU seconds of each kind of work."""
    encoder, relations = classifier(name), parse(examples)
    heads = single_heads(encoder)
    edit = sets(encoder, {"edit": [(encoder.layers // 2, 1)]}, Redirection())
    few = examples[:2]
    work = {
        "read a pair": (lambda: extract(encoder, examples, relations, progress=False), len(examples)),
        "ablate one head, a pair": (
            lambda: predict(encoder, few, heads, progress=False),
            len(few) * len(heads),
        ),
        "edit a pair": (lambda: predict(encoder, examples, edit, progress=False), len(examples)),
        f"training step of {BATCH} pairs": (training_step(encoder), 1),
    }
    functions = {what: function for what, (function, _) in work.items()}
    seconds = medians(functions, repeats, clock=time.process_time)
    return {f"{what}, CPU s": seconds[what] / count for what, (_, count) in work.items()}


def reading(name: str, examples: list[Example], repeats: int) -> Values:
    """The throughput of `extract` with the whole bank of sieves, relative to the forward pass alone."""
    encoder, relations = load_encoder(name), parse(examples)
    sequences = layouts(encoder.tokenizer, examples)
    inputs = [encoder.inputs([sequences[index] for index in batch]) for batch in batches(sequences)]

    def bare() -> None:
        with torch.no_grad():
            for batch in inputs:
                encoder.model(**batch)

    competitors = {"extract, whole bank": lambda: extract(encoder, examples, relations, progress=False)}
    ratios = speeds(bare, competitors, repeats, clock=time.process_time)
    return {f"{what} / bare, throughput": ratio for what, ratio in ratios.items()}


def resident(name: str) -> float:
    """A size of this process in MB: VmRSS is its memory now, VmHWM the most it had."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(rf"{name}:\s+(\d+)", status)[1]) * 1024 / MEGABYTE


def peak(name: str, tapped: bool, growth: "multiprocessing.Queue[float]") -> None:
    """Measures how far the largest resident set grows in one pass, under `tap` or eager attention."""
    torch.set_num_threads(1)
    model: PreTrainedModel = load_encoder(name).model
    model.set_attn_implementation("eager")
    ids = torch.randint(1000, 20000, (BATCH, LENGTH))
    with torch.no_grad():
        model(ids[:1, :8])
        before = resident("VmRSS")
        if tapped:
            with tap(model, read=lambda *_: None):
                model(ids)
        else:
            model(ids)
    growth.put(resident("VmHWM") - before)


def memory(name: str) -> Values:
    """The growth of memory under `tap` and under eager attention, in MB, and the size of the maps of one layer."""
    context = multiprocessing.get_context("spawn")
    values = {}
    for what, tapped in (("eager", False), ("tap", True)):
        growth = context.Queue()
        process = context.Process(target=peak, args=(name, tapped, growth))
        process.start()
        values[f"peak memory of a pass, {what}, MB"] = growth.get()
        process.join()
    heads = load_encoder(name).heads
    return values | {"maps of a layer, MB": BATCH * heads * LENGTH**2 * 4 / MEGABYTE}


def main() -> None:
    """Runs everything, prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=16)
    options = parser.parse_args()
    torch.set_num_threads(1)
    examples = load_examples("toy-mrpc", split="dev", n=options.pairs)
    results = {
        name: {
            **cost(name, examples, options.repeats),
            **reading(name, examples, options.repeats),
            **memory(name),
        }
        for name in NAMES
    }
    report("encoders", {"threads": 1, "pairs": options.pairs}, results)


if __name__ == "__main__":
    main()
