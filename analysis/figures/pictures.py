"""Figures as files: small PNG pictures that keep the exact colours of the theme, and SVG drawings."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from jaxtyping import Int, UInt8
from matplotlib.colors import to_rgba_array
from PIL import Image
from scipy.spatial import cKDTree

from analysis.figures import colours
from analysis.files import replacing
from analysis.scores.roles import ROLES

if TYPE_CHECKING:  # the runner shrinks pictures, and draws none
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

PALETTE = 256  # colours of a PNG with one byte per pixel
FLAT = 128  # of them for the most frequent colours of the picture, which do not change
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
        figure.set_layout_engine(
            None
        )  # "none" would leave a placeholder, for which every file is drawn twice
    box = figure.get_tightbbox().padded(mpl.rcParams["savefig.pad_inches"])
    figure.dpi = dots
    return box


def in_palette(png: bytes) -> bytes:
    """A PNG a third as large, with a palette of at most 256 colours.

    A picture of no more colours does not change. Otherwise the colours of the theme and the most frequent colours stay
    exact, and every other pixel takes the nearest colour of the palette.
    """
    with Image.open(BytesIO(png)) as image:
        pixels = _on_white(image)
    codes, places, counts = np.unique(_coded(pixels), return_inverse=True, return_counts=True)
    palette = codes if len(codes) <= PALETTE else _palette(pixels, codes, counts)
    nearest = cKDTree(_decoded(palette)).query(_decoded(codes))[1]
    small = Image.fromarray(nearest[places].astype(np.uint8).reshape(pixels.shape[:2]), "P")
    small.putpalette(_decoded(palette).tobytes())
    compact = BytesIO()
    small.save(compact, "PNG", optimize=True)
    return compact.getvalue()


def exact_colours() -> UInt8[np.ndarray, "colour 3"]:
    """Red, green and blue of the colours of roles, the greys, black and white."""
    roles = [shade(role) for role in ROLES for shade in (colours.colour, colours.ink)]
    others = [colours.OTHER_COLOUR, colours.MISSING, colours.GREY, "black", "white"]
    parts = to_rgba_array([*roles, *others])[:, :3]
    return np.unique((parts * 255).round().astype(np.uint8), axis=0)


def _on_white(image: Image.Image) -> UInt8[np.ndarray, "row column 3"]:
    """The pixels of a picture on a white ground."""
    ground = Image.new("RGBA", image.size, "white")
    return np.asarray(Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB"))


def _palette(
    pixels: UInt8[np.ndarray, "row column 3"],
    codes: Int[np.ndarray, " colour"],
    counts: Int[np.ndarray, " colour"],
) -> Int[np.ndarray, " colour"]:
    """The palette of a picture with many colours: the exact ones, and those to which Pillow reduces all others."""
    frequent = codes[np.argsort(-counts, kind="stable")[:FLAT]]
    kept = np.union1d(np.intersect1d(codes, _coded(exact_colours())), frequent)
    rest = pixels[~np.isin(_coded(pixels), kept)]
    room = PALETTE - len(kept)
    reduced = Image.fromarray(rest[None]).quantize(room, dither=Image.Dither.NONE)
    made = np.array(reduced.getpalette("RGB"), np.uint8).reshape(-1, 3)[:room]
    return np.union1d(kept, _coded(made))


def _coded(colours: UInt8[np.ndarray, "*shape 3"]) -> Int[np.ndarray, "*shape"]:
    """Each colour as one number, which is faster to sort and compare than three."""
    return colours.astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])


def _decoded(codes: Int[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape 3"]:
    return np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=-1).astype(np.uint8)
