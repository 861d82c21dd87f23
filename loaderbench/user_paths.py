"""Paths as users write them."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(path: str) -> Path:
    """With `~` and `~user` expanded; a user who is not known here stays as written."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - the other one raises for such a user
