"""Do roles predict which heads matter? (this study, across the papers)."""
