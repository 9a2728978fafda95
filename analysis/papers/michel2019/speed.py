"""How much faster a physically pruned classifier is, and the bound that its arithmetic sets."""

import os
import platform
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from tqdm import tqdm
from transformers import AutoModelForSequenceClassification, BertConfig

from analysis.cache import cached
from analysis.encoders.models import Encoder, load_encoder
from analysis.encoders.pruning import prune
from analysis.errors import InputError
from analysis.statistics.intervals import mean_interval

SPEED = ["model", "batch", "heads", "speedup", "low", "high", "bound"]
BASE = "BERT-base size"  # random weights: speed does not depend on them
TOKENS = 128


def timed_encoder(name: str) -> Encoder:
    """The encoder to time: one that `load_encoder` knows, or one of BERT-base's size with random weights."""
    if name != BASE:
        return load_encoder(name)
    whole = load_encoder("tiny")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_config(BertConfig())
    return Encoder(name, model.eval(), whole.tokenizer)


def cached_speed_table(
    folder: Path, names: Sequence[str], batches: Sequence[int], rounds: int
) -> pd.DataFrame:
    """`speed_table`, cached in `folder` for this machine and version of torch."""

    def make() -> xr.Dataset:
        return xr.Dataset.from_dataframe(speed_table(names, batches, rounds))

    key = [[*names], [*batches], rounds, machine()]
    return cached(folder, "speed", key, make).to_dataframe().reset_index(drop=True)


def machine() -> list[Any]:
    """The conditions of the times, apart from the model: version of torch, processor, cores and threads."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    names = sorted({line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")})
    processor = [platform.machine(), platform.processor(), names]
    return [torch.__version__, *processor, os.cpu_count(), torch.get_num_threads()]


def speed_table(names: Sequence[str], batches: Sequence[int], rounds: int) -> pd.DataFrame:
    """The table `michel_speed`: the speed-up of encoders without half of their heads, drawn at random.

    A round times the whole and the pruned encoder on `batch` sequences of 128 tokens; they take turns in going first.
    Times are CPU time of one thread. `speedup` is the geometric mean of the ratios of the rounds, with its 95 % t
    interval; for `bound` see `most_speedup`. Raises InputError for fewer than two rounds. Source: Michel 2019, table 4.
    """
    if rounds < 2:
        raise InputError(f"speed_rounds is {rounds}: an interval needs at least 2, better 5")
    rows = []
    for name in names:
        whole = timed_encoder(name)
        gate = np.ones(whole.layers * whole.heads, np.float32)
        pruned = np.random.default_rng(0).permutation(gate.size)[: round(gate.size / 2)]
        gate[pruned] = 0
        pair = [whole.model, prune(whole, gate.reshape(whole.layers, whole.heads)).model]
        bound = most_speedup(whole.model.config.hidden_size, len(pruned) / gate.size)
        for batch in tqdm(batches, desc=f"timing {name}", unit="batch size"):
            interval = np.exp(mean_interval(np.log(_ratios(pair, batch, rounds))))
            rows.append([name, batch, len(pruned), *interval, bound])
    return pd.DataFrame(rows, columns=SPEED)


def most_speedup(width: int, share: float) -> float:
    """The ratio of the multiplications in all layers with and without a share of the heads.

    Counts per token and layer, in units of the squared width: the feed-forward part has 8. Attention has 4 for its four
    matrices and 2 T / width for products over T = TOKENS tokens; these shrink with the number of heads.
    """
    attention = 4 + 2 * TOKENS / width
    return (8 + attention) / (8 + (1 - share) * attention)


def _ratios(pair: Sequence[torch.nn.Module], batch: int, rounds: int) -> np.ndarray:
    """Time of the first model over that of the second, round by round.

    One thread alone: the CPU time of several includes the time they wait.
    """
    ids = torch.randint(1000, 2000, (batch, TOKENS), generator=torch.Generator().manual_seed(0))
    times, threads = np.empty((rounds, 2)), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            for model in pair:
                model(input_ids=ids)  # the first pass allocates memory
            for turn, place in product(range(rounds), range(2)):
                number = (place + turn) % 2  # they take turns in going first
                start = time.process_time()
                pair[number](input_ids=ids)
                times[turn, number] = time.process_time() - start
    finally:
        torch.set_num_threads(threads)
    return times[:, 0] / times[:, 1]
