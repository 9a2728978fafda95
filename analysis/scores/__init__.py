"""Maps to numbers: sieves, their contraction with maps, and the one streaming pass."""
