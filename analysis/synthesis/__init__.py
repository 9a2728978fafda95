"""Do roles predict which heads matter? (this study)."""
