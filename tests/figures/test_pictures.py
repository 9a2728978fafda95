"""Pictures are small, the same bytes for the same figure, and show the colours of the theme exactly."""

from base64 import b64decode
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from studies import Study

from analysis.figures import colours
from analysis.figures.pictures import in_palette, save_figure
from analysis.files import ROOT, git
from analysis.roles import ROLES
from analysis.run import run


def red_green_blue(colour: str | tuple[float, ...]) -> tuple[int, ...]:
    return tuple(round(255 * part) for part in mpl.colors.to_rgb(colour))


def pixels(png: bytes) -> np.ndarray:
    with Image.open(BytesIO(png)) as image:
        assert image.mode == "P"
        return np.asarray(image.convert("RGB"))


def test_a_few_pixels_of_a_role_survive_among_thousands_of_colours():
    """A palette chosen by area would lose them."""
    shades = np.array([red_green_blue(colour) for colour in map(colours.colour, ROLES)], np.uint8)
    picture = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    picture[50, : len(shades)] = shades
    buffer = BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    np.testing.assert_array_equal(pixels(in_palette(buffer.getvalue()))[50, : len(shades)], shades)


def test_the_same_figure_is_the_same_bytes(tmp_path: Path):
    def saved() -> dict[str, bytes]:
        figure = Figure(figsize=(2, 1))  # with what makes files differ: text, clips and random identifiers
        axes = figure.subplots()
        axes.imshow(np.arange(6).reshape(2, 3))
        axes.scatter([0, 1], [0, 1], label="points")
        axes.legend()
        axes.set_title("Heads")
        save_figure(figure, tmp_path / "F1.2")
        return {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    first = saved()
    assert set(first) == {"F1.2.png", "F1.2.svg"}
    assert saved() == first


NOTEBOOK = """from analysis.figures import colours, theme
from analysis.roles import ROLES

theme.style()
figure, axes = theme.plt.subplots(figsize=(3, 2))
axes.imshow(theme.np.random.default_rng(0).random((30, 40)), cmap="turbo", interpolation="bilinear")
for place, colour in enumerate(map(colours.colour, ROLES)):
    axes.axhline(2.8 * place, color=colour, linewidth=2.5)"""


def test_figures_of_an_executed_notebook(study: Study):
    """They have the exact colours of the roles, and twice the pixels that they take on the page."""
    study.notebook("01_first", NOTEBOOK)
    (output,) = nbformat.read(run("01_first", "quick", {}, keep=True), as_version=4).cells[-1].outputs
    displayed = pixels(b64decode(output.data["image/png"]))
    size = output.metadata["image/png"]
    assert (2 * size["height"], 2 * size["width"]) == pytest.approx(displayed.shape[:2], abs=1)
    assert size["width"] > 200
    for role in ROLES:
        assert (displayed == red_green_blue(colours.colour(role))).all(axis=-1).sum() > 100, role


def test_committed_results_stay_small():
    """Pictures are in palettes, and drawings are not committed."""
    names = git("ls-files", "-z", "results")
    if names is None:
        pytest.skip("no clone: the committed files are not known")
    paths = [ROOT / name for name in names.decode().split("\0") if name and (ROOT / name).exists()]
    sizes = {path: path.stat().st_size for path in paths}
    assert sum(sizes.values()) < 60e6
    for path, size in sizes.items():
        assert size < (6e6 if path.name == "explorer.html" else 3e6), path
        assert path.suffix != ".svg"
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert picture.mode == "P", path.name
