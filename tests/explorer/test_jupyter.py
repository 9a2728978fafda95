"""`make notebook` in a browser: a working copy is changed, run and saved, and its script stays as it was."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from studies import write_notebook

from analysis.files import ROOT

api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
expect = api.expect
pytestmark = pytest.mark.slow

PARAMETERS = '# %% tags=["parameters"]\npoints = 3\n'
FIGURE = """import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.plot(range(points))
print(points, "points")"""
VIEW = """from analysis import head_view, load_encoder

head_view(load_encoder("tiny"), "A dog sees a cat .")"""
# Of a notebook that saves a table.
SETTINGS = '# %% tags=["parameters"]\nprofile: str = "quick"\ntau: float = 3.0\n'
SAVE = """import pandas as pd

from analysis.study.results import Results

results = Results(profile)
results.save_table(pd.DataFrame({"tau": [tau]}), "thresholds")
print("saved")"""
SERVER = '{"ServerApp": {"allow_root": true, "open_browser": false}}'
START = 600  # seconds that JupyterLab may take on a busy machine
ATTEMPTS = 20
ACTION = 30_000  # milliseconds that a click may take; a tab that opens over it would hold it for ever
SLOW = 600_000  # milliseconds that a kernel may take to start and answer


@pytest.fixture
def lab(tmp_path: Path, browser) -> Iterator[str]:
    """The address of a JupyterLab that `make notebook` has started in a checkout of one notebook."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "notebooks" / ".jupyter", tmp_path / "notebooks" / ".jupyter")
    write_notebook(tmp_path / "notebooks" / "01_figure.py", FIGURE, VIEW, parameters=PARAMETERS)
    write_notebook(tmp_path / "notebooks" / "02_table.py", SAVE, parameters=SETTINGS)
    (tmp_path / "notebooks" / "ranges.yaml").write_text("tau: {above: 0}\n")
    shutil.copytree(ROOT / "analysis", tmp_path / "analysis", ignore=shutil.ignore_patterns("__pycache__"))
    settings = tmp_path / "settings"
    settings.mkdir()
    (settings / "jupyter_server_config.json").write_text(SERVER)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    variables = {"JUPYTER_PORT": str(port), "JUPYTER_TOKEN": "own", "JUPYTER_CONFIG_DIR": str(settings)}
    environment = os.environ | variables | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = ["make", "notebook", f"PYTHON={sys.executable}"]
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_for(f"{address}/api?token=own", server, tmp_path / "log")
        yield address
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(timeout=SLOW / 1000)


def wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    """Returns when the server answers; fails with the server's output if it does not."""
    for _ in range(2 * START):
        if server.poll() is not None:
            break
        try:
            urlopen(address, timeout=5).close()
            return
        except (URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"JupyterLab did not start: {log.read_text()[-2000:]}")


def test_jupyterlab_asks_nothing_and_looks_for_no_news(lab: str):
    """Its question would cover a corner of every notebook."""
    settings = f"{lab}/lab/api/settings/@jupyterlab/apputils-extension:notification?token=own"
    values = json.load(urlopen(settings))["schema"]["properties"]
    assert (values["fetchNews"]["default"], values["checkForUpdates"]["default"]) == ("false", False)


def change(cell, text: str) -> None:
    editor = cell.locator(".cm-content")
    for _ in range(ATTEMPTS):
        with suppress(AssertionError, api.TimeoutError):
            editor.click()
            editor.fill(text)
            expect(editor).to_have_text(text, timeout=5_000)
            return
    pytest.fail(f"the cell does not take {text!r}")


def run(page, cell) -> None:
    """Runs a cell by its keys and waits for its end; repeats the keys if a busy JupyterLab ignores them."""
    prompt = cell.locator(".jp-InputPrompt")
    for _ in range(ATTEMPTS):
        with suppress(AssertionError, api.TimeoutError):
            cell.locator(".cm-content").click()
            page.keyboard.press("Shift+Enter")
            expect(prompt).not_to_have_text(re.compile(r"\[ \]"), timeout=10_000)
            break
    expect(prompt).to_have_text(re.compile(r"\[\d+\]:"), timeout=SLOW)


