"""Models: loading, fine-tuning, the layout of a sequence, and the one place that touches attention."""

from analysis.lazy import lazy_names

HOMES = {
    "encoder_note": "notes",
    "baselines": "measures",
    "evaluate": "finetuning",
    "finetune": "finetuning",
    "training_history": "checkpoints",
    "load_encoder": "models",
    "random_encoder": "models",
    "all_but_one": "interventions",
    "predict": "interventions",
    "single_heads": "interventions",
    "whole_layers": "interventions",
}
__getattr__, __all__ = lazy_names(__name__, HOMES)
