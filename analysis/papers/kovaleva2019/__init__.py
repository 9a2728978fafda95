"""Revealing the Dark Secrets of BERT (Kovaleva et al., EMNLP 2019)."""
