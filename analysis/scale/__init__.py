"""Corpora beyond one machine: shards, and a cluster that makes them."""
