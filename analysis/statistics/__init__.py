"""Numbers to labels: tests, intervals, roles and verdicts; nothing here needs torch."""

from analysis.lazy import lazy_names

HOMES = {
    "controlled_table": "controls",
    "COARSE": "roles",
    "LABELS": "roles",
    "ROLES": "roles",
    "compose": "roles",
    "label_agreement": "roles",
    "layer_counts": "roles",
    "mass_table": "roles",
    "transitions": "roles",
    "Rule": "significance",
    "corrections": "significance",
    "label_comparison": "significance",
    "published_table": "significance",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
