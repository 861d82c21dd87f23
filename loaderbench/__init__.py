"""Find out why the GPU waits for images, and measure what fixes it.

`Profiler` records your own training loop, `run` measures a suite, and `load` reads a saved run. Each returns a `Run`.
`tune` measures faster arguments for a `DataLoader`.

Heavy packages are imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loaderbench.profiler import Profiler
    from loaderbench.result import Run, load
    from loaderbench.session import run
    from loaderbench.tuning.api import tune

__all__ = ["Profiler", "Run", "load", "run", "tune"]

_HOMES = {"Profiler": "profiler", "Run": "result", "load": "result", "run": "session", "tune": "tuning.api"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"loaderbench.{_HOMES[name]}"), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("loaderbench")
    raise AttributeError(f"module 'loaderbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
