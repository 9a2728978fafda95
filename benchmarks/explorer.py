"""The size of the head explorer, and how fast it responds in the system's Chromium.

    python benchmarks/explorer.py [--repeats 5] [--sentences 3]

Pages have what those of the study have: role tables of four tasks and two states, with random numbers, and attention of
all-MiniLM-L6-v2 on bundled sentences. They are made for its 6 x 12 heads and for 12 x 12 (its maps twice, the second
time with noise), in one state and in two. Times are milliseconds in the browser: until the page is ready, and from a
click or a choice until the change is painted. Results go to benchmarks/results/ and, as a table, to the screen.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from headtables import role_tables  # noqa: E402

from analysis.encoders.models import load_encoder  # noqa: E402
from analysis.explorer.packing import Sentence, illustrative, pack, packed_attention, unpacked_attention  # noqa: E402
from analysis.explorer.view import HeadView, explorer  # noqa: E402
from analysis.statistics.roles import RELATIONS, ROLES  # noqa: E402
from analysis.texts.glue import load_examples  # noqa: E402
from analysis.texts.syntax import parse  # noqa: E402
from benchmarks.timing import report  # noqa: E402

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TASKS, STATES = ("toy-mrpc", "toy-qqp", "toy-sst-2", "toy-qnli"), ("pretrained", "finetuned")
PAINTED = """(change) => new Promise((resolve) => {
  const started = performance.now();
  const painted = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started)));
  new MutationObserver((_, observer) => { observer.disconnect(); painted(); })
    .observe(document.body, { attributes: true, attributeFilter: ["data-drawn"] });
  %s
})"""
CHANGES = {
    "head change, ms": PAINTED % "document.querySelector(`td[data-h='${change}']`).click();",
    "sentence change, ms": PAINTED % "document.getElementById('next').click();",
}


def sentences_of(count: int) -> list[Sentence]:
    """MiniLM's attention on `count` sentences of every toy task."""
    encoder, packed = load_encoder("minilm"), []
    for task in TASKS:
        found = load_examples(task, split="dev", n=50, seed=0)
        chosen = illustrative(found, parse(found), RELATIONS, count)
        packed += pack(encoder, chosen, parse(chosen), ROLES, STATES[0], task)
    return packed


def doubled(sentence: Sentence) -> Sentence:
    """The sentence with twice as many layers; the new ones attend alike, with noise of 10 % of each weight."""
    length, shape = len(sentence["tokens"]), (sentence["layers"], sentence["heads"])
    maps = unpacked_attention(sentence["attention"][STATES[0]], (*shape, length, length))
    noisy = maps * np.random.default_rng(0).uniform(0.9, 1.1, maps.shape)
    both = np.concatenate([maps, noisy / noisy.sum(axis=-1, keepdims=True)])
    scores = {role: {STATES[0]: own[STATES[0]] * 2} for role, own in sentence["scores"].items()}
    attention = {STATES[0]: packed_attention(both)}
    return {**sentence, "layers": 2 * shape[0], "scores": scores, "attention": attention}


def in_state(sentence: Sentence, state: str) -> Sentence:
    """The same attention under the name of another state."""
    scores = {role: {state: own[STATES[0]]} for role, own in sentence["scores"].items()}
    return {**sentence, "scores": scores, "attention": {state: sentence["attention"][STATES[0]]}}


def page_of(sentences: list[Sentence], states: Iterable[str]) -> HeadView:
    """The page of these sentences in some states, with role tables for all of them."""
    packed = [in_state(sentence, state) for state in states for sentence in sentences]
    shape = sentences[0]["layers"], sentences[0]["heads"]
    return explorer(role_tables(True, TASKS, STATES, ROLES, *shape), packed)


def measured(browser, path: Path, repeats: int, heads: int) -> dict[str, float]:
    """Medians over visits to a page; each visit changes the head and the sentence several times."""
    times: dict[str, list[float]] = {"ready, ms": [], **{name: [] for name in CHANGES}}
    for _ in range(repeats):
        context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
        page = context.new_page()
        page.goto(path.as_uri())
        page.wait_for_selector("body[data-ready]", timeout=60_000)
        times["ready, ms"].append(page.evaluate("window.__ready"))
        for change in range(5, heads, heads // 8):
            for name, script in CHANGES.items():
                times[name].append(page.evaluate(script, change))
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        context.close()
    found = {name: median(values) for name, values in times.items()}
    return found | {f"slowest {name}": max(times[name]) for name in CHANGES} | {"heap, MB": heap}


def main() -> None:
    """Builds the pages, visits them, prints a table and writes it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=3)
    options = parser.parse_args()
    executable = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        print("no Chromium found: install it or set BROWSER_PATH to time the head explorer", file=sys.stderr)
        return
    from playwright.sync_api import sync_playwright

    small = sentences_of(options.sentences)
    sizes = {"72 heads": small, "144 heads": [doubled(sentence) for sentence in small]}
    results = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        version = browser.version
        for name, sentences in sizes.items():
            for count in (1, 2):
                view = page_of(sentences, STATES[:count])
                path = view.save(Path(folder) / "page.html")
                heads = sentences[0]["layers"] * sentences[0]["heads"]
                times = measured(browser, path, options.repeats, heads)
                results[f"{name}, attention of {count} state{'s' * (count > 1)}"] = {
                    "MB": len(view.page) / 1e6,
                    **times,
                }
        browser.close()
    lengths = [len(sentence["tokens"]) for sentence in small]
    settings = {
        "sentences": len(small),
        "sum of squared tokens": sum(n * n for n in lengths),
        "browser": version,
    }
    report("explorer", settings, results)


if __name__ == "__main__":
    main()
