"""What the tests of this paper share."""

from pathlib import Path

import pytest

from analysis.texts.chains import Document, read_chains


@pytest.fixture(scope="session")
def ontogum(data_dir: Path) -> list[Document]:
    """OntoGUM's development and test documents, which two files of tests read and none changes."""
    return read_chains(sorted((data_dir / "ontogum").glob("*/*.conllu"))).documents
