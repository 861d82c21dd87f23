"""Check whether a GPU can be used, and whether loaderbench's clocks measure known waits on it correctly."""
