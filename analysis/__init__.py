"""Statistics of attention heads: sieves, scores, tests and roles."""

from analysis.lazy import lazy_names

HOMES = {
    "Example": "texts.examples",
    "InputError": "errors",
    "Relation": "texts.examples",
    "Results": "study.results",
    "Rule": "statistics.significance",
    "SIEVES": "scores.sieves",
    "TASKS": "texts.tasks",
    "extract": "scores.extraction",
    "head_view": "explorer.view",
    "load_encoder": "encoders.models",
    "load_examples": "texts.glue",
    "parse": "texts.syntax",
    "predict": "encoders.interventions",
    "published_table": "statistics.significance",
    "redirect": "encoders.redirection",
    "role_table": "statistics.significance",
    "sieve": "scores.sieves",
    "single_heads": "encoders.interventions",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
