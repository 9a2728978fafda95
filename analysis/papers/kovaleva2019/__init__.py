"""Revealing the Dark Secrets of BERT (Kovaleva et al., EMNLP 2019)."""

from analysis.papers.kovaleva2019.measures import CLAIMS
