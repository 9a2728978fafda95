"""Are Sixteen Heads Really Better than One? (Michel et al., NeurIPS 2019)."""
