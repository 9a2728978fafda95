"""Models: loading, fine-tuning, the layout of a sequence, and the one place that touches attention."""
