"""Numbers to labels: tests, intervals, roles and verdicts; nothing here needs torch."""

from analysis.statistics.controls import controlled_table
from analysis.statistics.roles import (
    COARSE,
    LABELS,
    ROLES,
    compose,
    label_agreement,
    layer_counts,
    mass_table,
    transitions,
)
from analysis.statistics.significance import Rule, corrections, published_table
