"""The files of a run: profiles, results, provenance, executed copies, and the pages made of them."""
