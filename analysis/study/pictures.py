"""Figures as files: small PNG pictures in which the colours of the theme survive exactly, and SVG drawings."""

from io import BytesIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from jaxtyping import Int, UInt8
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from scipy.spatial import cKDTree

from analysis.figures import theme
from analysis.files import replacing

PALETTE = 256  # colours that a PNG with one byte per pixel can have
FLAT = 128  # of them for the most frequent colours of the picture, which stay as they are
DPI = 150
# Text stays text, and the bytes name no date and no program: the same figure is the same file.
METADATA = {".svg": {"Date": None}, ".png": {"Software": None}}


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure as `path` with the suffixes .png and .svg, the same bytes for the same figure."""
    settings = {"svg.hashsalt": path.name, "svg.fonttype": "none"}
    for suffix, metadata in METADATA.items():
        with replacing(path.with_name(path.name + suffix)) as temporary, mpl.rc_context(settings):
            figure.savefig(temporary, metadata=metadata, bbox_inches="tight", dpi=DPI)
            if suffix == ".png":
                temporary.write_bytes(in_palette(temporary.read_bytes()))


def in_palette(png: bytes) -> bytes:
    """A PNG a third as large, with a palette of at most 256 colours.

    The colours of the theme stay exact, and so do the most frequent colours. Every other pixel takes the nearest
    colour of the palette, which is exact too where the picture has no more than 256 colours.
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
    """Red, green and blue of what never changes: the fills and lines of the roles, the greys, black and white."""
    roles = [shade(role) for role in theme.ROLE_COLOURS for shade in (theme.colour, theme.ink)]
    others = [theme.OTHER_COLOUR, theme.MISSING, theme.GREY, "black", "white"]
    return np.unique([_bytes(colour) for colour in [*roles, *others]], axis=0)


def _bytes(colour: str | tuple[float, ...]) -> UInt8[np.ndarray, "3"]:
    """A colour as matplotlib paints it."""
    return (np.array(to_rgb(colour)) * 255).round().astype(np.uint8)


def _on_white(image: Image.Image) -> UInt8[np.ndarray, "row column 3"]:
    """The pixels of a picture; what is transparent shows white."""
    ground = Image.new("RGBA", image.size, "white")
    return np.asarray(Image.alpha_composite(ground, image.convert("RGBA")).convert("RGB"))


def _palette(
    pixels: UInt8[np.ndarray, "row column 3"],
    codes: Int[np.ndarray, " colour"],
    counts: Int[np.ndarray, " colour"],
) -> Int[np.ndarray, " colour"]:
    """The palette of a picture with many colours: exact ones first, then those that Pillow makes of all others."""
    frequent = codes[np.argsort(-counts, kind="stable")[:FLAT]]
    kept = np.union1d(np.intersect1d(codes, _coded(exact_colours())), frequent)
    rest = pixels[~np.isin(_coded(pixels), kept)]
    room = PALETTE - len(kept)
    reduced = Image.fromarray(rest[None]).quantize(room, dither=Image.Dither.NONE)
    made = np.array(reduced.getpalette("RGB"), np.uint8).reshape(-1, 3)[:room]
    return np.union1d(kept, _coded(made))


def _coded(colours: UInt8[np.ndarray, "*shape 3"]) -> Int[np.ndarray, "*shape"]:
    """Each colour as one number, which sorts and compares faster than three."""
    return colours.astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])


def _decoded(codes: Int[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape 3"]:
    return np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=-1).astype(np.uint8)
