"""What goes to others: workflows, the image, the citation, and the source distribution."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from analysis.files import ROOT, git

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_what_they_pin_and_hold_no_more_rights_than_they_use(path: Path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert steps
    for job in workflow["jobs"].values():
        foreign = [step for step in job["steps"] if "run" in step or "checkout" in step.get("uses", "")]
        assert not (foreign and "permissions" in job), "only a job that runs none of the code may write"
    for step in steps:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])
        if "checkout" in step["uses"]:
            assert step["with"]["persist-credentials"] is False


def test_the_image_runs_as_a_user_and_installs_from_what_it_copies_first(tmp_path: Path):
    """JupyterLab refuses root, and hears the outside at all addresses alone; Codespaces start with the same user."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    install = "RUN make install install-site TORCH=cpu"
    for names in (line.split()[2:] for line in lines[: lines.index(install)] if line.startswith("COPY")):
        for name in names[:-1]:
            target = tmp_path / (name if names[-1] == "./" else names[-1])
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [*install.removeprefix("RUN ").split(), "--dry-run"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "tools/install.py --no-deps" in done.stdout
    (user,) = (line.removeprefix("USER ") for line in lines if line.startswith("USER "))
    assert any(f"useradd --create-home {user} " in line for line in lines)
    start = json.loads(lines[-1].removeprefix("CMD "))
    assert start == ["make", "notebook", "LAB=--ip=0.0.0.0 --no-browser"]
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    assert container["remoteUser"] == user


def test_the_citation_has_a_year_and_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == project["version"]
    assert citation["date-released"].year >= 2026


@pytest.mark.slow
def test_the_source_distribution_is_the_whole_study(tmp_path: Path):
    listed = git("ls-files", "-z")
    if listed is None:
        pytest.skip("no clone: the files of a release are not known")
    names = {name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    build = "from setuptools.build_meta import build_sdist; build_sdist('build/sdist')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True)
    (archive,) = (tmp_path / "build/sdist").glob("*.tar.gz")
    with tarfile.open(archive) as file:
        packed = {name.partition("/")[2] for name in file.getnames()}
    assert names - packed == set()
