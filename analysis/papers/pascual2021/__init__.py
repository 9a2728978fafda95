"""Telling BERT's Full Story: from Local Attention to Global Aggregation (Pascual et al., EACL 2021)."""
