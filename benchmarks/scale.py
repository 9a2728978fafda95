"""Time, cost and storage for scoring 1e3 to 1e9 sequences, computed from the measurements of extraction.py.

    python benchmarks/scale.py [--cpu-price 0.04] [--gpu-price 2.5]

Reads results/extraction-cpu.json and, if it exists, results/extraction-cuda.json; without it, the values for a GPU are
an estimate and are marked as such. Prices are assumptions. The tables go between the marks in docs/scale.md.
"""

import argparse
import json
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis.errors import InputError, exit_status  # noqa: E402
from analysis.files import write_text  # noqa: E402
from analysis.scores.sieves import resolve  # noqa: E402
from analysis.statistics.roles import PUBLISHED_ROLES  # noqa: E402
from analysis.texts.examples import UNIVERSAL  # noqa: E402
from benchmarks.timing import RESULTS  # noqa: E402

DOCUMENT = ROOT / "docs" / "scale.md"
SEQUENCES = [10**power for power in range(3, 10)]
GPUS = 64
PADDED = 128  # tokens of attention maps, for the size of maps that are not stored
BERT_HEADS = 12 * 12
CPU_PRICE, GPU_PRICE = 0.04, 2.5  # dollars per hour of a core and a GPU; assumed in November 2026
# Estimate: BERT-base over 128 tokens is 22 GFLOP; GPUs sustain 25 (float32) to 150 (bfloat16) TFLOP/s.
FLOP_PER_TOKEN, SUSTAINED = 22e9 / 128, (25e12, 150e12)
BANK = len(
    resolve(None, {*UNIVERSAL}, "corrected")
)  # elementary sieves, and both directions of every relation
RATE = "extract, whole bank, sequences/s"  # with all sieves and relations; fewer roles take less time

Results = Mapping[str, Mapping[str, float]]


class Range(NamedTuple):
    """From the least to the most; both are equal for a measured value."""

    low: float
    high: float


class Rates(NamedTuple):
    """Sequences per second on a CPU and on a GPU with one actor, with `tokens` tokens each."""

    tokens: float
    cores: int
    cpu: Mapping[str, float]
    gpu: Range
    sieves: int
    constants: list[tuple[str, str, str]]


