"""Whether a GPU can be used, and whether our clocks read known waits on it right."""
