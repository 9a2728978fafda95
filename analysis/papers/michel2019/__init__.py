"""Are Sixteen Heads Really Better than One? (Michel et al., NeurIPS 2019)."""

from analysis.papers.michel2019.measures import CLAIMS
