"""Figures as files: small PNG pictures and SVG drawings."""

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
# Neither date nor program: the same figure gives the same bytes.
METADATA = {".svg": {"Date": None}, ".png": {"Software": None}}


def save_figure(figure: "Figure", path: Path) -> None:
    """Writes a figure as `path` with the suffixes .png and .svg, the same bytes for the same figure.

    Its layout is computed once, and stays: matplotlib would compute it four times for two files.
    """
    settings = {"svg.hashsalt": path.name, "svg.fonttype": "none"}
    box = _settled(figure)
    for suffix, metadata in METADATA.items():
        with replacing(path.with_name(path.name + suffix)) as temporary, mpl.rc_context(settings):
            figure.savefig(temporary, metadata=metadata, bbox_inches=box, dpi=DPI)
            if suffix == ".png":
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
