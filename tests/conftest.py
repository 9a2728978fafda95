"""Checks the array shapes written in signatures while the tests run, and finds the optional data."""

import os
from pathlib import Path

from jaxtyping import install_import_hook

install_import_hook("analysis", "beartype.beartype")

import pytest  # noqa: E402  (the hook must stand before the first import of the package)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder DATA_DIR names; tests that need it are skipped where it is unset."""
    folder = os.environ.get("DATA_DIR")
    if not folder:
        pytest.skip("DATA_DIR is not set: it names the folder that holds glue/<TASK>/{train,dev}.tsv")
    return Path(folder)


@pytest.fixture(scope="session")
def spacy_parser() -> str:
    """The spaCy pipeline PARSER names; tests that need it are skipped where it is unset."""
    parser = os.environ.get("PARSER")
    if not parser:
        pytest.skip("PARSER is not set: it names a spaCy pipeline (a package or a folder)")
    return parser