def load(name: str) -> dict | None:
    """A report of the benchmarks, None if there is none; raises InputError for a damaged one."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path} is damaged: run benchmarks/extraction.py again") from error


def rates(cpu: dict, cuda: dict | None) -> Rates:
    """The measured rates; for a GPU without measurements, an estimate."""
    bert = cpu["results"]["bert-base"]
    tokens, cores = bert["tokens per sequence"], cpu["threads"]
    source = f"extraction-cpu.json: {cores} threads, {cpu['versions'].split(', ')[-1]}"
    names = {"minilm": "MiniLM", "bert-base": "BERT-base"}
    found = {names[name]: cpu["results"][name][RATE] for name in names}
    rows = [
        (f"{name}, whole bank, {cores} cores", f"{value:.3g} sequences/s", source)
        for name, value in found.items()
    ]
    rows.append(("tokens of a sequence", f"{tokens:.0f}", source))
    if cuda is not None:
        own = cuda["results"]["bert-base"]
        alone = own[RATE] * own["tokens per sequence"] / tokens
        source = (
            f"extraction-cuda.json: {own['tokens per sequence']:.0f} tokens, as many tokens a second here"
        )
        return Rates(
            tokens,
            cores,
            found,
            Range(alone, alone),
            bert["sieves"],
            [*rows, ("BERT-base, whole bank, 1 GPU", f"{alone:.3g} sequences/s", source)],
        )
    stages = [bert[f"{stage}, sequences/s"] for stage in ("tokenise", "find word pairs", "build sieves")]
    prepare = sum(1 / rate for rate in stages)
    forward = Range(*(FLOP_PER_TOKEN * tokens / speed for speed in reversed(SUSTAINED)))
    gpu = Range(*(1 / (one + prepare) for one in reversed(forward)))
    rows += [
        ("tokenise, find word pairs, build all sieves, 1 actor", f"{1 / prepare:.3g} sequences/s", source),
        (
            "BERT-base, forward pass alone, 1 GPU",
            f"{between(Range(1 / forward.high, 1 / forward.low), number)} sequences/s",
            f"**estimate**, not measured: 22 GFLOP per 128 tokens at {SUSTAINED[0] / 1e12:.0f} to "
            f"{SUSTAINED[1] / 1e12:.0f} TFLOP/s",
        ),
        (
            "BERT-base, whole bank, 1 GPU, 1 actor",
            f"{between(gpu, number)} sequences/s",
            "**estimate**: preparing and the forward pass take turns; scoring on the GPU itself is not counted",
        ),
    ]
    return Rates(tokens, cores, found, gpu, bert["sieves"], rows)


def between(values: Range, shown: Callable[[float], str]) -> str:
    """A range as text; a single number if both ends look the same."""
    low, high = shown(values.low), shown(values.high)
    return low if low == high else f"{low} to {high}"


def number(value: float) -> str:
    """Two significant digits."""
    return f"{float(f'{value:.2g}'):,.0f}"


def in_units(value: float, units: Mapping[str, float]) -> str:
    """Two significant digits, in the largest unit (units are in ascending order) that gives at least 1."""
    unit, size = [(unit, size) for unit, size in units.items() if value >= size or unit == next(iter(units))][
        -1
    ]
    return f"{float(f'{value / size:.2g}'):g} {unit}"


def duration(seconds: float) -> str:
    """Seconds to years."""
    if seconds < 1:
        return "under 1 s"
    return in_units(seconds, {"s": 1, "min": 60, "h": 3600, "days": 86400, "years": 365 * 86400})


def storage(size: float) -> str:
    """Bytes to petabytes."""
    return in_units(
        size, {f"{prefix}B": 1000**power for power, prefix in enumerate(("", "k", "M", "G", "T", "P"))}
    )


def dollars(value: float) -> str:
    """Two significant digits, at least one cent."""
    return f"${number(value)}" if value >= 10 else f"${max(value, 0.01):.2f}"


def score_bytes(roles: int = len(PUBLISHED_ROLES), heads: int = BERT_HEADS) -> int:
    """Bytes of the scores of one text, before compression."""
    return roles * heads * 4


def table(found: Rates, cpu_price: float, gpu_price: float) -> pd.DataFrame:
    """One row per number of sequences: time on each device, cost, storage of scores and padded maps."""
    cpu, gpu = found.cpu["BERT-base"], found.gpu
    rows = []
    for count in SEQUENCES:
        seconds = Range(count / gpu.high, count / gpu.low)
        rows.append(
            {
                "sequences": f"1e{len(str(count)) - 1}",
                "MiniLM, 1 CPU": duration(count / found.cpu["MiniLM"]),
                "1 CPU": duration(count / cpu),
                "1 GPU": between(seconds, duration),
                f"{GPUS} GPUs": between(Range(*(value / GPUS for value in seconds)), duration),
                "cost, CPU": dollars(count / cpu / 3600 * found.cores * cpu_price),
                "cost, GPU": between(Range(*(value / 3600 * gpu_price for value in seconds)), dollars),
                "scores, ten roles": storage(count * score_bytes()),
                "scores, bank": storage(count * score_bytes(BANK)),
                "maps, not stored": storage(count * BERT_HEADS * PADDED**2 * 4),
            }
        )
    return pd.DataFrame(rows)


def hour(found: Rates, gpu_price: float) -> str:
    """What one hour of a GPU buys."""
    sequences = Range(found.gpu.low * 3600, found.gpu.high * 3600)
    tokens = Range(*(value * found.tokens for value in sequences))
    price = Range(*(1e6 / value * gpu_price for value in reversed(sequences)))
    return (
        f"One GPU-hour buys {between(sequences, number)} sequences, or {between(tokens, number)} tokens: "
        f"{between(price, dollars)} for a million sequences."
    )


def section(cpu: dict, cuda: dict | None, cpu_price: float = CPU_PRICE, gpu_price: float = GPU_PRICE) -> str:
    """The tables of docs/scale.md with their constants and assumptions."""
    found = rates(cpu, cuda)
    constants = pd.DataFrame(found.constants, columns=["constant", "value", "source"])
    kind = "an estimate" if cuda is None else "measured"
    text = [
        constants.to_markdown(index=False),
        textwrap.fill(
            f"Times are those of BERT-base and the bank of {found.sieves} sieves that the texts have (fewer roles take "
            f"less) on sequences of {found.tokens:.0f} tokens; parsing them and starting processes are left out. 1 CPU "
            f"is {found.cores} cores; the GPU is {kind}, with one actor; {GPUS} GPUs take 1/{GPUS} of the time and "
            f"cost the same. Prices are assumed (November 2026, no offer): ${cpu_price:.2f} an hour of a core, "
            f"${gpu_price:.2f} of a GPU. Storage is computed: {score_bytes()} bytes a text for ten roles, with "
            f"{BANK} sieves and relations in the bank. Attention maps, float32 and padded to {PADDED} tokens, are what "
            "keeping them would take.",
            width=120,
        ),
        table(found, cpu_price, gpu_price).to_markdown(index=False, stralign="right", disable_numparse=True),
        hour(found, gpu_price),
    ]
    return "\n\n".join(text)


def _run(options: argparse.Namespace) -> None:
    cpu = load("extraction-cpu")
    if cpu is None:
        raise InputError(f"{RESULTS / 'extraction-cpu.json'} is missing: run benchmarks/extraction.py first")
    text = section(cpu, load("extraction-cuda"), options.cpu_price, options.gpu_price)
    document = DOCUMENT.read_text(encoding="utf-8")
    before, after = document.split("<!-- cost -->")[0], document.split("<!-- /cost -->")[1]
    write_text(DOCUMENT, f"{before}<!-- cost -->\n{text.strip()}\n<!-- /cost -->{after}")
    print(text)


def main() -> int:
    """Prints the tables and writes them into docs/scale.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu-price", type=float, default=CPU_PRICE, help="dollars per hour of a core")
    parser.add_argument("--gpu-price", type=float, default=GPU_PRICE, help="dollars per hour of a GPU")
    options = parser.parse_args()
    return exit_status(lambda: _run(options))


if __name__ == "__main__":
    sys.exit(main())
