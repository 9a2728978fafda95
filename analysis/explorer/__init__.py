"""The head explorer: a page to browse every head, and the same view of one text in a notebook cell."""

from analysis.explorer.packing import illustrative, pack
from analysis.explorer.view import explorer, head_view
