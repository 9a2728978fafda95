"""Where the files of a profile lie."""

import os
from pathlib import Path

from analysis.files import ROOT

STATES = ("pretrained", "finetuned")


class Folders:
    """The folders of one profile under results/<profile>/ (or under RESULTS_DIR, where that is set)."""

    def __init__(self, profile: str):
        self.folder = Path(os.environ.get("RESULTS_DIR", ROOT / "results")) / profile
        self.notebooks = self.folder / "notebooks"
        self.figures = self.folder / "figures"
        self.tables = self.folder / "tables"
        self.cache = self.folder / "cache"
