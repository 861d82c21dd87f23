"""Whether this process uses CUDA, asked without importing torch or touching a device."""

from __future__ import annotations

import sys


def uses_cuda() -> bool:
    """Whether torch is imported and has initialized CUDA."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_initialized()
