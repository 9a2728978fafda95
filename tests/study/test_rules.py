"""The rules for Make: what a notebook depends on, and parameter files that change only when they must."""

import os
from pathlib import Path

import pytest
import yaml
from studies import Study, error_of

from analysis.files import ROOT
from analysis.study import profiles, rules


@pytest.fixture
def written(study: Study):
    """Writes the rules of a study with two notebooks and returns its variables, and its rules."""
    study.notebook(
        "01_first",
        "from analysis.papers.pande2021 import published",
        "from analysis.texts.bundled import generate",
    )
    tasks = 'tasks = ["mrpc"]\n'
    second = '# %% tags=["parameters"]\nprofile = "quick"\n' + tasks
    study.notebook("03_second", parameters=second, study="{paper: pande2021, after: [01_first]}")
    study.profile("quick", "common: {tasks: [sst-2, qnli]}")

    def written() -> tuple[dict[str, list[str]], list[str]]:
        lines = rules.write_rules("quick").read_text().splitlines()
        variables = [line.split(" := ") for line in lines if " := " in line]
        return {name: value.split() for name, value in variables}, lines[len(variables) :]

    return written


def test_rules(written, study: Study):
    """The goals; for each notebook its script, its modules with their data, and its parameters; a rule per run."""
    found, lines = written()
    assert list(found) == ["GOALS", "FILES_01_first", "FILES_03_second"]
    assert found["GOALS"] == [
        f"$(STAMPS)/{name}" for name in ("01_first-qnli", "01_first-sst-2", "03_second")
    ]
    first = found["FILES_01_first"]
    bundled = {f"analysis/texts/bundled/{name}" for name in ("__init__.py", "grammar.py", "lexicon.yaml")}
    published = {f"analysis/papers/pande2021/{name}" for name in ("published.py", "published_roles.csv")}
    expected = bundled | published | {"analysis/errors.py", "analysis/texts/examples.py"}
    assert expected <= set(first)
    assert len(first) == len(set(first))
    assert all((ROOT / path).is_file() and not Path(path).is_absolute() for path in first)
    assert [Path(path).name for path in (first[0], first[-1])] == ["01_first.py", "01_first.yaml"]
    values = yaml.safe_load((study.folder / "results/quick/cache/parameters/01_first.yaml").read_text())
    assert values == profiles.parameters("01_first", "quick")
    assert lines == [
        "$(STAMPS)/01_first-qnli: $(FILES_01_first)",
        "\t@$(RUN) 01_first --set task=qnli",
        "\t$(stamp)",
        "$(STAMPS)/01_first-sst-2: $(FILES_01_first)",
        "\t@$(RUN) 01_first --set task=sst-2",
        "\t$(stamp)",
        "$(STAMPS)/03_second: $(FILES_03_second) $(STAMPS)/01_first-sst-2 $(STAMPS)/01_first-qnli",
        "\t@$(RUN) 03_second",
        "\t$(stamp)",
    ]


def test_rules_of_some_papers_have_a_file_of_their_own(written):
    written()
    path = rules.write_rules("quick", ["pande2021", "clark2019"])
    assert path.name == "clark2019+pande2021.mk"
    assert path.with_name("all.mk").exists()


def test_parameter_files_change_only_with_their_parameters(written, study: Study):
    written()
    folder = study.folder / "results/quick/cache/parameters"
    for path in folder.iterdir():
        os.utime(path, (1000, 1000))
    times = lambda: {path.stem: path.stat().st_mtime == 1000 for path in folder.iterdir()}  # noqa: E731
    study.profile("quick", "# a comment\ncommon: {tasks: [sst-2, qnli]}\n01_first:")
    written()
    assert times() == {"01_first": True, "03_second": True}
    study.profile("quick", "common: {tasks: [sst-2, qnli]}\n01_first: {n: 4}")
    written()
    assert times() == {"01_first": False, "03_second": True}


def test_rules_refuse_a_wrong_list_of_tasks(written, study: Study):
    study.profile("quick", "common: {tasks: mrpc}")
    assert "parameter tasks is 'mrpc': give a list" in error_of(rules.write_rules, "quick")


def test_wrong_input_is_one_line(written, study: Study, capsys):
    study.profile("quick", "common: {tasks: []}")
    assert rules.main(["--profile", "quick"]) == 1
    assert capsys.readouterr().err.startswith("error: 03_second: tasks is empty: choose from mrpc, qqp")
