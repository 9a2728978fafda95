"""Figures as files: small PNG pictures that keep the exact colours of the theme, and SVG drawings."""

from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_rgba_array
from PIL import Image

from analysis.figures import colours
from analysis.files import replacing
from analysis.roles import ROLES

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
    """A PNG a third as large, with a palette of at most 256 colours, on a white ground.

    A picture of no more colours does not change. Otherwise the colours of the theme stay exact, however few pixels they
    have, and Pillow chooses the other colours of the palette, by their areas.
    """
    with Image.open(BytesIO(png)) as image:
        ground = Image.new("RGBA", image.size, "white")
        picture = Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB")
    present = {colour for _, colour in picture.getcolors(picture.width * picture.height)}
    exact = sorted(present & theme_colours()) if len(present) > PALETTE else []
    small = picture.quantize(PALETTE - len(exact), dither=Image.Dither.NONE)
    if exact:
        palette, pixels, places = small.getpalette("RGB"), np.asarray(picture), np.array(small)
        for place, colour in enumerate(exact, start=len(palette) // 3):
            places[(pixels == colour).all(axis=-1)] = place
        small = Image.fromarray(places, "P")
        small.putpalette([*palette, *chain(*exact)])
    compact = BytesIO()
    small.save(compact, "PNG", optimize=True)
    return compact.getvalue()


def theme_colours() -> set[tuple[int, int, int]]:
    """Red, green and blue of the colours of roles, the greys, black and white."""
    roles = [shade(role) for role in ROLES for shade in (colours.colour, colours.ink)]
    others = [colours.OTHER_COLOUR, colours.MISSING, colours.GREY, "black", "white"]
    parts = (to_rgba_array([*roles, *others])[:, :3] * 255).round().astype(int)
    return {tuple(part) for part in parts.tolist()}
