"""Checks the array shapes written in signatures while the tests run, and finds the optional data."""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

from jaxtyping import install_import_hook

# A process that is started in the background (nohup, cron) ignores SIGINT, and so would the processes that tests stop.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Workers share the cores. This must be set before torch is imported, here and in processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Check shapes in these modules only; wrapping every module would take more than half of the tests' time.
CHECKED = ["analysis.encoders", "analysis.scores", "analysis.statistics"]


class Apart(MetaPathFinder):
    """Finds the checked modules, and has jaxtyping compile them alone.

    Its own loader would compile the libraries that they import again, in every process, which takes 8 seconds.
    """

    def __init__(self, hook: MetaPathFinder):
        self.hook = hook

    def find_spec(self, fullname, path=None, target=None):
        if spec := self.hook.find_spec(fullname, path, target):
            spec.loader.exec_module = partial(self.run, spec.loader)
        return spec

    @staticmethod
    def run(loader: SourceFileLoader, module: ModuleType) -> None:
        exec(loader.source_to_code(loader.get_data(loader.path), loader.path), vars(module))


sys.meta_path.insert(0, Apart(install_import_hook(CHECKED, "beartype.beartype").hook))

# Install the hook before the first import of the package.
import matplotlib.pyplot as plt  # noqa: E402
import pytest  # noqa: E402
from studies import HOUR, Study  # noqa: E402

# Files and folders that take longest, in this order: the whole study, then what runs Make, notebooks and papers.
FIRST = ("study/test_study.py", "study/test_make.py", "study", "papers")
LEFT_OUT = "slow: make test-all runs it"
NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, NAMES)), None)


def pytest_configure(config: pytest.Config) -> None:
    """Workers take files in the order below; by default, files with most tests (the fastest) would come first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files start first, so that no worker waits for the last one."""
    folder = Path(__file__).parent
    places = {
        path: next((n for n, name in enumerate(FIRST) if path.is_relative_to(folder / name)), len(FIRST))
        for path in {item.path for item in items}
    }
    items.sort(key=lambda item: places[item.path])
    if not config.option.markexpr:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason=LEFT_OUT))


def pytest_terminal_summary(terminalreporter) -> None:
    """Counts the tests that are left out, in the place of a line for each."""
    skipped = terminalreporter.stats.get("skipped", [])
    slow = [report for report in skipped if LEFT_OUT in str(report.longrepr)]
    if slow:
        terminalreporter.stats["skipped"] = [report for report in skipped if report not in slow]
        terminalreporter.write_line(f"{len(slow)} slow tests are left out: make test-all runs them")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder that DATA_DIR names; tests that need it are skipped if it is not set."""
    folder = os.environ.get("DATA_DIR")
    if not folder:
        pytest.skip("DATA_DIR is not set: it names the folder that holds glue/, ud_english_ewt/ and ontogum/")
    return Path(folder)


@pytest.fixture(scope="session")
def spacy_parser() -> str:
    """The spaCy pipeline that PARSER names; tests that need it are skipped if it is not set."""
    parser = os.environ.get("PARSER")
    if not parser:
        pytest.skip("PARSER is not set: it names a spaCy pipeline (a package or a folder)")
    return parser


@pytest.fixture(scope="session")
def browser() -> Iterator:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if BROWSER is None:
        pytest.skip("no Chromium found: apt-get install chromium, or set BROWSER_PATH")
    api.expect.set_options(timeout=1000 * HOUR)
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def tiny():
    """The small random encoder: three layers of four heads."""
    from analysis.encoders.models import load_encoder  # and torch, which many tests do without

    return load_encoder("tiny")


@pytest.fixture
def study(tmp_path: Path, monkeypatch) -> Study:
    """An empty study with one profile, `quick`, which the runner treats as its own."""
    return Study(tmp_path, monkeypatch)


@pytest.fixture(autouse=True, scope="module")
def _frozen_heap() -> None:
    """Garbage collections skip the modules in memory; accelerate collects after every training, which took .3 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """No test leaves a figure open."""
    yield
    plt.close("all")
