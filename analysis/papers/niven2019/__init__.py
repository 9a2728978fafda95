"""Probing Neural Network Comprehension of Natural Language Arguments (Niven and Kao, ACL 2019)."""

from analysis.papers.niven2019.measures import CLAIMS
