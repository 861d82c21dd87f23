"""What rounds show: intervals, ties, the best of them, judgements and comparisons, each with its words."""
