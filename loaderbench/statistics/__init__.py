"""Statistics over rounds: intervals, ties, the best configuration, judgments and comparisons, with their wording."""
