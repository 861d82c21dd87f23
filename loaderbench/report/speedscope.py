"""Stack samples of the threads that load, as a file for speedscope.app and editors that support its format.

Source: speedscope's file format, https://www.speedscope.app/file-format-schema.json; one profile of the type `sampled`.
"""

from __future__ import annotations

import json
from pathlib import Path

from loaderbench.diagnosis.hotspots import stack_shares
from loaderbench.errors import UsageError
from loaderbench.records import Readings, RunRecord, StackFrame
from loaderbench.report.model import Json
from loaderbench.report.view import View, trials_with_stacks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_profile(run: RunRecord) -> Json:
    """The stacks of the verdict's configuration, weighted by their share of loading time, in percent.

    Raises `UsageError` for a run without stacks.
    """
    shares = stack_shares(trials_with_stacks(View(run, Readings())))
    if not shares:
        raise UsageError(f"no stacks were recorded: {_why_none(run)}")
    places: dict[str | StackFrame, int] = {}
    calls: list[list[str | StackFrame]] = [[stage, *frames] for stage, frames in shares]
    samples = [[places.setdefault(call, len(places)) for call in stack] for stack in calls]
    weights = [round(100 * share, 4) for share in shares.values()]
    return {
        "$schema": SCHEMA,
        "exporter": f"loaderbench {run.loaderbench_version}",
        "name": run.name,
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(one) for one in places]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"{run.name}: loading",
                "unit": "none",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": samples,
                "weights": weights,
            }
        ],
    }


def write_speedscope(path: Path, run: RunRecord) -> None:
    """Write the profile as JSON. Raises `OSError`, and `UsageError` for a run without stacks."""
    path.write_text(json.dumps(speedscope_profile(run), allow_nan=False, separators=(",", ":")), encoding="utf-8")


def _frame(one: str | StackFrame) -> Json:
    """A frame for a call, or for a stage, which has no file or line."""
    if isinstance(one, str):
        return {"name": f"[{one}]"}
    return {"name": one.function, "file": one.file, "line": one.line}


def _why_none(run: RunRecord) -> str:
    """The reason that the first trial gives for missing stacks."""
    reasons = (trial.not_measured.get("code_looks") for trial in run.sweep)
    return next(filter(None, reasons), "only profile, attach with py-spy, and runs of your own code record them")
