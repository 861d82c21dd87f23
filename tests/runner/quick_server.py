"""A fork server that has nothing to import, for tests of the server and not of what it imports."""

from __future__ import annotations

import os
from pathlib import Path


def quick_server(folder: Path) -> dict[str, str]:
    """The environment of a program whose fork server does without torch: its import of torchvision fails at once."""
    (folder / "torchvision.py").write_text("raise ImportError('not needed here')\n")
    return {**os.environ, "PYTHONPATH": str(folder)}
