"""Data sets of the Hugging Face Hub."""

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from analysis.errors import InputError
from analysis.texts.tasks import Task

HUB_DATASET = "nyu-mll/glue"
HUB_TIMEOUT = 10.0  # seconds


def rows_of(task: Task, split: str) -> Iterator[tuple[int, str, Sequence[str], Any]]:
    """Number, place, texts and label of the rows of the Hub's dataset, in which the label -1 means unlabelled."""
    name, columns = task.splits[split].hub, task.hub_columns or task.columns
    table = hub_table(HUB_DATASET, task.config, name)
    for number, *texts, label in table[[*columns, "label"]].itertuples(name=None):
        place = f"{HUB_DATASET} {task.config} {name}, row {number}"
        yield number, place, texts, None if label == -1 else label


def hub_table(dataset: str, config: str, split: str) -> pd.DataFrame:
    """A split of a dataset of the Hub, from its server or from the cache of earlier downloads."""
    import datasets  # slow to import, and only the Hub needs it
    import huggingface_hub

    try:
        if not huggingface_hub.is_offline_mode():
            # load_dataset would try a dead address for half a minute; this asks once.
            huggingface_hub.HfApi().dataset_info(dataset, timeout=HUB_TIMEOUT)
        return datasets.load_dataset(dataset, config, split=split).to_pandas()
    except Exception as error:  # of any type, from the HTTP library or a reader of files
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"Hugging Face dataset {dataset}, {config}: {reason}; check the network or HF_ENDPOINT, "
            "set HF_HUB_OFFLINE=1 to use a copy downloaded before, or name files instead of the Hub"
        ) from None
