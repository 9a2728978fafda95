"""Which runs a profile has, and which of them another needs."""

import pytest
from studies import Study, error_of

from analysis.study.discovery import paper_names
from analysis.study.plan import plan

PROFILE = '# %% tags=["parameters"]\nprofile = "quick"\n'
TASK, STATE, TASKS = 'task = "mrpc"\n', 'state = "pretrained"\n', 'tasks = ["mrpc", "sst-2"]\n'


@pytest.fixture
def shaped(study: Study) -> Study:
    """Notebooks with the shape of the real ones, of two papers."""
    for name, parameters, header in (
        ("00_train", TASK, "{}"),
        ("01_read", TASK + STATE, "{after: [{00_train: {state: finetuned}}]}"),
        ("02_show", TASK, "{paper: pande2021, after: [01_read]}"),
        ("03_join", TASKS, "{paper: pande2021, after: [02_show]}"),
        (
            "04_tune",
            'tasks = ["rte"]\n',
            "{paper: clark2019, after: [00_train, {01_read: {state: pretrained}}]}",
        ),
        ("05_free", "", "{paper: clark2019}"),
        ("06_across", "", "{after: [03_join, 04_tune]}"),
        ("99_last", "", "{after: all}"),
    ):
        study.notebook(name, parameters=PROFILE + parameters, study=header)
    study.profile("quick", "04_tune: {tasks: [qnli]}")
    return study


def names(profile: str, *papers: str) -> dict[str, set[str]]:
    return {run.name: {other.name for other in needs} for run, needs in plan(profile, papers).items()}


def test_runs_and_what_they_need(shaped: Study):
    found = names("quick")
    last = found.pop("99_last")
    assert last == {*found}
    assert found == {
        "00_train-mrpc": set(),
        "00_train-qnli": set(),
        "00_train-sst-2": set(),
        "01_read-mrpc-finetuned": {"00_train-mrpc"},
        "01_read-mrpc-pretrained": set(),
        "01_read-qnli-pretrained": set(),
        "01_read-sst-2-finetuned": {"00_train-sst-2"},
        "01_read-sst-2-pretrained": set(),
        "02_show-mrpc": {"01_read-mrpc-pretrained", "01_read-mrpc-finetuned"},
        "02_show-sst-2": {"01_read-sst-2-pretrained", "01_read-sst-2-finetuned"},
        "03_join": {"02_show-mrpc", "02_show-sst-2"},
        "04_tune": {"00_train-qnli", "01_read-qnli-pretrained"},
        "05_free": set(),
        "06_across": {"03_join", "04_tune"},
    }


def test_one_paper_and_what_it_needs(shaped: Study):
    found = {"00_train-qnli", "01_read-qnli-pretrained", "04_tune", "05_free"}
    assert names("quick", "clark2019") == {
        "00_train-qnli": set(),
        "01_read-qnli-pretrained": set(),
        "04_tune": {"00_train-qnli", "01_read-qnli-pretrained"},
        "05_free": set(),
        "99_last": found,
    }
    both = names("quick", "clark2019", "pande2021")
    assert names("quick").keys() - both.keys() == {"06_across"}


@pytest.mark.parametrize(
    ("tasks", "wrong"), [("[mrpc, nonsense]", "task 'nonsense' is unknown"), ("[]", "tasks is empty")]
)
def test_wrong_tasks(shaped: Study, tasks: str, wrong: str):
    shaped.profile("quick", f"04_tune: {{tasks: {tasks}}}")
    assert error_of(plan, "quick").startswith(f"04_tune: {wrong}: choose from mrpc, ")


def test_unknown_paper(shaped: Study):
    known = ", ".join(paper_names())
    assert error_of(plan, "quick", ["clark1999"]) == f"unknown paper 'clark1999': choose from {known}"


def test_notebook_that_cannot_say_for_which_tasks(shaped: Study):
    shaped.notebook("07_unclear", parameters=PROFILE, study="{after: [00_train]}")
    assert error_of(plan, "quick") == (
        "07_unclear comes after 00_train, which runs per task: give it a parameter task or tasks"
    )
