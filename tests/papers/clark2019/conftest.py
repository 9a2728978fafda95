from pathlib import Path

import pandas as pd
import pytest
from treebanks import write

from analysis.texts.dependencies import read_trees
from analysis.texts.passages import bundled_documents


@pytest.fixture(scope="session")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("documents"), bundled_documents(4, "train", 0))


@pytest.fixture(scope="session")
def words(bundled: Path) -> pd.DataFrame:
    return read_trees([bundled]).words
