"""Python imports this before the script that `loaderbench profile` runs. It removes itself from `sys.path` again."""

import os
import sys

_HERE = os.path.dirname(__file__)  # noqa: PTH120 - pathlib takes longer to import than all of this
sys.path[:] = [place for place in sys.path if place != _HERE]
_NAME = "sitecustomize"
_own = sys.modules.pop(_NAME, None)
try:
    import sitecustomize  # type: ignore[import-not-found]  # noqa: F401 - the user's own, if there is one
except ImportError as _error:
    if _own is not None:
        sys.modules[_NAME] = _own
    if _error.name != _NAME:
        raise

try:
    from loaderbench.script.hook import install
except ImportError as _error:
    print(f"loaderbench: cannot record this script: {_error}", file=sys.stderr)
else:
    install()
