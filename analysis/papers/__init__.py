"""What each paper asks: one folder a paper, found by its name."""
