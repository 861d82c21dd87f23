"""The order to record that a script's interpreter receives through its environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "LOADERBENCH_RECORD"
SITE = Path(__file__).parent / "site"

LONGEST_SAVE_S = 60.0
"""Longest time, in seconds, between saves of a recording. Saves are regular because a script can be killed."""

LIVE_SAVE_S = 10.0
"""The same limit if a tracker draws the saved numbers."""


@dataclass(frozen=True, kw_only=True)
class RecordOrder:
    """Where recordings are written, and how much is recorded.

    Recording stops after `steps` batches of a loader or `seconds` of the script, and the script continues.
    `python_path` is the user's `PYTHONPATH`. With `inherited`, processes that a launcher starts are recorded as well.
    `tune_s` is the time for tuning the training loader once it has settled, and `tune_folder` the run folder. Without
    `keep_training`, the script ends after tuning; with `quiet`, no line announces the tuning. Recordings are saved at
    least every `longest_save_s` seconds.
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
        """The environment of this process with the order, and the path that makes an interpreter follow the order."""
        own = [self.python_path] if self.python_path else []
        return {**os.environ, VARIABLE: json.dumps(asdict(self)), "PYTHONPATH": os.pathsep.join([str(SITE), *own])}


def own_python_path() -> str | None:
    """The user's `PYTHONPATH`."""
    return os.environ.get("PYTHONPATH")


def take_order() -> RecordOrder | None:
    """The order for this process. It is removed from the environment unless child processes must follow it, too."""
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
