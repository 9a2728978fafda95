"""Maps to numbers: sieves, their contraction with maps, and the one streaming pass."""

from analysis.scores.extraction import extract, extract_states, read_attention
