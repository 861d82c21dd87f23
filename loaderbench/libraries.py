"""Optional libraries, which are imported only where they are used."""

from __future__ import annotations

from importlib.util import find_spec


def is_installed(module: str) -> bool:
    """Whether a library's module is installed, without importing it.

    A parent package such as `nvidia` belongs to many distributions, or to none. Uninstalling DALI leaves a folder
    without a module.
    """
    parent = module.rpartition(".")[0]
    if parent and find_spec(parent) is None:
        return False
    found = find_spec(module)
    return found is not None and found.origin is not None
