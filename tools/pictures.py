"""Makes the pictures of docs/: `python tools/pictures.py explorer` or `architecture`.

The first is a screenshot of the committed head explorer and needs Chromium and playwright. The second follows a made-up
sentence through the study, with all-MiniLM-L6-v2.
"""

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from analysis.encoders.models import Encoder, load_encoder  # noqa: E402
from analysis.figures.colours import BLUE, GREY, VERMILION  # noqa: E402
from analysis.figures.pictures import in_palette  # noqa: E402
from analysis.figures.theme import DOUBLE, style  # noqa: E402
from analysis.scores.extraction import extract, read_attention, read_sieves  # noqa: E402
from analysis.statistics.claims import judge  # noqa: E402
from analysis.statistics.controls import controlled_table  # noqa: E402
from analysis.statistics.intervals import mean_interval  # noqa: E402
from analysis.statistics.roles import LABELS  # noqa: E402
from analysis.statistics.significance import Rule  # noqa: E402
from analysis.texts.examples import Example, Relations  # noqa: E402
from analysis.texts.glue import load_examples  # noqa: E402
from analysis.texts.syntax import parse  # noqa: E402

PAGE = ROOT / "results" / "glue-minilm" / "explorer.html"
VIEW = "#task=mrpc&state=finetuned&role=nsubj&head=3-8"
ROLE, TAU = "dobj", 3.0
LINE = 22  # characters
TEXTS = 150  # more than 100 of them have the role, as the corrected label asks


def explorer_picture(page: Path, width: int = 1440, height: int = 960) -> bytes:
    """A screenshot of the head explorer as PNG, in at most 256 colours."""
    from playwright.sync_api import sync_playwright

    browser_path = os.environ.get("BROWSER_PATH") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
        tab.goto(page.resolve().as_uri() + VIEW)
        tab.wait_for_selector("body[data-ready]", timeout=60_000)
        screenshot = tab.screenshot()
        browser.close()
    return in_palette(screenshot)


def architecture(encoder: Encoder) -> Figure:
    """One sentence on its way from text to claim, a panel for each step, with numbers computed by the code.

    The head is the one with the highest score in the role; the sentence is the short one with a score near the mean.
    """
    examples = load_examples("toy-sst-2", split="dev", n=TEXTS, seed=0)
    relations = parse(examples)
    options = {"roles": [ROLE], "progress": False}
    scores = extract(encoder, examples, relations, **options)
    twins = extract(encoder, examples, relations, maps="twin", **options)
    table = controlled_table(scores, twins, Rule(TAU))
    row = table.loc[table["mean"].idxmax()]
    of_head, of_twin = (part.sel(role=ROLE, layer=row["layer"], head=row["head"]) for part in (scores, twins))
    example = typical(examples, of_head)
    layout, attention = read_attention(encoder, example)
    sieve = read_sieves(encoder, example, relations, [ROLE])[ROLE]
    head_map = attention[row["layer"], row["head"]]
    style()
    figure, panels = plt.subplots(2, 4, figsize=(DOUBLE, 3.9), layout="constrained")
    text, tokens, sieved, mapped, score, test, label, claim = panels.flat
    words(
        text, "1 text", [*textwrap.wrap(f"“{example.text_a}”", LINE), "", *relation_words(example, relations)]
    )
    words(tokens, "2 layout", [f"{place:>2}  {token}" for place, token in enumerate(layout.tokens)])
    matrix(sieved, f"3 sieve of {ROLE}", sieve, layout.tokens)
    matrix(mapped, f"4 map of head {row['layer']}-{row['head']}", head_map, layout.tokens)
    words(score, "5 score", score_words(sieve, head_map, layout.tokens))
    distribution(test, of_head)
    words(label, "7 label", label_words(row))
    verdict_panel(claim, of_head - of_twin)
    for line in panels:
        connect(figure, line)
    return figure


def typical(examples: list[Example], scores: xr.DataArray) -> Example:
    """From the shortest quarter of the examples with the role, the one whose score is closest to the mean of all."""
    by_id = {example.id: example for example in examples}
    present = scores.dropna("sequence")
    shortest = sorted(present["sequence"].values, key=lambda name: len(by_id[name].text_a))[
        : len(present) // 4
    ]
    return by_id[
        min(shortest, key=lambda name: abs(float(present.sel(sequence=name)) - float(present.mean())))
    ]


def relation_words(example: Example, relations: Relations) -> list[str]:
    """The relations in a text that belong to the picture's role, in words."""
    matching = [relation for relation in relations[example.id] if relation.label == ROLE]
    spans = [(slice(*relation.dependent), slice(*relation.head)) for relation in matching]
    return [f"{example.text_a[dependent]} is {ROLE} of {example.text_a[head]}" for dependent, head in spans]


