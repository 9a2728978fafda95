"""The cost of switching heads off compared with as many gated forward passes, as ratios of CPU time of one thread.

    python benchmarks/interventions.py [--repeats 3]

Competitors take turns (see `timing`). `minilm` is all-MiniLM-L6-v2, `bert-base` an encoder of BERT-base's size with
random weights; both have a new classification head. In BERT-base, two heads of each layer are switched off. They read
the pairs of toy-mrpc. Results go to benchmarks/results/ and, as a table, to the screen.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, BertConfig

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis.encoders.classifiers import trainable_classifier  # noqa: E402
from analysis.encoders.interventions import predict, sets  # noqa: E402
from analysis.encoders.layout import layouts  # noqa: E402
from analysis.encoders.models import Encoder, load_tokenizer  # noqa: E402
from analysis.encoders.prefixes import OPERATORS  # noqa: E402
from analysis.encoders.pruning import importance, prune  # noqa: E402
from analysis.encoders.tap import tap  # noqa: E402
from analysis.texts.glue import load_examples  # noqa: E402
from benchmarks.timing import Values, report, speeds  # noqa: E402

HEADS = {"minilm": 12, "bert-base": 2}  # heads that are switched off in each layer
BATCHES = {"minilm": 8, "bert-base": 4}


def load(name: str) -> Encoder:
    """MiniLM, or an encoder of BERT-base's size with random weights, as a classifier."""
    torch.manual_seed(0)
    if name == "minilm":
        model = trainable_classifier(name, 2)
    else:
        model = AutoModelForSequenceClassification.from_config(BertConfig())
    return Encoder(name, model.eval(), load_tokenizer("minilm"))


def costs(name: str, batch_size: int, repeats: int) -> Values:
    """The time of each competitor as a multiple of the time of the forward passes that it replaces."""
    encoder = load(name)
    examples = load_examples("toy-mrpc", split="dev", n=batch_size)
    inputs = encoder.inputs(layouts(encoder.tokenizer, examples))
    heads = [(layer, head) for layer in range(encoder.layers) for head in range(HEADS[name])]
    half = np.arange(encoder.heads) % 2 == np.arange(encoder.layers)[:, None] % 2
    smaller = prune(encoder, half.astype(np.float32))
    rows = {
        operator: sets(encoder, {str(head): [head] for head in heads}, operator) for operator in OPERATORS
    }

    def forward(encoder: Encoder = encoder) -> None:
        with torch.no_grad():
            encoder.model(**inputs)

    def passes(operator: str) -> None:
        for row in rows[operator]:
            with tap(encoder.model, **OPERATORS[operator](torch.from_numpy(row.gate))):
                forward()

    def engine(operator: str) -> None:
        predict(encoder, examples, rows[operator], batch_size=batch_size, progress=False)

    def ratio(reference: Callable[[], object], run: Callable[[], object]) -> float:
        return 1 / speeds(reference, {"": run}, repeats, clock=time.process_time)[""]

    return {
        "sequences": batch_size,
        "tokens of the padded batch": inputs["input_ids"].numel(),
        "heads switched off": len(heads),
        **{
            f"{operator}: predict / gated passes": ratio(partial(passes, operator), partial(engine, operator))
            for operator in OPERATORS
        },
        "importance / forward pass": ratio(forward, lambda: importance(encoder, examples, progress=False)),
        "forward pass with half of the heads pruned / whole": ratio(forward, lambda: forward(smaller)),
    }


def main() -> None:
    """Runs everything on one thread, prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {
        f"{name}, batch of {size}": costs(name, size, options.repeats) for name, size in BATCHES.items()
    }
    report("interventions", {"threads": 1, "clock": "CPU time"}, results)


if __name__ == "__main__":
    main()
