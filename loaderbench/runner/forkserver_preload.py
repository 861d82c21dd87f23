"""Imported by the fork server and nobody else: the preload, and a quiet end."""

import atexit
import os

import loaderbench.runner.preload  # noqa: F401

# The server only ever forks. Without this, bindings of compilers that torch brings along report, on its standard error,
# every object that is still alive when the interpreter is taken down.
atexit.register(os._exit, 0)
