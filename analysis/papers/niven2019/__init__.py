"""Probing Neural Network Comprehension of Natural Language Arguments (Niven and Kao, ACL 2019)."""
