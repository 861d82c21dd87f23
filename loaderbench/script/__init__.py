"""Records the loaders of an unmodified training script, from the first line of its interpreter to the last."""
