"""How much faster a pruned encoder is: the bound, the table and its file, and intervals."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from studies import error_of

from analysis.encoders.models import load_encoder
from analysis.papers.michel2019 import speed
from analysis.papers.michel2019.speed import (
    BASE,
    SPEED,
    kept_speed_table,
    mean_interval,
    most_speedup,
    speed_table,
    timed_encoder,
)


def test_bound_is_the_share_of_multiplications():
    """Half of (4 + 2T/d) of (12 + 2T/d)."""
    for width in (384, 768):
        whole, attention = 12 + 256 / width, 4 + 256 / width
        assert most_speedup(width, 0.5) == pytest.approx(whole / (whole - attention / 2))
    assert most_speedup(384, 0) == 1


def test_speed_table_and_its_file(tmp_path: Path):
    table = kept_speed_table(tmp_path, ["tiny"], [1, 2], 2)
    assert [*table.columns] == SPEED == "model batch heads speedup low high bound".split()
    assert table["heads"].tolist() == [6, 6]
    assert ((table["low"] <= table["speedup"]) & (table["speedup"] <= table["high"])).all()
    assert kept_speed_table(tmp_path, ["tiny"], [1, 2], 2).equals(table)
    assert "at least 2" in error_of(speed_table, ["tiny"], [1], 1)


def test_times_belong_to_a_machine_and_a_version_of_torch(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(speed, "speed_table", lambda *_, **__: pd.DataFrame({"speedup": [1.0]}))
    changes = {(torch, "__version__"): "0", (torch, "get_num_threads"): lambda: 99,
               (speed.platform, "processor"): lambda: "another", (speed.os, "cpu_count"): lambda: 99}  # fmt: skip
    kept_speed_table(tmp_path, ["tiny"], [1], 2)
    for number, ((module, name), value) in enumerate(changes.items(), 2):
        monkeypatch.setattr(module, name, value)
        kept_speed_table(tmp_path, ["tiny"], [1], 2)
        assert len([*tmp_path.iterdir()]) == number


def test_times_without_spread_have_no_interval():
    mean, low, high = mean_interval(np.array([0.5, 0.5, 0.5]))
    assert mean == 0.5
    assert np.isnan([low, high]).all()
    values = np.array([0.1, 0.2, 0.4])
    tested = stats.ttest_1samp(values, 0).confidence_interval()
    assert mean_interval(values)[1:] == pytest.approx([tested.low, tested.high])


def test_base_has_the_size_of_bert_base(monkeypatch):
    monkeypatch.setattr(
        "analysis.papers.michel2019.speed.BertConfig", lambda: load_encoder("tiny").model.config
    )
    assert timed_encoder(BASE).name == BASE
