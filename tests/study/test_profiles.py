"""Parameters and profiles: what overrides what, and one line for everything that is wrong."""

import pytest
from studies import PARAMETERS, Study, error_of

from analysis.study import parameters, profiles
from analysis.study.runs import Folders


def test_precedence(study: Study):
    """Each layer overrides those before it and leaves values alone that it does not name."""
    study.notebook("01_first")
    study.notebook("02_second", parameters=PARAMETERS + "elsewhere: int = 0\n")
    study.profile("other", "common: {n: 10, rate: 0.5, elsewhere: 9}\n01_first: {n: 20, flag: true}\n")
    defaults = {"task": "mrpc", "checkpoint": None, "words": ["a", "b"]}
    expected = defaults | {"profile": "other", "n": 30, "rate": 0.5, "flag": True}
    assert profiles.parameters("01_first", "other", {"n": 30}) == expected
    assert profiles.parameters("01_first", "other")["n"] == 20
    assert profiles.parameters("02_second", "other")["n"] == 10
    assert parameters.declared("01_first")["n"] == 3


@pytest.mark.parametrize("text", ["", "common:\n01_first:\n"])
def test_empty_profiles_leave_the_defaults(study: Study, text: str):
    study.notebook("01_first")
    study.profile("quick", text)
    assert profiles.parameters("01_first", "quick") == parameters.declared("01_first")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("comon: {n: 1}", "unknown section 'comon': choose from 01_first, 02_second, common"),
        ("common: {m: 1}", "unknown key 'm' in section 'common': choose from checkpoint, elsewhere, flag, n"),
        ("01_first: {elsewhere: 1}", "unknown key 'elsewhere' in section '01_first': choose from checkpoint"),
        ("common: {profile: x}", "unknown key 'profile' in section 'common': choose from checkpoint"),
        ("common: [n]", "write sections such as 'common:', and below them indented lines 'name: value'"),
        ("common: {n: 1", "is not valid YAML: while parsing"),
        ("common:\n  n: 1\n  rate: 2\n  n: 3\n", "'n' stands twice: delete one of them"),
        ("common: {n: 1}\n01_first:\ncommon:\n", "'common' stands twice: delete one of them"),
        ("[common]", "write sections such as"),
    ],
)
def test_wrong_profile(study: Study, text: str, expected: str):
    study.notebook("01_first")
    study.notebook("02_second", parameters=PARAMETERS + "elsewhere: int = 0\n")
    path = study.profile("quick", text)
    message = error_of(profiles.load_profile, "quick")
    assert message.startswith(str(path))
    assert expected in message


@pytest.mark.parametrize(("name", "value"), [("parser", "gold"), ("conllu", [])])
def test_a_profile_on_real_texts_does_not_fall_back_to_made_up_ones(study: Study, name: str, value: object):
    kind = "str" if isinstance(value, str) else "list[str]"
    more = f"source: str | None = None\n{name}: {kind} = {value!r}\n"
    study.notebook("01_first", parameters=PARAMETERS + more)
    profiles.write_parameters("quick")
    study.profile("quick", "common: {source: ~/glue}\n")
    message = error_of(profiles.write_parameters, "quick")
    assert message == (
        f"01_first: parameter {name} is {value!r}, made-up texts, in a profile on real ones: name its files"
    )


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (
            "common: {source: bundled}",
            "task 'toy-qqp' is made up and has no source: leave source out, or name qqp to read bundled",
        ),
        (
            "common: {tasks: [mrpc]}",
            "task 'mrpc' needs a source: give hub or a folder of GLUE files, or name toy-mrpc, which needs none",
        ),
        (
            "common: {source: ~/glue}",
            "task 'toy-qqp' is made up and has no source: leave source out, or name qqp to read ~/glue",
        ),
    ],
)
def test_tasks_fit_the_source(study: Study, profile: str, message: str):
    """Also in notebooks that read no texts."""
    study.notebook("01_first", parameters=PARAMETERS + 'source: str | None = None\nparser: str = "gold"\n')
    study.notebook("02_second", parameters=PARAMETERS + 'tasks: list[str] = ["toy-qqp"]\n')
    study.profile("quick", profile)
    assert error_of(profiles.write_parameters, "quick").startswith(message)


def test_the_profiles_on_real_texts_name_their_files(tmp_path, monkeypatch):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    for profile in ("glue-minilm", "glue-mpnet", "glue-bert", "paper"):
        profiles.write_parameters(profile)


def test_a_profile_like_another_one(study: Study):
    """It replaces single values; its list of notebooks that are not run replaces the other one."""
    study.notebook("01_first")
    study.notebook("02_second")
    study.profile("base", "not_run: [02_second]\ncommon: {n: 10, rate: 0.5}\n01_first: {flag: true}\n")
    study.profile("mine", "like: base\ncommon: {n: 20}\n01_first:\n")
    shared = {"rate": 0.5, "flag": True}
    expected = profiles.parameters("01_first", "base") | {"profile": "mine", "n": 20} | shared
    assert profiles.parameters("01_first", "mine") == expected
    assert profiles.not_run("mine") == ["02_second"]
    study.profile("mine", "like: base\nnot_run:\n")
    assert profiles.not_run("mine") == []


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("like: mine", "like: base is itself like mine: name a profile that is like no other one"),
        ("like: quick", "like: base is itself like quick: name a profile that is like no other one"),
        (None, "like: unknown profile 'base': choose from"),
    ],
)
def test_like_reaches_one_profile(study: Study, other: str | None, message: str):
    """A circle and a chain are one line, as is a profile that does not exist."""
    study.notebook("01_first")
    study.profile("mine", "like: base")
    if other:
        study.profile("base", other)
    assert error_of(profiles.load_profile, "mine").startswith(f"{study.profiles / 'mine.yaml'}: {message}")


def test_notebooks_that_are_not_run_have_no_tasks(study: Study):
    study.notebook("01_first", parameters=PARAMETERS + 'tasks: list[str] = ["toy-qqp"]\n')
    study.notebook("02_second", parameters=PARAMETERS + 'tasks: list[str] = ["toy-mrpc"]\n')
    study.profile("quick", "not_run: [02_second]\ncommon: {n: 1}\n")
    profiles.write_parameters("quick")
    tasks = (Folders("quick").cache / "tasks.mk").read_text()
    assert "01_first.tasks := toy-qqp\n" in tasks
    assert "NOT_RUN := 02_second\n" in tasks
    assert "02_second.tasks" not in tasks
    study.profile("quick", "not_run: [03_third]\n")
    assert "not_run: unknown notebook '03_third'" in error_of(profiles.write_parameters, "quick")
