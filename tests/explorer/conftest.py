"""Role tables and packed sentences for the tests of the head explorer."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from headtables import ROLES, TASKS, role_tables, value_tables
from studies import HOUR

from analysis.encoders.models import Encoder
from analysis.explorer.packing import Sentence, pack
from analysis.explorer.view import explorer
from analysis.texts.glue import load_examples
from analysis.texts.syntax import parse
from analysis.texts.tasks import toy

PATIENCE = 1000 * HOUR  # milliseconds that a busy machine may take to show something


@pytest.fixture(scope="session")
def tables() -> pd.DataFrame:
    return role_tables()


@pytest.fixture(scope="session")
def sentences(tiny: Encoder) -> list[Sentence]:
    """Two sentences of each task, in the pre-trained state alone."""
    packed = []
    for task in TASKS:
        examples = load_examples(toy(task), split="dev", n=2, seed=0)
        packed += pack(tiny, examples, parse(examples), ROLES, "pretrained", task)
    return packed


@pytest.fixture(scope="session")
def study_page(tables, sentences, tmp_path_factory) -> Path:
    """A page of two tasks and two states with two other numbers of heads."""
    page = explorer(tables, sentences, values=value_tables())
    return page.save(tmp_path_factory.mktemp("page") / "explorer.html")


class Visit:
    """A page in a browser without a network; records its requests and errors."""

    def __init__(self, browser, path: Path, address: str = "", width: int = 1440, **options):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.context.set_offline(True)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(path.as_uri() + address)

    def ready(self) -> "Visit":
        self.page.wait_for_selector("body[data-ready]", timeout=PATIENCE)
        return self

    def end(self) -> None:
        """Closes the page and checks that it had no error and sent no request."""
        self.context.close()
        assert self.errors == []
        assert {url.split(":")[0] for url in self.requests} <= {"file", "data", "blob", "about"}


@pytest.fixture
def visit(browser) -> Iterator[Callable[..., Visit]]:
    """Opens pages and checks at the end that none had an error or sent a request."""
    opened: list[Visit] = []

    def start(*arguments, **options) -> Visit:
        opened.append(Visit(browser, *arguments, **options))
        return opened[-1]

    yield start
    for opened_page in opened:
        opened_page.end()


@pytest.fixture
def show(visit, study_page) -> Callable:
    """Opens the page of the study at an address and gives it to the test when it is ready."""

    def shown(address: str = "", **options):
        return visit(study_page, address, **options).ready().page

    return shown
