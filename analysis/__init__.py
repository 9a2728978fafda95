"""Statistics of attention heads: sieves, scores, tests and roles.

The names below load on first use, so that a reader of one table does not load torch.
"""

import sys
from importlib import import_module
from typing import Any

if sys.flags.optimize > 1:
    sys.exit("error: PYTHONOPTIMIZE=2 takes away docstrings that libraries need: unset it, or set it to 1")

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
    "load_classifier": "encoders.classifiers",
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
__all__ = [*HOMES]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
