"""From trials to what bounds a run, at which stage, and why."""
