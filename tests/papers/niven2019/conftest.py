from pathlib import Path

import pytest

from analysis.papers.niven2019.arguments import SPLITS, Argument, load_arguments


@pytest.fixture(scope="session")
def arct_folder(data_dir: Path) -> Path:
    folder = data_dir / "arct"
    if not folder.is_dir():
        pytest.skip("DATA_DIR holds no arct")
    return folder


@pytest.fixture(scope="session")
def arct(arct_folder: Path) -> dict[str, list[Argument]]:
    return {split: load_arguments(arct_folder, split) for split in SPLITS}