def score_words(sieve: np.ndarray, head_map: np.ndarray, tokens: tuple[str, ...]) -> list[str]:
    """The sum of sieve times map, cell by cell, and the score."""
    cells = np.argwhere(sieve)
    lines = [f"{tokens[row]} → {tokens[column]}:" for row, column in cells]
    terms = [f"{sieve[row, column]:.2f} × {head_map[row, column]:.3f}" for row, column in cells]
    value = len(tokens) * float((sieve * head_map).sum())
    pairs = [text for line, term in zip(lines, terms, strict=True) for text in (line, f"  {term}")]
    return ["sieve × map:", "", *pairs, "", f"times {len(tokens)} tokens", f"= {value:.2f}"]


def connect(figure: Figure, panels: Sequence[Axes]) -> None:
    """Arrows from the title of each panel to that of the next one."""
    figure.canvas.draw()
    figure.set_layout_engine("none")
    to_figure = figure.transFigure.inverted()
    for first, second in pairwise(panels):
        ends = [axes._left_title.get_window_extent() for axes in (first, second)]
        start = to_figure.transform((ends[0].x1 + 12, (ends[0].y0 + ends[0].y1) / 2))
        end = to_figure.transform((ends[1].x0 - 12, (ends[0].y0 + ends[0].y1) / 2))
        figure.add_artist(
            FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=8, color="0.4", lw=0.8)
        )


def label_words(row: pd.Series) -> list[str]:
    """The three labels of a head, with the numbers behind them."""
    labels = [f"{name}: {'yes' if row[column] else 'no'}" for column, name in LABELS.items()]
    numbers = [
        f"mean {row['mean']:.2f}, τ = {TAU:g}",
        f"control ({row['control']}): {row['control_mean']:.2f}",
    ]
    return [*labels, "", *numbers]


def words(axes: Axes, title: str, lines: list[str]) -> None:
    """A panel of text."""
    axes.set_title(title, loc="left", fontweight="bold")
    axes.axis("off")
    axes.text(0, 1, "\n".join(lines), va="top", transform=axes.transAxes, fontsize=7)


def matrix(axes: Axes, title: str, values: np.ndarray, tokens: tuple[str, ...]) -> None:
    """A panel with a token x token matrix: rows attend to columns."""
    axes.set_title(title, loc="left", fontweight="bold")
    axes.imshow(values, cmap="mako_r", vmin=0, interpolation="nearest")
    places = range(len(tokens))
    axes.set_yticks(places, tokens, fontsize=5.5)
    axes.set_xticks(places, tokens, fontsize=5.5, rotation=90)
    axes.tick_params(length=0)


def distribution(axes: Axes, scores: xr.DataArray) -> None:
    """A panel with the scores of all sequences, their mean, a uniform head and the threshold."""
    values = scores.values[np.isfinite(scores.values)]
    axes.set_title("6 test", loc="left", fontweight="bold")
    axes.hist(values, bins=15, color="0.8")
    for place, colour, name in ((1, GREY, "uniform"), (TAU, VERMILION, "τ"), (values.mean(), BLUE, "mean")):
        axes.axvline(place, color=colour, label=name)
    axes.set(xlabel=f"scores of {len(values)} sequences", yticks=[])
    axes.legend(fontsize=6)


def verdict_panel(axes: Axes, differences: xr.DataArray) -> None:
    """A panel with a claim: the head exceeds its control by more than the margin; its interval decides."""
    values = differences.dropna("sequence").values
    mean, low, high = mean_interval(values)
    verdict = judge(*(np.array([number]) for number in (mean, low, high)), TAU - 1).verdict
    axes.set_title("8 claim", loc="left", fontweight="bold")
    axes.errorbar(mean, 0, xerr=[[mean - low], [high - mean]], fmt="o", color="black", capsize=3)
    axes.axvline(TAU - 1, color=VERMILION, label="margin τ − 1")
    summary = f"“attends to more than\npositions”: {mean:.2f}\n[{low:.2f}, {high:.2f}]\n{verdict}"
    axes.text(1.02 * TAU - 1, 0.25, summary, ha="left", fontsize=6.5)
    axes.set(xlim=(0, 2 * high), ylim=(-1, 1.5), yticks=[], xlabel="mean minus control's")
    axes.legend(loc="lower right", fontsize=6.5)


def main() -> None:
    """Writes the picture that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", choices=["explorer", "architecture"])
    parser.add_argument("--page", type=Path, default=PAGE, help="the page of the head explorer")
    options = parser.parse_args()
    path = ROOT / "docs" / f"{options.picture}.png"
    if options.picture == "explorer":
        path.write_bytes(explorer_picture(options.page))
    else:
        architecture(load_encoder("minilm")).savefig(path, dpi=200, metadata={"Software": None})
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
