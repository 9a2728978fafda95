"""The special token on which heads rest."""

from analysis.encoders.models import Encoder
from analysis.scores.extraction import extract
from analysis.texts.examples import Example
from analysis.texts.passages import bundled_paragraphs


def sink(encoder: Encoder) -> str:
    """The special token, cls or sep, with more attention: mean over layers, heads and tokens of 20 bundled passages.

    `encoder` is the one before fine-tuning. In BERT-base it is sep (Clark 2019, section 3.2).
    """
    examples = [Example(name, *texts[:2]) for name, texts in bundled_paragraphs(20, "dev").items()]
    scores = extract(encoder, examples, roles=["cls", "sep"]).mean(["layer", "head"])
    # A score is T / (marked tokens of a row) times the attention on them, so the sum over rows is score times marked.
    attention = {"cls": scores.sel(role="cls"), "sep": scores.sel(role="sep") * scores["separators"]}
    return max(attention, key=lambda token: float(attention[token].sum()))