@pytest.fixture
def page(browser) -> Iterator:
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    context.set_default_timeout(ACTION)
    context.set_default_navigation_timeout(SLOW)
    page = context.new_page()

    def accept(dialog) -> None:
        """Takes the kernel that JupyterLab proposes if a cell runs too early; the dialog may be gone by now."""
        with suppress(api.TimeoutError):
            dialog.locator(".jp-mod-accept").click(timeout=5_000)

    page.add_locator_handler(page.locator(".jp-Dialog"), accept, no_wait_after=True)
    yield page
    context.close()


def cells_of(page, lab: str, name: str):
    """The cells of a working copy, which is opened in an empty window: a tab that comes back late takes the keys."""
    page.goto(f"{lab}/lab/tree/workbook/{name}.ipynb?token=own&reset")
    tab = page.locator("#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current")
    expect(tab).to_have_text(f"{name}.ipynb", timeout=SLOW)
    return page.locator(".jp-NotebookPanel:visible .jp-Cell")


def test_a_duplicate_leaves_the_results_of_its_notebook_alone_and_is_checked(lab: str, page, tmp_path: Path):
    """Each file has a folder of its name, and is known as a copy of the notebook by its code."""
    scratch = tmp_path / "results" / "scratch"

    def saved(name: str) -> str:
        return (scratch / name / "tables" / "thresholds.csv").read_text()

    def choose(name: str, command: str) -> None:
        item = page.locator(".jp-DirListing-item").filter(has_text=re.compile(rf"^\s*{name}\.ipynb"))
        item.click(button="right")
        page.locator(".lm-Menu-itemLabel").get_by_text(command, exact=True).first.click()
        expect(page.locator(".jp-DirListing-item").filter(has_text=f"{name}-Copy1")).to_be_visible(
            timeout=SLOW
        )

    def run_with(name: str, tau: str, output: str) -> None:
        cells = cells_of(page, lab, name)
        expect(cells).to_have_count(3, timeout=SLOW)
        idle = page.locator(".jp-NotebookPanel:visible .jp-Notebook-ExecutionIndicator[data-status='idle']")
        expect(idle).to_have_count(1, timeout=SLOW)
        settings = f'profile = "quick"; tau = {tau}'
        for _ in range(ATTEMPTS):  # a busy JupyterLab may take a cell's keys, or run, in another tab
            with suppress(AssertionError, api.TimeoutError):
                change(cells.nth(1), settings)
                page.locator(".lm-MenuBar-itemLabel").get_by_text("Run", exact=True).click()
                page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
                expect(cells.nth(2).locator(".jp-OutputArea")).to_contain_text(output, timeout=15_000)
                expect(cells.nth(1).locator(".cm-content")).to_have_text(settings)
                page.keyboard.press("Control+s")
                return
        pytest.fail(f"{name} does not print {output!r}")

    run_with("02_table", "3.0", "scratch/02_table/")
    choose("02_table", "Duplicate")
    run_with("02_table-Copy1", "2.5", "scratch/02_table-Copy1/")
    assert (saved("02_table"), saved("02_table-Copy1")) == ("tau\n3\n", "tau\n2.5\n")
    run_with("02_table-Copy1", "-5.0", "error: 02_table: parameter tau is -5.0: give more than 0")


def test_a_working_copy_is_changed_run_and_saved(lab: str, page, tmp_path: Path):
    script = (tmp_path / "notebooks" / "01_figure.py").read_bytes()
    cells = cells_of(page, lab, "01_figure")
    expect(cells).to_have_count(4, timeout=SLOW)
    expect(cells.nth(0)).to_contain_text("A notebook")
    expect(page.locator(".jp-KernelName:visible")).to_contain_text("Python 3 (ipykernel)", timeout=SLOW)
    change(cells.nth(1), "points = 7")
    for number in (1, 2, 3):
        run(page, cells.nth(number))
    expect(cells.nth(2).locator(".jp-OutputArea-output img")).to_be_visible(timeout=SLOW)
    expect(cells.nth(2).locator(".jp-OutputArea")).to_contain_text("7 points")
    frame = cells.nth(3).frame_locator("iframe")
    expect(frame.locator("body[data-ready]")).to_have_count(1, timeout=SLOW)
    frame.locator('td[data-h="5"]').dispatch_event("click")  # the notebook may be scrolling under the mouse
    expect(frame.locator("#h-attention")).to_contain_text("head 1-1")
    page.keyboard.press("Control+s")
    copy = tmp_path / "workbook" / "01_figure.ipynb"
    while "points = 7" not in copy.read_text():
        page.wait_for_timeout(100)
    assert (tmp_path / "notebooks" / "01_figure.py").read_bytes() == script
