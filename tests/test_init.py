"""What the package offers by name is the same whatever was imported before."""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import analysis
from analysis.files import ROOT

NAMES = ("Example", "load_encoder", "load_examples", "parse", "extract", "role_table", "sieve")


@pytest.mark.parametrize("name", NAMES)
def test_names_are_the_same_when_their_modules_were_imported_before(name: str):
    for module in ("scores.extraction", "texts.syntax", "texts.tasks"):
        import_module(f"analysis.{module}")
    assert callable(getattr(analysis, name))


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
