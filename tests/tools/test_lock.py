"""The lock holds for every system and Python: conditions, and promises in the documents."""

import importlib.util
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from analysis.files import ROOT

SPECIFICATION = importlib.util.spec_from_file_location("lock", ROOT / "tools/lock.py")
lock = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(lock)

LINUX, ARM, MAC, WINDOWS = lock.SYSTEMS


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("a", set(lock.PLACES)),
        ("a; sys_platform == 'win32'", {(WINDOWS, python) for python in lock.PYTHONS}),
        ("a; os_name == 'nt' and python_version < '3.13'", {(WINDOWS, "3.11"), (WINDOWS, "3.12")}),
        ("a; platform_system == 'Darwin'", {(MAC, python) for python in lock.PYTHONS}),
        ("a; python_version == '3.12'", {(system, "3.12") for system in lock.SYSTEMS}),
        ("a; sys_platform != 'linux' and python_version == '3.12'", {(MAC, "3.12"), (WINDOWS, "3.12")}),
        ("a; extra == 'test'", set()),
    ],
)
def test_condition_of_a_requirement(text: str, places: set):
    """A condition holds where it should; the condition written for some places holds only there."""
    assert {place for place in lock.PLACES if lock.applies(Requirement(text), place)} == places
    if places and places != set(lock.PLACES):
        again = Requirement(f"a; {lock.condition(places)}")
        assert {place for place in lock.PLACES if lock.applies(again, place)} == places


@pytest.mark.parametrize("places", [{(LINUX, "3.11")}, {(MAC, "3.11"), (WINDOWS, "3.12")}])
def test_no_simple_condition(places: set):
    with pytest.raises(ValueError, match="pin it by hand"):
        lock.condition(places)


def test_lock_has_no_packages_of_one_machine():
    names = {pin.name for pin in lock.pinned()}
    assert {"torch", "numpy", "h5netcdf", "h5py"} <= names
    assert not {name for name in names if lock.CUDA.fullmatch(name)}
    assert not {"netcdf4", "scour"} & names, "they have no wheels everywhere"
    assert "+" not in "".join(str(pin.specifier) for pin in lock.pinned())


def test_the_same_pythons_everywhere():
    """In the lock's check, pyproject.toml, environment.yml, the Makefile and the documents."""
    least, last = lock.PYTHONS[0], lock.PYTHONS[-1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    allowed = SpecifierSet(project["requires-python"])
    minor = int(last.partition(".")[2])
    assert [f"3.{number}" for number in range(minor + 3) if f"3.{number}.0" in allowed] == [*lock.PYTHONS]
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    assert f"python{project['requires-python']}" in conda
    pair = (f"({least.replace('.', ', ')})", f"({last.replace('.', ', ')})")
    assert f"{pair[0]} <= v <= {pair[1]}" in (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"Python {least} to {last}" in (ROOT / "docs/install.md").read_text(encoding="utf-8")


def test_too_old_a_python_is_refused_before_the_first_download(tmp_path):
    old = tmp_path / "python"
    old.write_text(
        f"#!{sys.executable}\nimport collections, sys\n"
        "Info = collections.namedtuple('Info', 'major minor')\nsys.version_info = Info(3, 10)\n"
        "assert sys.argv[1] == '-c', 'more than the check is run'\nexec(sys.argv[2])\n"
    )
    old.chmod(0o755)
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        (folder / name).write_bytes((ROOT / name).read_bytes())
    run = subprocess.run(["make", "lint", f"BASE={old}"], cwd=folder, capture_output=True, text=True)
    assert run.returncode != 0
    assert "error: Python 3.11 to 3.14 is needed" in run.stderr
    assert not (folder / ".venv").exists()
