"""Do roles predict which heads matter? (this study, across the papers)."""

from analysis.lazy import lazy_names

HOMES = {
    "highlights": "front",
    "overview": "front",
    "CLAIMS": "measures",
    "NAMES": "measures",
    "heads_with_role": "measures",
    "measured": "measures",
    "frames": "measures",
    "summary": "measures",
    "gate_agreement": "agreement",
    "importance_agreement": "agreement",
    "survival_agreement": "agreement",
    "MAPS": "atlas",
    "atlas_table": "atlas",
    "map_roles": "atlas",
    "role_scores": "atlas",
    "run_roles": "atlas",
    "wanted": "atlas",
    "agreement_map": "figures",
    "gates_map": "figures",
    "regression_plot": "figures",
    "sets_plot": "figures",
    "survival_plot": "figures",
    "agreed": "gates",
    "both_gates": "gates",
    "regression_table": "regression",
    "interventions": "sets",
    "role_sets": "sets",
    "set_changes": "sets",
    "sets_table": "sets",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
