"""What `make plan` says of a profile: every run, its data, and times that follow from the work."""

import pytest
from studies import runs_of

from analysis.study import plan as planning
from analysis.study.plan import Size, plan

BERT_BASE = Size(12, 144)


@pytest.fixture(scope="module")
def runs() -> list[str]:
    return runs_of("paper")


def test_every_run_has_its_data_and_its_time(runs):
    table = plan(runs, "paper", 0.01, BERT_BASE).set_index("run")
    assert sorted(table.index) == sorted(runs)
    assert table.loc["01_extract-mrpc-finetuned", "data"] == "$DATA_DIR/glue, $PARSER"
    assert "ontogum/dev" in table.loc["05_clark_syntax", "data"]
    assert table.loc["03_test-mrpc"].isna()["hours here"]
    known = table.dropna()
    assert known["hours here"].to_numpy() == pytest.approx(
        known["forward passes (thousands)"] * 1000 * 0.01 / 3600
    )
    assert {name.split("-")[0] for name in known.index} == {*planning.WORK}


def test_work_is_that_of_the_parameters(runs):
    table = plan(runs, "paper", 0.01, BERT_BASE).set_index("run")["forward passes (thousands)"]
    assert table["00_finetune-mrpc"] == pytest.approx(
        3 * 3 * 5 * 3.668
    )  # steps of 3 passes, 3 epochs, 5 seeds
    assert table["01_extract-mrpc-finetuned"] == pytest.approx(5 * table["01_extract-mrpc-pretrained"])
    half = plan(["06_michel_ablation"], "paper", 0.01, Size(12, 72))["forward passes (thousands)"]
    assert half.item() == pytest.approx(table["06_michel_ablation"] / 2)


def test_the_plan_is_printed_with_what_was_measured(capsys):
    assert planning.main(["00_finetune-mrpc", "02_score-mrpc", "--profile", "smoke"]) == 0
    said = capsys.readouterr().out
    assert "00_finetune-mrpc" in said
    assert "2 runs" in said
