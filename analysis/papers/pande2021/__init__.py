"""The Heads Hypothesis (Pande et al., AAAI 2021)."""
