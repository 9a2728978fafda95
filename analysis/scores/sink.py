"""The special token on which heads rest."""

from collections.abc import Mapping

from analysis.encoders.models import Encoder
from analysis.scores.extraction import extract
from analysis.texts.examples import Example
from analysis.texts.passages import bundled_paragraphs

TIE = 0.2  # a fifth: nearer shares are a near tie


def resting_attention(encoder: Encoder) -> dict[str, float]:
    """The attention to cls and sep, summed over the rows of 20 bundled passages, mean over layers and heads."""
    examples = [Example(name, *texts[:2]) for name, texts in bundled_paragraphs(20, "dev").items()]
    scores = extract(encoder, examples, roles=["cls", "sep"]).mean(["layer", "head"])
    # A score is T / (marked tokens of a row) times the attention on them, so the sum over rows is score times marked.
    attention = {"cls": scores.sel(role="cls"), "sep": scores.sel(role="sep") * scores["separators"]}
    return {token: float(values.sum()) for token, values in attention.items()}


def sink(encoder: Encoder) -> str:
    """The special token, cls or sep, with more attention; `encoder` is the one before fine-tuning."""
    attention = resting_attention(encoder)
    return max(attention, key=attention.__getitem__)


def sinks(encoder: Encoder) -> tuple[str, ...]:
    """The token on which claims are judged: the sink, or in a near tie sep, which the papers name, and then cls.

    In BERT-base it is sep (Clark 2019, section 3.2).
    """
    return leading(resting_attention(encoder))


def leading(attention: Mapping[str, float]) -> tuple[str, ...]:
    """The token with more attention, or in a near tie sep and then cls."""
    tied = min(attention.values()) >= (1 - TIE) * max(attention.values())
    return ("sep", "cls") if tied else (max(attention, key=attention.__getitem__),)
