"""Sentences below figures."""

import re

import pandas as pd
from IPython.display import Markdown


def finding(text: str) -> Markdown:
    """What a figure shows, for display under it in a notebook.

    "47%", as `:.0%` writes it, becomes "47 %", and a number that is missing a dash.
    """
    known = re.sub(r"[+-]?\bnan\b( ?%)?", "–", text)
    return Markdown("**Finding.** " + re.sub(r"(?<=\d)%", " %", known))


def share(part: int, whole: int) -> str:
    """A part of a whole with its percentage, "27 of 47 (57%)"; of nothing there is none."""
    return f"{part} of {whole}" + (f" ({part / whole:.0%})" if whole else "")


def learnt(rows: pd.DataFrame) -> str:
    """How many runs of a task trained successfully; columns metric, constant, bag_of_words, finetuned, trained."""
    first, scores = rows.iloc[0], rows["finetuned"]
    reach = f"{scores.min():.3f}" + (f" to {scores.max():.3f}" if scores.max() > scores.min() else "")
    return (
        f"{rows['trained'].sum()} of {len(rows)} runs trained successfully. Fine-tuning reaches {reach} "
        f"({first['metric']}), a bag of words {first['bag_of_words']:.3f}, the constant answer {first['constant']:.3f}."
    )
