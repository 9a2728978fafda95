"""The rules for Make: what a notebook depends on, and parameter files that change only when they must."""

import os
from pathlib import Path

import pytest
import yaml
from studies import PARAMETERS, Study, error_of

from analysis.files import ROOT
from analysis.study import profiles, rules


@pytest.fixture
def written(study: Study):
    """Writes the rules of a study with two notebooks and returns them line by line."""
    study.notebook(
        "01_first",
        "from analysis.papers.pande2021 import published",
        "from analysis.texts.bundled import generate",
    )
    study.notebook("03_test_all", parameters=PARAMETERS + 'tasks = ["mrpc"]\n')
    study.profile("quick", "common: {tasks: [sst-2, qnli]}")

    def written() -> dict[str, list[str]]:
        lines = rules.write_rules("quick").read_text().splitlines()
        return {name: value.split() for name, value in (line.split(" := ") for line in lines)}

    return written


def test_rules(written, study: Study):
    """Tasks, and for each notebook its script, its modules with their data, and its parameters."""
    found = written()
    assert list(found) == ["TASKS", "DEPENDS_01_first", "DEPENDS_03_test_all"]
    assert found["TASKS"] == ["sst-2", "qnli"]
    first = found["DEPENDS_01_first"]
    bundled = {f"analysis/texts/bundled/{name}" for name in ("__init__.py", "grammar.py", "lexicon.yaml")}
    published = {f"analysis/papers/pande2021/{name}" for name in ("published.py", "published_roles.csv")}
    expected = bundled | published | {"analysis/errors.py", "analysis/texts/examples.py"}
    assert expected <= set(first)
    assert len(first) == len(set(first))
    assert all((ROOT / path).is_file() and not Path(path).is_absolute() for path in first)
    assert [Path(path).name for path in (first[0], first[-1])] == ["01_first.py", "01_first.yaml"]
    values = yaml.safe_load((study.folder / "results/quick/cache/parameters/01_first.yaml").read_text())
    assert values == profiles.parameters("01_first", "quick")


def test_parameter_files_change_only_with_their_parameters(written, study: Study):
    written()
    folder = study.folder / "results/quick/cache/parameters"
    for path in folder.iterdir():
        os.utime(path, (1000, 1000))
    times = lambda: {path.stem: path.stat().st_mtime == 1000 for path in folder.iterdir()}  # noqa: E731
    study.profile("quick", "# a comment\ncommon: {tasks: [sst-2, qnli]}\n01_first:")
    written()
    assert times() == {"01_first": True, "03_test_all": True}
    study.profile("quick", "common: {tasks: [sst-2, qnli]}\n01_first: {n: 4}")
    written()
    assert times() == {"01_first": False, "03_test_all": True}


def test_rules_refuse_a_wrong_list_of_tasks(written, study: Study):
    study.profile("quick", "common: {tasks: mrpc}")
    assert "parameter tasks is 'mrpc': give a list" in error_of(rules.write_rules, "quick")


def test_unknown_and_missing_tasks_are_one_line(written, study: Study, capsys):
    study.profile("quick", "common: {tasks: [mrpc, cola]}")
    assert "task 'cola' is unknown: choose from mrpc, qqp, sst-2, qnli" in error_of(
        rules.write_rules, "quick"
    )
    study.profile("quick", "common: {tasks: []}")
    assert rules.main(["--profile", "quick"]) == 1
    assert (
        capsys.readouterr().err
        == "error: profile quick: tasks is empty: choose from mrpc, qqp, sst-2, qnli\n"
    )


def test_rules_of_an_unknown_profile(capsys):
    assert rules.main(["--profile", "absent"]) == 1
    assert capsys.readouterr().err.startswith("error: unknown profile 'absent': choose from ")
