"""Numbers to labels: tests, intervals, roles and verdicts; nothing here needs torch."""

from analysis.lazy import lazy_names

HOMES = {
    "CHANGES": "comparison",
    "compare": "comparison",
    "partial_conjunction": "comparison",
    "head_card": "cards",
    "ranking": "cards",
    "CONTROLS": "roles",
    "control_bank": "controls",
    "control_sieves": "controls",
    "controlled_table": "controls",
    "COARSE": "roles",
    "ROLES": "roles",
    "arithmetic_differences": "roles",
    "coarse_memberships": "roles",
    "compose": "roles",
    "label_agreement": "roles",
    "layer_counts": "roles",
    "mass_table": "roles",
    "memberships": "roles",
    "overlap": "roles",
    "transitions": "roles",
    "adjust": "significance",
    "corrections": "significance",
    "label_comparison": "significance",
    "published_table": "significance",
    "role_table": "significance",
    "Claim": "verdicts",
    "Finding": "verdicts",
    "claim_table": "verdicts",
    "seed_table": "verdicts",
    "short_table": "verdicts",
    "untestable": "verdicts",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
