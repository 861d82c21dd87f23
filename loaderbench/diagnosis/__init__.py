"""Determines from a run's trials what bounds it, at which stage, and why."""
