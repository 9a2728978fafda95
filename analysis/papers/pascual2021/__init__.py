"""Telling BERT's Full Story: from Local Attention to Global Aggregation (Pascual et al., EACL 2021)."""

from analysis.papers.pascual2021.measures import CLAIMS
