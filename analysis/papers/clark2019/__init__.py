"""What Does BERT Look At? (Clark et al., BlackboxNLP 2019)."""
