"""Drawing that several papers share."""

from analysis.figures.claims import forest_plot
from analysis.figures.diagrams import attention_maps, sieve_diagrams
from analysis.figures.edits import dial_panels, marks_by_edit, rank_panels
from analysis.figures.grids import head_grids, head_summary, role_layer_maps
from analysis.figures.lines import curves, name_series, training_curves
from analysis.figures.theme import style
from analysis.figures.words import finding, learnt
