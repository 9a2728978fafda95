"""What a profile will run, on which data, and about how long: `make plan`."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from analysis.errors import InputError, exit_status
from analysis.study.profiles import TEXTS, command_line, parameters
from analysis.study.runs import named
from analysis.texts.tasks import task_names

# Rows of GLUE: train and dev (matched, for MNLI).
ROWS = {
    "mrpc": (3668, 408), "qqp": (363846, 40430), "sst-2": (67349, 872), "qnli": (104743, 5463),
    "rte": (2490, 277), "cola": (8551, 1043), "sts-b": (5749, 1500), "mnli": (392702, 9815),
}  # fmt: skip
ARGUMENTS = (1210, 760)  # of ARCT: train; dev and test
TRAINING = 3  # forward passes that a training step costs: one forward, two backward
# Forward passes a head and sequence costs when all heads are removed singly (prefixes are shared).
ALL_HEADS = 0.45
IMPORTANCE = 2.1  # forward passes of an importance
PROBE = 1.0  # forward passes of one probe of attribution in a layer: a Jacobian-vector product
MAPS = 4  # attention and three controls
EDITS = 22  # of the matching heads
STEPS = 11  # of a pruning curve
ROLES = 8  # roles with a set of heads, about
TREES = (2001, 12544)  # sentences of UD English EWT: dev and train
TOKENS, BATCH, ROUNDS = 64, 8, 5  # of the measurement; the fastest round counts, as other work slows the rest


class Size(NamedTuple):
    """The layers of an encoder, and its heads in all layers."""

    layers: int
    heads: int


Work = Callable[[Mapping[str, Any], Size], float]


def train(task: str, n: int | None) -> int:
    """Training sequences of a task, at most `n`."""
    return min(ROWS[task][0], n or ROWS[task][0])


def dev(task: str, n: int | None) -> int:
    """Dev sequences of a task, at most `n`."""
    return min(ROWS[task][1], n or ROWS[task][1])


def _states(p: Mapping[str, Any]) -> int:
    return 1 if p["state"] == "pretrained" else len(p["seeds"])


def _argument_runs(p: Mapping[str, Any]) -> float:
    searches = len(p["learning_rates"]) * sum(p["encoder_epochs"])
    runs = len(p["encoder_seeds"]) * len(p["encoder_setups"]) * max(p["encoder_epochs"])
    adversarial = 2 * len(p["encoder_seeds"]) * len(p["encoder_probed"]) * p["adversarial_epochs"]
    removed = len(p["encoder_seeds"]) * p["random_sets"] * ARGUMENTS[1] * 4
    return 2 * TRAINING * ARGUMENTS[0] * (searches + runs + adversarial) + removed


def _disabled(p: Mapping[str, Any], size: Size) -> float:
    heads = size.heads * ALL_HEADS * p["head_runs"] * sum(dev(task, p["scored_n"]) for task in p["tasks"])
    starts = sum(train(task, p["start_n"]) for task in p["start_tasks"])
    return heads + TRAINING * p["epochs"] * len(p["seeds"]) * starts


def _pruned(p: Mapping[str, Any], size: Size) -> float:
    importance = len(p["seeds"]) * IMPORTANCE * sum(train(task, p["importance_n"]) for task in p["tasks"])
    steps = STEPS * (4 + p["random_orders"]) * sum(dev(task, p["scored_n"]) for task in p["tasks"])
    course = TRAINING * p["epochs"] * sum(train(task, p["train_n"]) for task in p["course_tasks"])
    return importance + steps + course


def _ablated(p: Mapping[str, Any], size: Size) -> float:
    scored = 2 * p["ablated_runs"] * sum(dev(task, p["scored_n"]) for task in p["tasks"])
    return size.heads * ALL_HEADS * (scored + sum(train(task, p["chosen_n"]) for task in p["tasks"]))


def _matched(p: Mapping[str, Any], size: Size) -> float:
    names, singles = task_names(p["pair_tasks"]), p["single_tasks"]
    scored = sum(dev(task, p["scored_n"]) for task in [*names, *singles])
    ablated = len(p["seeds"]) * (
        size.heads * ALL_HEADS * scored + EDITS * sum(dev(task, p["scored_n"]) for task in names)
    )
    dials = p["dialled"] * p["reference_n"] * (size.heads / size.layers) ** 2
    blocked = 3 * p["blocked_runs"] * TRAINING * p["epochs"] * train(names[0], p["blocked_n"])
    return ablated + dials + blocked + 3 * len(p["seeds"]) * len(names) * p["matched_n"]


def _synthesised(p: Mapping[str, Any], size: Size) -> float:
    gates = TRAINING * 2 * len(p["gate_seeds"]) * p["gate_steps"] * p["gate_batch"]
    return len(p["model_tasks"]) * (p["set_n"] * p["random_sets"] * ROLES + gates)


# Forward passes of one sequence by notebook, from its parameters beside those of 00_finetune, and the encoder; none:
# statistics alone.
WORK: dict[str, Work] = {
    "00_finetune": lambda p, size: TRAINING * p["epochs"] * len(p["seeds"]) * train(p["task"], p["train_n"]),
    "01_extract": lambda p, size: MAPS * dev(p["task"], p["n"]) * _states(p),
    "03_robustness": lambda p, size: 2 * MAPS * p["control_n"],
    "05_clark_surface": lambda p, size: (
        (2 + TRAINING * p["head_epochs"]) * p["passages"] + TRAINING * size.layers * p["gradient_passages"]
    ),
    "05_clark_syntax": lambda p, size: 2 * sum(TREES),
    "06_michel_ablation": _ablated,
    "06_michel_pruning": _pruned,
    "07_kovaleva_patterns": lambda p, size: 2 * (1 + len(p["seeds"])) * p["sequences"] * len(p["tasks"]),
    "07_kovaleva_disable": _disabled,
    "08_attribution": lambda p, size: (
        _states(p) * (p["attributed"] * p["probes"] * PROBE * size.layers + MAPS * p["projected"])
    ),
    "08_pascual": lambda p, size: p["dependency_sentences"] * p["probes"] * PROBE * size.layers,
    "09_niven_models": lambda p, size: _argument_runs(p),
    "10_synthesis": _synthesised,
    "11_matching": _matched,
}


def plan(runs: Sequence[str], profile: str, seconds: float, size: Size) -> pd.DataFrame:
    """A row per run: run, data, forward passes (thousands) and hours here, at `seconds` for a forward pass.

    Hours are missing for runs that read no encoder: minutes of statistics.
    """
    rows, tuning = [], parameters("00_finetune", profile)
    for run in sorted(runs):
        notebook, settings = named(run)
        own = parameters(notebook, profile, settings)
        texts = (own[name] for name in TEXTS if name in own)
        data = {" ".join(map(str, text)) if isinstance(text, list) else str(text) for text in texts}
        passes = WORK[notebook](tuning | own, size) if notebook in WORK else float("nan")
        rows.append((run, ", ".join(sorted(data)), passes / 1000, passes * seconds / 3600))
    return pd.DataFrame(rows, columns=["run", "data", "forward passes (thousands)", "hours here"])


def measured(encoder: str, device: str) -> tuple[float, Size, float]:
    """Seconds of a forward pass of one sequence, the size of the encoder, and gigabytes that training takes.

    Measured with random weights on sequences of 64 tokens. An encoder whose configuration is not at hand counts as
    BERT-base. Memory: 16 bytes a weight (weights, gradients, two moments), and the activations of a batch of 32 after
    Korthikanti et al. 2023, in float32.
    """
    import torch
    from transformers import AutoConfig, AutoModel, BertConfig

    from analysis.encoders.sources import locate

    try:
        config = AutoConfig.from_pretrained(locate(encoder), local_files_only=True)
    except (InputError, OSError, ValueError):
        config = BertConfig()
        print(f"{encoder} is not here yet: measured with random weights of BERT-base's size")
    model = AutoModel.from_config(config).to(device).eval()
    batch = torch.randint(10, 1000, (BATCH, TOKENS), device=device)
    taken = []
    with torch.inference_mode():
        for _ in range(ROUNDS):
            start = time.perf_counter()
            model(batch)
            if device != "cpu":
                torch.cuda.synchronize()
            taken.append((time.perf_counter() - start) / BATCH)
    layers, hidden, heads = config.num_hidden_layers, config.hidden_size, config.num_attention_heads
    weights = sum(each.numel() for each in model.parameters())
    activations = 2 * layers * 32 * TOKENS * (34 * hidden + 5 * heads * TOKENS)
    return min(taken), Size(layers, layers * heads), (16 * weights + activations) / 1e9


def print_plan(runs: Sequence[str], profile: str) -> None:
    """Prints the plan of a profile, with seconds measured on this machine and on its GPU if there is one."""
    import torch

    encoder = parameters("00_finetune", profile)["encoder"]
    seconds, size, memory = measured(encoder, "cpu")
    table = plan(runs, profile, seconds, size)
    told = {"this machine": seconds}
    table["hours on a GPU"] = "not measured"
    if torch.cuda.is_available():
        told[torch.cuda.get_device_name()] = measured(encoder, "cuda")[0]
        table["hours on a GPU"] = table["hours here"] * [*told.values()][-1] / seconds
    print(table.to_string(index=False, float_format="{:.1f}".format, na_rep="-"))
    speeds = ", ".join(f"{1000 * each:.1f} ({name})" for name, each in told.items())
    print(
        f"{len(table)} runs, {table['hours here'].sum():.1f} hours here. "
        f"Seconds per thousand sequences of {TOKENS} tokens, "
        f"{encoder}: {speeds}{'' if len(told) > 1 else '; GPU: not measured'}. Training takes about {memory:.1f} GB."
    )


def main(arguments: list[str] | None = None) -> int:
    """Command line; prints one line for wrong input and returns the exit status."""
    parser = command_line("analysis.study.plan", __doc__)
    parser.add_argument("runs", nargs="+")
    options = parser.parse_args(arguments)
    return exit_status(lambda: print_plan(options.runs, options.profile))


if __name__ == "__main__":
    sys.exit(main())
