"""Figures as files: small PNG pictures."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from PIL import Image

from analysis.files import replacing

if TYPE_CHECKING:  # the runner shrinks pictures, and draws none
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

PALETTE = 256  # colours of a PNG with one byte per pixel
DPI = 150


def save_figure(figure: "Figure", path: Path) -> None:
    """Writes a figure as a PNG, the same bytes for the same figure.

    Its layout is computed once, and stays: matplotlib would compute it again for every drawing.
    """
    with replacing(path) as temporary:  # without the name of the program, which has a version
        figure.savefig(temporary, metadata={"Software": None}, bbox_inches=_settled(figure), dpi=DPI)
        temporary.write_bytes(in_palette(temporary.read_bytes()))


def _settled(figure: "Figure") -> "Bbox":
    """The page of a figure with a margin (inches), after its axes have taken their places at the pixels of the file."""
    dots, figure.dpi = figure.dpi, DPI
    if engine := figure.get_layout_engine():
        engine.execute(figure)
        figure.set_layout_engine(None)  # "none" would leave a placeholder, which draws every file twice
    box = figure.get_tightbbox().padded(mpl.rcParams["savefig.pad_inches"])
    figure.dpi = dots
    return box


def in_palette(png: bytes) -> bytes:
    """A PNG a third as large, with a palette of at most 256 colours that keeps rare ones, on a white ground."""
    with Image.open(BytesIO(png)) as image:
        ground = Image.new("RGBA", image.size, "white")
        picture = Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")
    compact = BytesIO()
    small = picture.quantize(PALETTE, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(compact, "PNG", optimize=True)
    return compact.getvalue()
