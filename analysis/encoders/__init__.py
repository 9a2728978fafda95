"""Models: loading, fine-tuning, the layout of a sequence, and the one place that touches attention."""

from analysis.lazy import lazy_names

HOMES = {
    "encoder_note": "notes",
    "baselines": "measures",
    "evaluate": "finetuning",
    "finetune": "finetuning",
    "training_history": "checkpoints",
    "Encoder": "models",
    "load_encoder": "models",
    "random_encoder": "models",
    "Intervention": "interventions",
    "all_but_one": "interventions",
    "cumulative": "interventions",
    "predict": "interventions",
    "sets": "interventions",
    "single_heads": "interventions",
    "whole_layers": "interventions",
    "normalised": "importance",
    "load_pruned": "pruning",
    "prune": "pruning",
    "save_pruned": "pruning",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
