"""A small study of its own for a test: notebooks, profiles and results in a temporary folder."""

from pathlib import Path

import pytest

from analysis.errors import InputError
from analysis.study import profiles

HEADER = """# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # A notebook

"""
PARAMETERS = """# %% tags=["parameters"]
profile = "quick"
task = "mrpc"  # with a comment
n = 3
rate = 1e-4
flag = False
checkpoint = None
words = ["a", "b"]
"""


class Study:
    """A folder of notebooks and one of profiles that the runner takes for its own."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder, self.notebooks, self.profiles = folder, folder / "notebooks", folder / "profiles"
        for name, path in (("NOTEBOOKS", self.notebooks), ("PROFILES", self.profiles)):
            path.mkdir()
            monkeypatch.setattr(profiles, name, path)
        monkeypatch.setenv("RESULTS_DIR", str(folder / "results"))
        self.profile("quick", "common:\n  n: 5\n")

    def notebook(self, name: str, *cells: str, parameters: str = PARAMETERS) -> None:
        text = HEADER + parameters + "".join(f"\n# %%\n{cell}\n" for cell in cells)
        (self.notebooks / f"{name}.py").write_text(text)

    def profile(self, name: str, text: str) -> Path:
        path = self.profiles / f"{name}.yaml"
        path.write_text(text)
        return path

    def files(self) -> set[str]:
        results = self.folder / "results"
        return {str(path.relative_to(results)) for path in results.rglob("*") if path.is_file()}


def error_of(function, *arguments) -> str:
    """The message of the InputError that a call raises, checked to be one line."""
    with pytest.raises(InputError) as caught:
        function(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message
