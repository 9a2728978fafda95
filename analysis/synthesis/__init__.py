"""Do roles predict which heads matter? (this study, across the papers)."""

from analysis.synthesis.measures import CLAIMS
from analysis.synthesis.picture import heads_in_short
