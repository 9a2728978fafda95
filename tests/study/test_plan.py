"""What `make plan` says of a profile: the CPU seconds of its records, and their sum."""

import json

from analysis.study import plan


def test_recorded_seconds(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    folder = tmp_path / "quick/provenance"
    folder.mkdir(parents=True)
    records = {
        "01_a": {"cpu_seconds": 1000.4, "cached": False},
        "02_b-y": {"cpu_seconds": 3, "whole_cpu_seconds": 30, "cached": True},
        "02_b-x": {"seconds": 40},
    }
    for run, record in records.items():
        (folder / f"{run}.json").write_text(json.dumps(record))
    plan.print_plan([*records, "03_c"], "quick")
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "01_a 1,000", "02_b-y 30", "02_b-x not recorded", "03_c not recorded",
        "4 runs, 2 of them recorded: 1,030 CPU seconds",
    ]  # fmt: skip
