"""What `make plan` says of a profile: the CPU seconds of its records, their sum and the longest chain."""

import json

from analysis.study import plan

RULES = """
results/quick/cache/done/01_a: notebooks/01_a.py | .venv/ready
results/quick/cache/done/02_b-x: results/quick/cache/done/01_a
results/quick/cache/done/02_b-x: export OMP_NUM_THREADS := 1
results/quick/cache/done/02_b-y: results/quick/cache/done/01_a
results/quick/cache/done/03_c: results/quick/cache/done/02_b-x results/quick/cache/done/02_b-y
results/quick/cache/done/index: results/quick/cache/done/03_c
"""


def test_recorded_seconds_and_the_longest_chain(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    folder = tmp_path / "quick/provenance"
    folder.mkdir(parents=True)
    records = {
        "01_a": {"cpu_seconds": 1000.4, "cached": False},
        "02_b-y": {"cpu_seconds": 3, "whole_cpu_seconds": 30, "cached": True},
    }
    records |= {"02_b-x": {"seconds": 40}, "03_c": {"cpu_seconds": 5}}
    for run, record in records.items():
        (folder / f"{run}.json").write_text(json.dumps(record))
    plan.print_plan(["01_a", "02_b-x", "02_b-y", "03_c"], "quick", RULES)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "01_a 1,000",
        "02_b-x not recorded",
        "02_b-y 30",
        "03_c 5",
        "4 runs, 3 of them recorded: 1,035 CPU seconds",
        "longest chain: 1,035 CPU seconds: 01_a > 02_b-y > 03_c",
    ]
