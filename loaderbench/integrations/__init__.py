"""Callbacks for training frameworks, for those who prefer one line of code to the command `loaderbench profile`."""
