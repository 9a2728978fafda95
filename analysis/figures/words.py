"""Sentences below figures."""

import re

import matplotlib.pyplot as plt
from IPython.display import Markdown, display
from matplotlib.figure import Figure


def finding(text: str) -> Markdown:
    """What a figure shows, for display under it in a notebook.

    "47%", as `:.0%` writes it, becomes "47 %", and a number that is missing a dash.
    """
    known = re.sub(r"[+-]?\bnan\b( ?%)?", "–", text)
    return Markdown("**Finding.** " + re.sub(r"(?<=\d)%", " %", known))


def show(figure: Figure, caption: str) -> None:
    """Shows a figure in a notebook above its caption, which is its alternative text as well."""
    display(figure, metadata={"image/png": {"alt": caption}})
    display(Markdown(caption))
    plt.close(figure)


def share(part: int, whole: int) -> str:
    """A part of a whole with its percentage, "27 of 47 (57%)"; of nothing there is none."""
    return f"{part} of {whole}" + (f" ({part / whole:.0%})" if whole else "")
