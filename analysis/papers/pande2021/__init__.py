"""The Heads Hypothesis (Pande et al., AAAI 2021)."""

from analysis.papers.pande2021.measures import CLAIMS
