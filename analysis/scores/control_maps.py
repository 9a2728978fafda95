"""Scores of an encoder on the control maps of each role, and the special token that is its sink."""

from collections.abc import Hashable, Mapping, Sequence

import xarray as xr

from analysis.control_scores import all_control_sieves, control_bank
from analysis.encoders.models import Encoder
from analysis.errors import InputError
from analysis.roles import ROLES
from analysis.scores import maps as sources
from analysis.scores.extraction import extract, extract_states
from analysis.scores.maps import Source
from analysis.texts.bundled import bundled_paragraphs
from analysis.texts.examples import Example, Relations


def extract_controls(
    encoders: Mapping[Hashable, Encoder],
    examples: Sequence[Example],
    relations: Relations,
    sieves: Sequence[str],
    of: str | Source = "attention",
    max_tokens: int = 128,
) -> dict[str, dict[Hashable, xr.DataArray]]:
    """Scores of the elementary `sieves` that roles consist of, on each role's control maps, by map source and state.

    `of` names the maps from which the controls are made, or is their source.
    """
    by_source = all_control_sieves(sieves)
    for role in ROLES.values():
        if role.control in by_source and not hasattr(sources, role.control):
            raise InputError(
                f"role {role.name!r}: the control {role.control!r} is no sieve of the bank and no source of maps: "
                "register it with @sieve(..., bank=True), or take shuffled, twin, spread or uniform"
            )
    return {
        source: extract_states(
            encoders, examples, relations, names, max_tokens=max_tokens, maps=getattr(sources, source)(of=of)
        )
        for source, names in by_source.items()
    }


def scored_with_controls(
    encoder: Encoder,
    examples: Sequence[Example],
    relations: Relations,
    maps: str | Source = "attention",
    max_tokens: int = 128,
) -> tuple[xr.DataArray, xr.DataArray]:
    """Scores of elementary sieves on a source of maps, and of each sieve on its control; both are to be composed."""
    bank = extract_states({"": encoder}, examples, relations, max_tokens=max_tokens, maps=maps)[""]
    sieves = bank["role"].values.tolist()
    controls = extract_controls({"": encoder}, examples, relations, sieves, maps, max_tokens)
    return bank, control_bank(bank, {source: states[""] for source, states in controls.items()})


SPECIAL = {"cls": "[CLS]", "sep": "[SEP]"}


def sink(encoder: Encoder, passages: int = 20, max_tokens: int = 128) -> str:
    """The special token, cls or sep, that gets more attention: mean over layers, heads and tokens of bundled passages.

    `encoder` is the one before fine-tuning. In BERT-base it is sep (Clark 2019, section 3.2).
    """
    documents = bundled_paragraphs(passages, "dev")
    examples = [Example(name, *paragraphs[:2]) for name, paragraphs in documents.items()]
    scores = extract(encoder, examples, roles=[*SPECIAL], max_tokens=max_tokens).mean(["layer", "head"])
    # A score is T / (marked tokens of a row) times the attention on them, so the sum over rows is score times marked.
    attention = {"cls": scores.sel(role="cls"), "sep": scores.sel(role="sep") * scores["separators"]}
    return max(SPECIAL, key=lambda token: float(attention[token].sum()))
