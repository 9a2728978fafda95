"""What Does BERT Look At? (Clark et al., BlackboxNLP 2019)."""

from analysis.papers.clark2019.measures import CLAIMS
