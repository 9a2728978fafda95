"""Working copies for JupyterLab follow their scripts until somebody changes them."""

import nbformat
from studies import Study

from analysis.study.workbook import update


def test_a_copy_follows_its_script_until_it_is_changed(study: Study, capsys):
    folder = study.folder / "workbook"
    path = folder / "01_first.ipynb"
    study.notebook("01_first", "1 + 1")
    update(folder)
    copy = nbformat.read(path, as_version=4)
    assert copy.cells[-1].source == "1 + 1"
    assert copy.metadata.kernelspec.name == "python3"
    copy.cells[-1].outputs = [nbformat.v4.new_output("stream", text="2")]  # a run alone is no change
    nbformat.write(copy, path)
    executed = path.read_bytes()
    update(folder)
    assert path.read_bytes() == executed
    study.notebook("01_first", "1 + 2")
    update(folder)
    copy = nbformat.read(path, as_version=4)
    assert copy.cells[-1].source == "1 + 2"
    copy.cells[-1].source = "1 + 3"
    nbformat.write(copy, path)
    changed = path.read_bytes()
    update(folder)
    assert capsys.readouterr().out == ""
    study.notebook("01_first", "1 + 4")
    update(folder)
    assert path.read_bytes() == changed
    assert capsys.readouterr().out.startswith(
        "workbook/01_first.ipynb stays as you changed it, and its script is newer"
    )
