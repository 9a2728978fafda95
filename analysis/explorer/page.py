"""The page as one file: template, style and scripts filled with the data, at most `limit` bytes."""

import html
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.errors import InputError
from analysis.explorer.payload import compact_json

FOLDER = Path(__file__).parent
SCRIPTS = (
    "data",
    "view",
    "colours",
    "modes",
    "heads",
    "card",
    "tables",
    "measures",
    "attention",
    "drawing",
    "save",
    "start",
)
PLACE = re.compile(r"\{\{(\w+)\}\}")
LOG = logging.getLogger(__name__)


def rendered(payload: Mapping[str, Any]) -> str:
    """The page that shows a payload. No text of the payload can end the script."""
    scripts = [_file(f"{name}.js") for name in SCRIPTS]
    parts = {
        "title": html.escape(payload["title"]),
        "style": _file("page.css"),
        "data": compact_json(payload).replace("<", r"\u003c"),
        "script": "\n".join(scripts),
    }
    return PLACE.sub(lambda place: parts[place[1]], _file("page.html"))


def _file(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8").strip()


def fitted(payload: Mapping[str, Any], limit: int) -> dict[str, Any]:
    """The payload with as many sentences as fit into a page of `limit` bytes; the longest are left out first.

    `left_out` and the log name the sentences left out. Raises InputError if the shortest sentence or the page without
    sentences does not fit.
    """
    kept = sorted(payload["sentences"], key=lambda sentence: len(sentence["tokens"]))
    named = [{"id": sentence["id"], "tokens": len(sentence["tokens"])} for sentence in kept]
    empty = len(rendered({**payload, "sentences": [], "left_out": named}).encode())
    written = {sentence["id"]: compact_json(sentence).replace("<", r"\u003c") for sentence in kept}
    sizes = {name: len(text.encode()) + 1 for name, text in written.items()}
    if empty > limit:
        raise InputError(f"the page takes {empty:,} bytes without any sentence: limit is {limit:,}, raise it")
    while kept and empty + sum(sizes[sentence["id"]] for sentence in kept) > limit:
        kept.pop()
    if named and not kept:
        shortest = named[0]["id"]
        raise InputError(
            f"sentence {shortest} takes {sizes[shortest]:,} bytes and the rest of the page {empty:,}: limit is "
            f"{limit:,}, raise it or give a shorter sentence"
        )
    left_out = named[len(kept) :]
    for sentence in left_out:
        LOG.warning(
            "left out of the page, which would be too large: sentence %(id)s, %(tokens)s tokens", sentence
        )
    ids = {sentence["id"] for sentence in kept}
    within = [sentence for sentence in payload["sentences"] if sentence["id"] in ids]
    return {**payload, "sentences": within, "left_out": left_out}
