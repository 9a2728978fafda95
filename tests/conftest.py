"""Checks the array shapes written in signatures while the tests run, and finds the optional data."""

import os
from collections.abc import Iterator
from pathlib import Path

from jaxtyping import install_import_hook

# Workers share the cores; it counts before torch is imported, here and in the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import analysis.scores.kernel  # noqa: E402, F401  (compiled functions cannot be wrapped by the hook)

# Where shapes matter; wrapping every module would cost more than half of the time of the tests.
install_import_hook(["analysis.encoders", "analysis.scores", "analysis.statistics"], "beartype.beartype")

# The hook must stand before the first import of the package.
import matplotlib.pyplot as plt  # noqa: E402
import pytest  # noqa: E402
from studies import Study  # noqa: E402

# The upper floors, whose tests run whole notebooks, clusters and papers, so that their files take the longest.
FIRST = ("study", "scale", "papers")


def pytest_configure(config: pytest.Config) -> None:
    """Workers take files in the order below, not those with most tests first, which are the quickest."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files start first, so that no worker waits for the last one."""
    place = {folder: number for number, folder in enumerate(FIRST)}
    tests = Path(__file__).parent
    items.sort(key=lambda item: place.get(item.path.relative_to(tests).parts[0], len(place)))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder DATA_DIR names; tests that need it are skipped where it is unset."""
    folder = os.environ.get("DATA_DIR")
    if not folder:
        pytest.skip("DATA_DIR is not set: it names the folder that holds glue/, ud_english_ewt/ and ontogum/")
    return Path(folder)


@pytest.fixture(scope="session")
def spacy_parser() -> str:
    """The spaCy pipeline PARSER names; tests that need it are skipped where it is unset."""
    parser = os.environ.get("PARSER")
    if not parser:
        pytest.skip("PARSER is not set: it names a spaCy pipeline (a package or a folder)")
    return parser


@pytest.fixture
def study(tmp_path: Path, monkeypatch) -> Study:
    """An empty study with one profile, `quick`, that the runner takes for its own."""
    return Study(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """No test leaves a figure open."""
    yield
    plt.close("all")
