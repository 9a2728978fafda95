"""Three heads in three layers on one sequence: attention, its effective part, local and global attribution."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from analysis.encoders.layout import Layout, layouts
from analysis.encoders.models import Encoder
from analysis.papers.pascual2021.names import ATTENTION, EFFECTIVE, GLOBAL, LOCAL
from analysis.scores.extraction import read_attention
from analysis.scores.maps import attribution, local_attribution
from analysis.texts.examples import Example

SHOWN = {
    ATTENTION: "attention",
    EFFECTIVE: "effective attention",
    LOCAL: "local attribution",
    GLOBAL: "attribution",
}
LONGER = (
    2,
    8,
)  # how many more tokens than a value vector has entries the sequence shown has, at least and at most


def exemplars(patterns: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """A head (layer, head) for the next token from the first third of the layers, one for special tokens from the
    second third, and a broad head from the last.

    The first two have the highest mean score on attention; the broad head has the lowest maximum over all scores.
    `patterns` is that of `pattern_table`.
    """
    wide = patterns.pivot(index=["layer", "head"], columns="pattern", values=ATTENTION)
    layer = wide.index.get_level_values("layer")
    thirds = 3 * layer // (layer.max() + 1)
    heads = {
        "next token": wide.loc[thirds == 0, "offset_+1"].idxmax(),
        "special tokens": wide.loc[thirds == 1 if (thirds == 1).any() else thirds == 0, "delimiter"].idxmax(),
        "broad": wide[thirds == thirds.max()].max(axis=1).idxmin(),
    }
    return {name: (int(layer), int(head)) for name, (layer, head) in heads.items()}


def illustrated(
    encoder: Encoder, examples: Sequence[Example], probes: int | None, seed: int = 0
) -> tuple[Layout, dict[str, Float[np.ndarray, "layer head token token"]]]:
    """The first example of a suitable length (LONGER; else the longest) and its maps, by their names in SHOWN."""
    lengths = [len(layout) for layout in layouts(encoder.tokenizer, examples, encoder.positions)]
    width = encoder.model.config.hidden_size // encoder.heads  # of a value vector
    suitable = [number for number, length in enumerate(lengths) if LONGER[0] <= length - width <= LONGER[1]]
    example = examples[suitable[0] if suitable else int(np.argmax(lengths))]
    sources = dict.fromkeys(SHOWN) | {name: name for name in (ATTENTION, EFFECTIVE)}
    sources |= {LOCAL: local_attribution(probes, seed), GLOBAL: attribution(probes, seed)}
    read = {
        name: read_attention(encoder, example, encoder.positions, maps=source)
        for name, source in sources.items()
    }
    return read[ATTENTION][0], {SHOWN[name]: maps for name, (_, maps) in read.items()}
