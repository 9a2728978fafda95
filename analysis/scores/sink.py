"""The sink: the special token on which the heads of an encoder rest."""

from analysis.encoders.models import Encoder
from analysis.scores.extraction import extract
from analysis.texts.passages import load_passages

SPECIAL = {"cls": "[CLS]", "sep": "[SEP]"}


def sink(encoder: Encoder, passages: int = 20, max_tokens: int = 128) -> str:
    """The special token, cls or sep, that gets more attention: mean over layers, heads and tokens of bundled passages.

    `encoder` is the one before fine-tuning. In BERT-base it is sep (Clark 2019, section 3.2).
    """
    examples = load_passages("bundled", passages, 0, encoder.tokenizer, max_tokens)
    scores = extract(encoder, examples, roles=[*SPECIAL], max_tokens=max_tokens).mean(["layer", "head"])
    # A score is T / (marked tokens of a row) times the attention on them, so the sum over rows is score times marked.
    attention = {"cls": scores.sel(role="cls"), "sep": scores.sel(role="sep") * scores["separators"]}
    return max(SPECIAL, key=lambda token: float(attention[token].sum()))
