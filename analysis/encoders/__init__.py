"""Models: loading, fine-tuning, the layout of a sequence, and the one place that touches attention."""

from analysis.encoders.checkpoints import training_history
from analysis.encoders.interventions import all_but_one, predict, single_heads, whole_layers
from analysis.encoders.models import load_encoder, random_encoder
