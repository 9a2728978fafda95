"""What goes to others: workflows, the citation, and the source distribution."""

import re
import shutil
import subprocess
import sys
import tarfile
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


def test_the_citation_has_a_year_and_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    version = re.search(
        r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert citation["version"] == version[1]
    assert citation["date-released"].year >= 2026


def test_the_source_distribution_is_the_whole_study(tmp_path: Path):
    """All that git has: Make, notebooks, profiles, results, tests."""
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
