"""The head explorer: a page to browse every head, and the same view of one text in a notebook cell."""
