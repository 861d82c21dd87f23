"""What rounds show: intervals, ties, the best configuration, judgments and comparisons, each with its words."""
