"""The results in git are those of the present scripts, and the pages say what their tables say.

A result that a user has made since is no fault, nor is one that waits to be made again since the code has changed:
these tests are skipped then. tests/study/test_study.py checks the same of a fresh study.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path

import nbformat
import pytest
from consistency import (
    cells_with_extra_pictures,
    claims_that_differ,
    copies_of_other_code,
    faults_of_index,
    without_meaning,
)
from PIL import Image
from studies import runs_of, values_of

from analysis.figures.pictures import DPI
from analysis.files import ROOT, git
from analysis.study.index import verdicts
from analysis.study.pages import TEMPLATE, pages
from analysis.study.parameters import parse_name
from analysis.study.profiles import parameters
from analysis.study.provenance import records_in
from analysis.study.results import Results

PAGES = ("README.md", "docs/claims.md")
# What words and layout come from: a page made before one of these changed waits for the next run.
SOURCES = {
    "tables": ["docs/tables.yaml"],
    "index": ["analysis/study/index.py", "analysis/statistics/claims.py"],
    "pages": [TEMPLATE, "analysis/study", "analysis/statistics", ":(glob)analysis/**/claims.yaml"],
}
LOWEST = 1.5 * DPI  # pixels of a figure that shows something: those of `theme.empty` are an inch high
changed_copies = cache(copies_of_other_code)


@contextmanager
def present(profile: str, made: str, sources: list[str]) -> Iterator[None]:
    """Skips a test if results are not those in git, or if it fails and they are older than what they are made from."""
    in_git = (ROOT / ".git").exists()  # else a release: the files as they are
    if in_git and git("status", "--porcelain", "--", f"results/{profile}", *PAGES):
        pytest.skip(f"results/{profile} or a page of it is this machine's own: git checkout brings it back")
    if other := changed_copies(ROOT / "results" / profile):
        pytest.skip(f"results/{profile} waits for a run: the code of {', '.join(other)} has changed")
    commit = in_git and git("log", "-1", "--format=%H", "--", made).decode().strip()
    try:
        yield
    except AssertionError:
        if commit and git("diff", "--quiet", commit, "--", *sources) is None:
            pytest.skip(f"{made} waits for a run: {' or '.join(sources)} has changed since")
        raise


@pytest.fixture(params=["offline", "glue-minilm", "glue-mpnet"])
def folder(request, monkeypatch) -> Path:
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    path = ROOT / "results" / request.param
    assert all(any(path.glob(pattern)) for pattern in ("notebooks/*.ipynb", "tables/*.csv", "provenance/*"))
    return path


def test_copies_have_the_parameters_of_the_profile(folder: Path):
    with present(folder.name, f"results/{folder.name}/notebooks", ["profiles"]):
        different = []
        for path in folder.glob("notebooks/*.ipynb"):
            notebook, named = parse_name(path.stem)
            if values_of(nbformat.read(path, as_version=4)) != parameters(notebook, folder.name, named):
                different.append(path.stem)
        assert different == []


def test_every_table_and_figure_has_a_run_that_made_it(folder: Path):
    """Otherwise a file of an older version of the study would stay for ever."""
    with present(folder.name, f"results/{folder.name}/provenance", ["profiles"]):
        records = records_in(folder).values()
        recorded = {
            (kind, name) for record in records for kind in ("tables", "figures") for name in record[kind]
        }
        saved = {(kind, path.stem) for kind in ("tables", "figures") for path in (folder / kind).iterdir()}
        assert saved - recorded == set()


def test_no_cell_shows_more_pictures_than_it_saves(folder: Path):
    with present(folder.name, f"results/{folder.name}/notebooks", ["notebooks"]):
        assert cells_with_extra_pictures(folder) == []


def test_chapters_and_the_summary_show_the_same_numbers_of_a_claim(folder: Path):
    with present(folder.name, f"results/{folder.name}/notebooks", ["notebooks", "analysis/study/claims.py"]):
        assert claims_that_differ(folder) == []


def test_index_is_complete(folder: Path):
    """Every verdict, notebook and figure stands in it, and every link leads somewhere."""
    made = f"results/{folder.name}/README.md"
    with present(folder.name, made, SOURCES["index"]):
        assert faults_of_index(folder) == set()
        text = (ROOT / made).read_text(encoding="utf-8")
        assert re.findall(r"^- (\w+: \d.*)$", text, re.MULTILINE) == [*verdicts(folder.name)]


def test_the_figures_of_the_papers_are_pictures_of_something(folder: Path):
    """Each row of docs/figures.md links to what the profile has, but for runs that it waits for."""
    copies = {path.stem for path in (folder / "notebooks").glob("*.ipynb")}
    place, changed = rf"results/{folder.name}", {*changed_copies(folder)} | ({*runs_of(folder.name)} - copies)
    faults = []
    for row in (ROOT / "docs" / "figures.md").read_text(encoding="utf-8").splitlines():
        if {*re.findall(place + r"/notebooks/([\w-]+)\.ipynb", row)}.isdisjoint(changed):
            paths = [ROOT / path for path in re.findall(place + r"/[\w/.-]+", row)]
            faults += [path.name for path in paths if not path.is_file()]
            pictures = [path for path in paths if path.suffix == ".png" and path.is_file()]
            faults += [path.name for path in pictures if Image.open(path).height < LOWEST]
    assert faults == []


def test_every_table_and_column_has_a_meaning(folder: Path):
    with present(folder.name, f"results/{folder.name}/tables", SOURCES["tables"]):
        assert without_meaning(folder) == []


def test_pages_are_those_that_make_pages_writes(monkeypatch):
    monkeypatch.delenv("RESULTS_DIR", raising=False)
    with ExitStack() as stack:
        for page in PAGES:
            stack.enter_context(present("glue-minilm", page, SOURCES["pages"]))
        texts = pages()
        assert texts == {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
        effects = Results("glue-minilm").load_table("matching_effects").query("matching")
        named = {*re.findall(r"\b\d-\d+\b", (ROOT / TEMPLATE).read_text(encoding="utf-8").split("## How")[0])}
        assert {*(effects["layer"].astype(str) + "-" + effects["head"].astype(str))} == named
        visible = re.sub(r"\]\(.*?\)|<.*?>", "", texts["docs/claims.md"])
        assert len([word for word in visible.split() if re.search(r"[^\W\d]", word)]) <= 4_000


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch) -> Path:
    """A repository with the results of a profile and a page of docs/, in place of this one."""
    for name in ("docs/words.md", "results/offline/tables/masses.csv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("1\n")
    for command in ("init --quiet", "add .", "-c user.name=a -c user.email=a@b commit --quiet -m results"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "git", partial(git, root=tmp_path))
    return tmp_path


TABLES = "results/offline/tables"


def test_results_of_ones_own_are_no_fault(checkout: Path):
    """A run on request, and a table that differs, skip the tests of their profile, and of it alone."""
    with present("offline", TABLES, ["docs"]):
        pass
    for name in ("new.csv", "masses.csv"):
        (checkout / TABLES / name).write_text("5\n")
        with present("glue-minilm", TABLES, ["docs"]):
            pass
        with (
            pytest.raises(pytest.skip.Exception, match="is this machine's own"),
            present("offline", TABLES, []),
        ):
            pass


@pytest.mark.parametrize("changed", [True, False])
def test_a_fault_of_results_that_wait_for_a_run_is_none(checkout: Path, changed: bool):
    if changed:
        (checkout / "docs/words.md").write_text("2\n")
    outcome = pytest.skip.Exception if changed else AssertionError
    with pytest.raises(outcome), present("offline", TABLES, ["docs"]):
        raise AssertionError("a fault")
