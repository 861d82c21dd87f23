"""What the interpreter of a recorded script is asked to do, as it travels in the environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "LOADERBENCH_RECORD"
SITE = Path(__file__).parent / "site"

LONGEST_SAVE_S = 60.0
"""Seconds from save to save of what is recorded: a script may be killed."""

LIVE_SAVE_S = 10.0
"""The same where a tracker draws what is saved."""


@dataclass(frozen=True, kw_only=True)
class RecordOrder:
    """Where recordings go, and how much is recorded.

    After `steps` batches of a loader, or `seconds` of the script, recording stops and the script continues.
    `python_path` is `PYTHONPATH` as the user has set it. With `inherited`, the processes that a launcher starts are
    recorded as well. `tune_s` is the time for tuning the training loader, once it has settled, and `tune_folder` its
    run folder; without `keep_training`, the script ends then, and if `quiet`, no line says so. What is recorded is
    saved after `longest_save_s` at most.
    """

    folder: str
    python_path: str | None
    steps: int | None = None
    seconds: float | None = None
    inherited: bool = False
    tune_s: float | None = None
    tune_folder: str = ""
    keep_training: bool = False
    quiet: bool = False
    longest_save_s: float = LONGEST_SAVE_S

    def environment(self) -> dict[str, str]:
        """Add the order to this process's environment, and the path that makes an interpreter follow it."""
        own = [self.python_path] if self.python_path else []
        return {**os.environ, VARIABLE: json.dumps(asdict(self)), "PYTHONPATH": os.pathsep.join([str(SITE), *own])}


def own_python_path() -> str | None:
    """`PYTHONPATH` as the user has set it."""
    return os.environ.get("PYTHONPATH")


def take_order() -> RecordOrder | None:
    """The order of this process; it disappears from the environment, unless other processes are to follow it too."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return None
    order = RecordOrder(**json.loads(text))
    if not order.inherited:
        del os.environ[VARIABLE]
        os.environ.pop("PYTHONPATH")
        if order.python_path is not None:
            os.environ["PYTHONPATH"] = order.python_path
    return order
