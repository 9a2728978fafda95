"""Values of parameters: each has the type of its annotation and lies in its range, or ends in one line."""

import pytest
import yaml
from studies import Study, error_of

from analysis.study import parameters, profiles


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("task", None, "str"),
        ("n", True, "int"),
        ("n", 2.5, "int"),
        ("n", 2.0, "int"),
        ("n", None, "int"),
        ("rate", "1e-4", "float (YAML reads 1e-4 as text: write 1.0e-4)"),
        ("words", ["a", 1], "list[str]"),
        ("flag", 1, "bool"),
        ("words", "a", "list[str]"),
        ("checkpoint", 5, "str | None"),
    ],
)
def test_value_of_another_kind(study: Study, name: str, value: object, kind: str):
    """YAML reads 1e-4 as text: a number that silently became text would fail far from its cause."""
    study.notebook("01_first")
    for settings, text in (({name: value}, ""), ({}, yaml.safe_dump({"common": {name: value}}))):
        study.profile("quick", text)
        message = error_of(profiles.parameters, "01_first", "quick", settings)
        assert message == f"01_first: parameter {name} is {value!r}: give {kind}"


@pytest.mark.parametrize("profile", [path.stem for path in sorted(profiles.PROFILES.glob("*.yaml"))])
def test_every_profile_is_in_the_declared_ranges(profile: str):
    """And every number of a notebook has a range."""
    ranges = parameters.declared_ranges()
    for notebook in parameters.notebook_names():
        values = profiles.parameters(notebook, profile)
        numbers = {name for name, value in values.items() if type(value) in (int, float)}
        assert numbers - ranges.keys() == set()


BOUNDARIES = {  # a value at each end that the condition refuses
    "least": lambda limit: limit - 1,
    "above": lambda limit: limit,
    "most": lambda limit: limit + 1,
    "below": lambda limit: limit,
    "choices": lambda _: "nosuch",
}


def test_values_out_of_their_range_are_one_line_before_a_kernel_starts():
    """The sweep: every condition of every parameter of every notebook, nan, and lists without or with equal entries."""
    ranges = parameters.declared_ranges()
    swept = 0
    for notebook in parameters.notebook_names():
        values = profiles.parameters(notebook, "smoke")
        for name in ranges.keys() & values.keys():
            for condition, limit in ranges[name].items():
                wrong = BOUNDARIES.get(condition, lambda _: values[name])(limit)  # noqa: B023
                if condition == "entries":
                    wrong = []
                elif condition == "distinct":
                    wrong = (values[name] or [[0, 0]])[:1] * 2
                elif isinstance(values[name], list):
                    wrong = [wrong]
                message = error_of(profiles.parameters, notebook, "smoke", {name: wrong})
                assert message.startswith(f"{notebook}: parameter {name} is "), message
                swept += 1
    assert swept > 300
    for wrong in (float("nan"), -1.0, 0.0):
        assert error_of(profiles.parameters, "03_test", "smoke", {"tau": wrong}).endswith("give more than 0")
