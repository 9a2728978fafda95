"""Maps to numbers: sieves, sources of maps, and the one streaming pass that multiplies them."""
