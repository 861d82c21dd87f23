"""Says why the accelerator waits for images, proves it, and finds the loader configuration that feeds it.

`run` measures a suite, `load` reads a saved run; both return a `Run`. Nothing heavy is imported before it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loaderbench.session import Run, load, run

__all__ = ["Run", "load", "run"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("loaderbench.session"), name)
    raise AttributeError(f"module 'loaderbench' has no attribute {name!r}")
