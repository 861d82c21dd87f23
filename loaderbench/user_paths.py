"""Paths as users write them."""

from __future__ import annotations

import os
from pathlib import Path


def expanded(path: str) -> Path:
    """Expand `~` and `~user`; an unknown user stays as written."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - Path.expanduser raises for an unknown user
