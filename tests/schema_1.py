"""A run of today in the shape of schema 1: the one place in the tests that knows how the shapes differ."""

from __future__ import annotations

import json
from typing import Any

from loaderbench.records import RunRecord, Trial, to_dict
from loaderbench.store import run_json

GONE = {"prediction": None}
"""What schema 1 had and nothing produces any more."""

NEW_IN_VERDICT = ("evidence_parts", "work", "read_inside", "confidence_reasons", "rank")
NEW_IN_TRIAL = ("role", "isolation", "time_slices", "metrics", "consumer", "rank", "host", "rank_wait_share")


def as_schema_1(run: RunRecord) -> dict[str, Any]:
    """The `run.json` that the code of schema 1 would have written."""
    found: dict[str, Any] = json.loads(run_json(run))
    plan = {k: v for k, v in found["plan"].items() if k not in ("configs", "baseline", "baseline_why")}
    isolation, verification = found.pop("isolation"), found["verification"]
    found["not_measured"].pop("gpu_memory", None)  # that came later, and so did these
    del found["hotspots"], found["ranks"]
    reasons = {("ladder" if name == "isolation" else name): why for name, why in found["not_measured"].items()}
    return {
        **found,
        **GONE,
        "schema_version": 1,
        "plan": plan,
        "dataset": {name: value for name, value in found["dataset"].items() if name != "root"},
        "baseline": found["baseline"] and {k: v for k, v in found["baseline"].items() if k != "ties"},
        "configurations": [{k: v for k, v in one.items() if k != "metrics"} for one in found["configurations"]],
        "recommendations": [_recommendation(one) for one in found["recommendations"]],
        "verdict": {name: value for name, value in found["verdict"].items() if name not in NEW_IN_VERDICT},
        "trials": _trials(run.sweep),
        "noise": {
            **found["noise"],
            "aa_trials": _trials(run.twins),
            "cpu_percent_before": found["cpu_percent_before"],
        },
        "ladder": isolation and _ladder(isolation, run),
        "notes": [*found["notes"], *found["remarks"]],
        "verification": verification and _verification(verification, run),
        "not_measured": {"prediction": "this version does not predict what it has not measured", **reasons},
    }


def _recommendation(found: dict[str, Any]) -> dict[str, Any]:
    new = ("against", "pixels", "before", "after", "meets_target")
    gain = found["gain"] and {k: v for k, v in found["gain"].items() if k != "is_floor"}
    return {**{k: v for k, v in found.items() if k not in new}, "gain": gain}


def _trials(trials: tuple[Trial, ...]) -> list[dict[str, Any]]:
    return [_trial(json.loads(json.dumps(to_dict(trial)))) for trial in trials]


def _trial(trial: dict[str, Any]) -> dict[str, Any]:
    rung = trial["isolation"] or "end_to_end"
    kept = {k: v for k, v in trial.items() if k not in NEW_IN_TRIAL}
    reasons = {("turns" if k == "time_slices" else k): why for k, why in trial["not_measured"].items()}
    return {**kept, "rung": rung, "turns": trial["time_slices"], "not_measured": reasons}


def _ladder(isolation: dict[str, Any], run: RunRecord) -> dict[str, Any]:
    kept = {name: value for name, value in isolation.items() if name not in ("runs", "copy")}
    kept["not_measured"].pop("copy", None)  # that came later
    return {**kept, "rungs": isolation["runs"], "trials": _trials(run.isolation_trials)}


def _verification(verification: dict[str, Any], run: RunRecord) -> dict[str, Any]:
    tried = [{k: v for k, v in one.items() if k != "judgement"} for one in verification["tried"]]
    kept = {name: value for name, value in verification.items() if name not in ("whole", "not_measured")}
    return {**kept, "tried": tried, "trials": _trials(run.remedy_trials)}
