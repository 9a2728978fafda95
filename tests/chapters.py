"""Cells of notebooks, run on few sequences without a kernel."""

from collections.abc import Mapping

import jupytext
import matplotlib.pyplot as plt
import xarray as xr

from analysis.study import parameters, results


def opened_results(
    monkeypatch, scores: xr.DataArray, controls: Mapping[str, xr.DataArray]
) -> results.Results:
    """What notebooks open as their results: with these scores and controls for every task and run."""
    saved = results.Results("offline")
    monkeypatch.setattr(saved, "load_scores", lambda task, run: scores)
    monkeypatch.setattr(saved, "load_controls", lambda task, run: controls)
    monkeypatch.setattr(saved, "save_figure", lambda figure, name, caption: figure.canvas.draw())
    monkeypatch.setattr(results, "Results", lambda profile: plt.switch_backend("agg") or saved)
    return saved


def run_cells(notebook: str, fewer: str) -> None:
    """Runs the cells of a notebook, with this line below its parameters."""
    cells = jupytext.read(parameters.source(notebook)).cells
    first, *others = (cell.source for cell in cells if cell.cell_type == "code")
    exec(compile("\n".join([first, fewer, *others]), notebook, "exec"), {})
