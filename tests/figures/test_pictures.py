"""Pictures are small, the same bytes for the same figure, and keep the colours of roles."""

from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from analysis.figures import colours
from analysis.figures.pictures import save_figure
from analysis.files import ROOT, git
from analysis.roles import ROLES
from analysis.study.copies import cleaned


def red_green_blue(colour: str | tuple[float, ...]) -> tuple[int, ...]:
    return tuple(round(255 * part) for part in mpl.colors.to_rgb(colour))


def pixels(png: bytes) -> np.ndarray:
    with Image.open(BytesIO(png)) as image:
        assert image.mode == "P"
        return np.asarray(image.convert("RGB"))


def test_a_few_pixels_of_a_role_survive_among_thousands_of_colours():
    """In an executed copy of a map whose colours fill a plane; a palette chosen by area would lose them."""
    shades = np.array([red_green_blue(colour) for colour in map(colours.colour, ROLES)], np.uint8)
    picture = np.full((200, 256, 3), 128, np.uint8)
    picture[..., :2] = np.stack(np.indices((200, 256)), axis=-1)
    picture[50, : len(shades)] = shades
    buffer = BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    output = nbformat.v4.new_output("display_data", {"image/png": b64encode(buffer.getvalue()).decode()})
    cell = nbformat.v4.new_code_cell("1", outputs=[output])
    copy = cleaned(nbformat.v4.new_notebook(cells=[cell])).cells[0].outputs[0]
    picture = pixels(b64decode(copy.data["image/png"]))
    np.testing.assert_allclose(picture[50, : len(shades)], shades, atol=12)
    assert np.median(np.abs(picture[50, : len(shades)].astype(int) - shades)) == 0


def test_the_same_figure_is_the_same_bytes(tmp_path: Path):
    def saved() -> dict[str, bytes]:
        figure = Figure(figsize=(2, 1))  # with what makes files differ: text, clips and random identifiers
        axes = figure.subplots()
        axes.imshow(np.arange(6).reshape(2, 3))
        axes.scatter([0, 1], [0, 1], label="points")
        axes.legend()
        axes.set_title("Heads")
        save_figure(figure, tmp_path / "F1.2.png")
        return {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    first = saved()
    assert set(first) == {"F1.2.png"}
    assert pixels(first["F1.2.png"]).size  # in a palette
    assert saved() == first


def test_committed_results_stay_small():
    """Pictures are in palettes."""
    names = git("ls-files", "-z", "results")
    if names is None:
        pytest.skip("no clone: the committed files are not known")
    paths = [ROOT / name for name in names.decode().split("\0") if name and (ROOT / name).exists()]
    sizes = {path: path.stat().st_size for path in paths}
    assert sum(sizes.values()) < 60e6
    for path, size in sizes.items():
        assert size < (6e6 if path.name == "explorer.html" else 3e6), path
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert picture.mode == "P", path.name
