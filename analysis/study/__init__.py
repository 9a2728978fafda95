"""The files of a run: profiles, results, provenance, executed copies, and the pages made of them.

Modules are imported by their full path: some are commands (`python -m analysis.study.profiles`), which nothing may have
imported before they run.
"""
