"""Callbacks for training frameworks: an alternative to `loaderbench profile` that takes one line of code."""
