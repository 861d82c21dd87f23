"""Numbers only: intervals over rounds, ties, judging, comparing."""
