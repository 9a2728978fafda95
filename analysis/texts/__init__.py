"""The texts of the study: examples and tasks, parses, treebanks, coreference chains, passages."""
