"""The site of `make report`: every link leads somewhere, and it is read without a network."""

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from studies import HOUR

from analysis.files import ROOT

pytestmark = pytest.mark.slow
RUNS = ("06_michel_ablation", "99_summary")  # with formulas, figures, folded set-up and tables
LOADS = {"script": "src", "img": "src", "iframe": "src", "link": "href"}


HEIGHTS = "[...document.querySelectorAll('math')].map(formula => formula.getBoundingClientRect().height)"


class Page(HTMLParser):
    """Ids, links, what the browser loads, formulas and headings of a page."""

    def __init__(self, path: Path):
        super().__init__()
        self.ids, self.links, self.loads, self.pictures, self.tags = set(), [], [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        self.ids |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag == "img":
            self.pictures.append(attributes)
        if LOADS.get(tag) in attributes:
            self.loads.append(attributes[LOADS[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site of a few committed results of one profile, whose index names more."""
    folder = tmp_path_factory.mktemp("site")
    results = folder / "results/glue-minilm"
    committed = ROOT / "results/glue-minilm"
    shutil.copytree(committed / "figures", results / "figures")
    (results / "notebooks").mkdir()
    for name in ("README.md", "explorer.html", *(f"notebooks/{run}.ipynb" for run in RUNS)):
        shutil.copy(committed / name, results / name)
    command = [
        "make",
        "report",
        "PROFILE=glue-minilm",
        f"RESULTS_DIR={results.parent}",
        f"SITE={folder}/html",
    ]
    names = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    absent = re.findall(
        r"no link to results/glue-minilm/notebooks/([\w-]+)\.ipynb, which is not there", done.stdout
    )
    assert "07_kovaleva_patterns" in absent
    assert "/figures/" not in done.stdout  # which a profile need not draw
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def chapter(pages: dict[Path, Page], name: str) -> Page:
    (page,) = [page for path, page in pages.items() if path.name == f"{name}.html"]
    return page


def test_no_link_is_dead(site: Path, pages: dict[Path, Page]):
    """Pages, files and anchors are there; addresses elsewhere have the right form."""
    assert len(pages) > 25
    dead = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            url = urlsplit(link)
            if url.scheme in ("http", "https"):
                dead += [] if "." in url.netloc and " " not in link else [(path, link)]
            elif url.scheme != "data":
                target = (path.parent / unquote(url.path)).resolve() if url.path else path
                anchors = {"", *pages[target].ids} if target in pages else {unquote(url.fragment)}
                found = target.is_file() and unquote(url.fragment) in anchors
                dead += [] if found else [(path, link)]
    assert [(str(path.relative_to(site)), link) for path, link in dead] == []


def test_a_page_needs_no_network(pages: dict[Path, Page]):
    loads = {link for page in pages.values() for link in page.loads}
    assert len(loads) > 20
    assert [link for link in loads if urlsplit(link).scheme not in ("", "data")] == []


def test_formulas_are_mathml(site: Path, pages: dict[Path, Page]):
    assert chapter(pages, "06_michel_ablation").tags.count("math") >= 5
    assert chapter(pages, "method").tags.count("math") >= 30
    for path in site.glob("results/*/notebooks/*.html"):
        assert "$$" not in path.read_text(encoding="utf-8")


def test_a_phone_shows_pages_without_a_network(browser, site: Path):
    """Formulas have a height, nothing is wider than the screen, and no script fails."""
    requests, errors, formulas, widths = [], [], {}, {}
    context = browser.new_context(viewport={"width": 390, "height": 900})
    context.set_offline(True)
    context.set_default_timeout(1000 * HOUR)
    page = context.new_page()
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    for name in ("index", "results/glue-minilm/notebooks/06_michel_ablation", "docs/claims", "docs/method"):
        page.goto((site / f"{name}.html").as_uri())
        widths[name] = page.evaluate("document.documentElement.scrollWidth")
        formulas[name] = page.evaluate(HEIGHTS)
    context.close()
    assert errors == []
    assert {urlsplit(url).scheme for url in requests} <= {"file", "data"}
    assert {*widths.values()} == {390}
    assert len(formulas["docs/method"]) >= 30
    assert min(formulas["docs/method"]) > 5


def test_a_chapter_has_its_figures_its_notebook_and_one_title(site: Path, pages: dict[Path, Page]):
    """The set-up is hidden until it is asked for; the links to the neighbours are those of the site."""
    for run in RUNS:
        page = chapter(pages, run)
        notebook = nbformat.read(ROOT / f"results/glue-minilm/notebooks/{run}.ipynb", as_version=4)
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
        pictures = [output for output in outputs if "image/png" in output.get("data", {})]
        texts = [output.metadata["image/png"]["alt"] for output in pictures]
        assert texts
        assert {*texts} <= {picture.get("alt") for picture in page.pictures}
        assert page.tags.count("details") >= 1
        assert [link for link in page.links if link.endswith(".ipynb")]
        text = (site / f"results/glue-minilm/notebooks/{run}.html").read_text(encoding="utf-8")
        article = text.partition("<article")[2].partition("</article>")[0]
        assert article.count("<h1") == 1
        assert "CPU seconds.</em>" in article
        assert 'href="../index.html"' not in article


def test_the_contents_list_chapters_documents_and_papers(pages: dict[Path, Page]):
    links = chapter(pages, "method").links
    assert [link for link in links if link.endswith("06_michel_ablation.html")]
    assert [link for link in links if link.endswith("CHANGELOG.html")]
    assert len({link for link in links if link.startswith("https://arxiv.org/abs/")}) == 6
