"""What each paper asks: one folder a paper."""
