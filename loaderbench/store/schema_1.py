"""Reads runs of schema 1, whose trials were in four lists and distinguished by their IDs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args

from loaderbench.records import Stage

Json = dict[str, Any]

_UNKNOWN = "the older version that made this run did not record it"


class UpgradeError(ValueError):
    """A run claims schema 1 but does not match it; the message names the field."""


def upgraded_run(run: Json) -> Json:
    """The run with all trials in one list. Raises `UpgradeError` if it is not a run of schema 1."""
    with _upgrade_errors():
        return _upgraded(run)


def upgraded_trial(trial: Any) -> Any:
    """A line of `trials.jsonl` with its role, derived from its ID unless already present. Raises `UpgradeError`."""
    if not isinstance(trial, dict) or "role" in trial:
        return trial
    name = str(trial.get("id"))
    with _upgrade_errors():
        if trial.get("rung", "end_to_end") != "end_to_end":
            return _trial(trial, "isolation")
        return _trial(trial, "remedy" if name.startswith("v") else "twin" if name.endswith("-aa") else "sweep")


@contextmanager
def _upgrade_errors() -> Iterator[None]:
    """Convert an exception to an `UpgradeError` that names the missing field or the mismatch."""
    try:
        yield
    except KeyError as error:
        raise UpgradeError(f"{error.args[0]}: field required") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise UpgradeError(f"not a valid schema 1 run: {error}") from None


def _upgraded(run: Json) -> Json:
    known = {**run, "schema_version": 2}
    ladder, noise = known.pop("ladder", None), dict(known["noise"])
    verification = dict(known["verification"]) if known.get("verification") else None
    known.pop("prediction", None)
    own = "profile" if known.get("kind", "sweep") == "profile" else "sweep"
    trials = [
        *_trials(known["trials"], own),
        *_trials(noise.pop("aa_trials", ()), "twin"),
        *_trials(ladder.get("trials", ()) if ladder else (), "isolation"),
        *_trials(verification.pop("trials", ()) if verification else (), "remedy"),
    ]
    reasons = {name: why for name, why in known.get("not_measured", {}).items() if name != "prediction"}
    return {
        **known,
        "consumer": known.get("consumer", "emulated"),
        "trials": trials,
        "verdict": _verdict(known["verdict"]),
        "plan": _plan(known),
        "baseline": known["baseline"] or _no_baseline(),
        "cpu_percent_before": noise.pop("cpu_percent_before", None),
        "noise": noise,
        "isolation": _isolation(ladder) if ladder else None,
        "verification": verification,
        "left_out": _left_out(ladder, reasons),
        "not_measured": {("isolation" if name == "ladder" else name): why for name, why in reasons.items()},
    }


def _trials(found: Any, role: str) -> Iterator[Json]:
    return (_trial(trial, role) for trial in found or ())


def _trial(trial: Json, role: str) -> Json:
    kept = {name: value for name, value in trial.items() if name not in ("rung", "turns")}
    reasons = {("time_slices" if k == "turns" else k): why for k, why in trial.get("not_measured", {}).items()}
    isolation = trial["rung"] if role == "isolation" else None
    return {**kept, "role": role, "isolation": isolation, "time_slices": trial.get("turns"), "not_measured": reasons}


def _plan(run: Json) -> Json:
    baseline = run["baseline"] or _no_baseline()
    configs = [found["config"] for found in run["configurations"]]
    return {**run["plan"], "configs": configs, "baseline": baseline["config"], "baseline_why": baseline["why_this_one"]}


def _no_baseline() -> Json:
    return {"config": {}, "samples_per_s": None, "data_wait_share": None, "why_this_one": "", "not_measured": {}}


def _verdict(verdict: Json) -> Json:
    """The verdict, with a stage that users named in their loop as part of a sample, as in this version."""
    own = verdict["stage"] is not None and verdict["stage"] not in get_args(Stage)
    return {**verdict, "stage": "sample"} if own else verdict


def _isolation(ladder: Json) -> Json:
    kept = {name: value for name, value in ladder.items() if name not in ("rungs", "trials")}
    return {**kept, "runs": ladder["rungs"]}


def _left_out(ladder: Json | None, reasons: Json) -> Json:
    """Why isolation runs were not measured, and why no fix was tried."""
    if ladder is None:
        found = {"isolation": reasons.get("ladder", _UNKNOWN)}
    else:
        found = {run["name"]: run["not_measured"].get("time_s", "") for run in ladder["rungs"] if not run["trials"]}
    return {**found, "verification": reasons.get("verification", "")}
