"""Colours: a palette that colour-blind readers tell apart, and the colours and markers of the roles."""

import numpy as np
from matplotlib.colors import to_rgb

from analysis.roles import ROLES

# The palette of Okabe and Ito, with brown and wine added; these also differ from similar colours in lightness.
BLACK, ORANGE, SKY, GREEN, YELLOW = "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
BROWN, WINE, LIME = "#8C510A", "#882255", "#A6D854"
GREY = "#777777"
OTHER_COLOUR, OTHER_MARKER = "0.45", "h"
MISSING = "0.85"  # with white hatches where it fills a cell
SEQUENTIAL = "Blues"  # the colour map of quantities from 0 up: it begins near white
MATCHING_HEADS = LIME  # in every figure, as [CLS] is SKY and [SEP] is WINE, the colours of their roles


def colour(role: str) -> str:
    """The colour of a role, grey for what is no role of the study."""
    return globals().get(ROLES[role].colour, ROLES[role].colour) if role in ROLES else OTHER_COLOUR


def marker(role: str) -> str:
    """The marker of a role, a hexagon for what is no role of the study."""
    return ROLES[role].marker if role in ROLES else OTHER_MARKER


def ink(role: str) -> tuple[float, ...]:
    """The colour of a role for lines and outlines: light colours are darkened so that they show on white."""
    red_green_blue = np.array(to_rgb(colour(role)))
    light = red_green_blue @ [0.2126, 0.7152, 0.0722] > 0.7  # Rec. 709: how light it prints in grey
    return tuple((0.6 if light else 1.0) * red_green_blue)
