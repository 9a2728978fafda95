"""Threads of a training step alone and beside one busy process, spinning and passive, as ratios of medians.

    python benchmarks/threads.py [--repeats 5]

OpenMP's threads wait for each other. By default they spin meanwhile, which takes the core from the thread for which
they wait if another process is busy; `OMP_WAIT_POLICY=passive` lets them sleep. A process for each setting trains
MiniLM on one batch of 8 pairs of toy-mrpc, on two cores; all take turns. Results go to benchmarks/results/ and, as a
table, to the screen.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BATCH = 8
SETTINGS = [(threads, policy) for threads in (1, 2) for policy in ("spinning", "passive")]
SITUATIONS = ("alone", "beside a busy process")


def train() -> None:
    """Makes one training step for every line of the input, and prints its seconds."""
    import torch

    from analysis.encoders.classifiers import trainable_classifier
    from analysis.encoders.layout import layouts
    from analysis.encoders.models import Encoder, load_tokenizer
    from analysis.texts.glue import load_examples

    encoder = Encoder("minilm", trainable_classifier("minilm", 2).train(), load_tokenizer("minilm"))
    inputs = encoder.inputs(layouts(encoder.tokenizer, load_examples("toy-mrpc", split="train", n=BATCH)))
    optimiser = torch.optim.AdamW(encoder.model.parameters(), lr=1e-5)
    labels = torch.arange(BATCH) % 2
    for _ in sys.stdin:
        start = time.perf_counter()
        encoder.model(**inputs, labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        print(time.perf_counter() - start, flush=True)


def start(threads: int, policy: str) -> subprocess.Popen:
    """A process that trains with a setting, which must stand in its environment before torch is imported."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_NUM_THREADS": str(threads)} | (
        {"OMP_WAIT_POLICY": policy} if policy == "passive" else {}
    )
    return subprocess.Popen(
        [sys.executable, __file__, "--train"],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    )  # fmt: skip


def step(process: subprocess.Popen) -> float:
    """The seconds of one training step of a process."""
    process.stdin.write("\n")
    return float(process.stdout.readline())


def compare(repeats: int) -> dict[str, dict[str, float]]:
    """Median seconds of a step for every situation and setting, and ratios of them within a round."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {*sorted(os.sched_getaffinity(0))[:2]})
    workers = {setting: start(*setting) for setting in SETTINGS}
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    rounds: dict[str, list[dict]] = {situation: [] for situation in SITUATIONS}
    try:
        for number in range(repeats + 1):
            for situation, signum in zip(SITUATIONS, (signal.SIGSTOP, signal.SIGCONT), strict=True):
                busy.send_signal(signum)
                seconds = {setting: step(worker) for setting, worker in workers.items()}
                rounds[situation] += [seconds] if number else []  # the first round warms up
    finally:
        for process in (busy, *workers.values()):
            process.kill()
    return {situation: _summary(seconds) for situation, seconds in rounds.items()}


def _summary(rounds: list[dict]) -> dict[str, float]:
    found = {
        f"{threads} {'thread' if threads == 1 else 'threads'}, {policy} (s)": median(
            seconds[threads, policy] for seconds in rounds
        )
        for threads, policy in SETTINGS
    }
    for policy in ("spinning", "passive"):
        ratios = (seconds[2, policy] / seconds[1, policy] for seconds in rounds)
        found[f"2 threads / 1 thread, {policy}"] = median(ratios)
    found["2 threads: spinning / passive"] = median(
        seconds[2, "spinning"] / seconds[2, "passive"] for seconds in rounds
    )
    return found


def main() -> None:
    """Compares all settings, prints a table and writes it as JSON."""
    from benchmarks.timing import report

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train()
        return
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    report(
        "threads",
        {"sequences": BATCH, "clock": "wall time", "processes that wanted a core before": f"{load:.1f}"},
        compare(options.repeats),
    )


if __name__ == "__main__":
    main()
