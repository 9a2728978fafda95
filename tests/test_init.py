"""What the package offers by name is the same whatever was imported before."""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import analysis
from analysis.files import ROOT

NAMES = ("Example", "load_encoder", "load_examples", "parse", "extract", "role_table", "sieve")


def test_names_of_the_package_are_no_modules():
    code = f"from analysis import {', '.join(NAMES)}\nassert all(map(callable, ({', '.join(NAMES)})))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_the_same_when_their_modules_were_imported_before(name: str):
    for module in ("scores.extraction", "texts.syntax", "texts.tasks"):
        import_module(f"analysis.{module}")
    assert callable(getattr(analysis, name))


def test_no_name_is_that_of_a_module():
    modules = {path.stem for path in (ROOT / "analysis").iterdir()}
    assert set(analysis.__all__).isdisjoint(modules)


def test_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        analysis.nonsense  # noqa: B018


def test_statistics_do_not_load_torch():
    code = "import sys; from analysis import role_table, Results; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


def test_public_functions_name_all_their_options():
    """No function of the public interface hides its options behind `**options`."""
    functions = [each for name in analysis.__all__ if inspect.isfunction(each := getattr(analysis, name))]
    assert len(functions) > 6
    for function in functions:
        kinds = {each.kind for each in inspect.signature(function).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, function
