"""Runs of schema 1 are upgraded to today's schema: four lists of trials become one, where each trial has a role."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from loaderbench.store.schema_1 import UpgradeError, upgraded_run, upgraded_trial


def trial(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "config": {"num_workers": 2}, "round": 1, "status": "completed", **more}


BASELINE = {"config": {"num_workers": 0}, "samples_per_s": None, "data_wait_share": None, "why_this_one": "default"}
OLD: dict[str, Any] = {
    "schema_version": 1,
    "name": "old",
    "trials": [trial("r1-c00")],
    "noise": {"reference_decode_spread": 1.1, "aa_trials": [trial("r1-aa")], "cpu_percent_before": 3.0},
    "plan": {"axes": {}, "rounds": 3},
    "configurations": [{"config": {"num_workers": 0}}, {"config": {"num_workers": 2}}],
    "baseline": BASELINE,
    "verdict": {"bound": "input", "stage": "read"},
    "prediction": None,
    "ladder": {
        "per": "batch",
        "rungs": [
            {"name": "replay_device", "trials": [], "not_measured": {"time_s": "no accelerator"}},
            {"name": "replay_host", "trials": ["r1-replay_host"], "not_measured": {}},
            {"name": "loader_cold", "trials": [], "not_measured": {}},
        ],
        "trials": [trial("r1-replay_host", rung="replay_host", not_measured={"turns": "alone", "pss_bytes": "x"})],
    },
    "verification": {"ended": "", "trials": [trial("v01-present", turns={"count": 3})]},
    "not_measured": {"prediction": "none yet", "best": "why"},
}


def old(**changed: Any) -> dict[str, Any]:
    return {**deepcopy(OLD), **changed}


def test_all_trials_are_in_one_list_by_the_list_they_lay_in() -> None:
    found = upgraded_run(old())
    assert [(one["id"], one["role"], one["isolation"]) for one in found["trials"]] == [
        ("r1-c00", "sweep", None),
        ("r1-aa", "twin", None),
        ("r1-replay_host", "isolation", "replay_host"),
        ("v01-present", "remedy", None),
    ]
    assert found["schema_version"] == 2
    for place in (found["noise"], found["isolation"], found["verification"]):
        assert not {"trials", "aa_trials", "rungs"} & place.keys()
    assert not {"ladder", "prediction"} & found.keys()


def test_what_is_read_is_not_changed() -> None:
    given = old()
    upgraded_run(given)
    assert given == OLD


def test_time_slices_have_their_name_also_where_they_were_not_measured() -> None:
    _, _, replayed, tried = upgraded_run(old())["trials"]
    assert tried["time_slices"] == {"count": 3}
    assert replayed["time_slices"] is None
    assert replayed["not_measured"] == {"time_slices": "alone", "pss_bytes": "x"}
    assert not {"turns", "rung"} & replayed.keys()


def test_the_plan_knows_its_configurations_and_its_baseline() -> None:
    plan = upgraded_run(old())["plan"]
    assert plan == {
        "axes": {},
        "rounds": 3,
        "configs": [{"num_workers": 0}, {"num_workers": 2}],
        "baseline": {"num_workers": 0},
        "baseline_why": "default",
    }


def test_a_run_without_a_baseline_has_an_empty_one() -> None:
    found = upgraded_run(old(baseline=None))
    assert (found["baseline"]["config"], found["baseline"]["samples_per_s"]) == ({}, None)
    assert (found["plan"]["baseline"], found["plan"]["baseline_why"]) == ({}, "")


def test_a_profile_s_one_trial_is_its_own() -> None:
    found = upgraded_run(old(kind="profile", ladder=None, verification=None))
    assert [one["role"] for one in found["trials"]] == ["profile", "twin"]
    assert (found["isolation"], found["verification"]) == (None, None)
    assert upgraded_run(old(kind="sweep"))["trials"][0]["role"] == "sweep"


def test_what_other_programs_used_belongs_to_what_was_measured() -> None:
    found = upgraded_run(old())
    assert found["cpu_percent_before"] == 3.0
    assert found["noise"] == {"reference_decode_spread": 1.1}
    assert upgraded_run(old(noise={}))["cpu_percent_before"] is None


def test_what_was_left_out_has_its_reason_by_name() -> None:
    found = upgraded_run(old())
    assert found["left_out"] == {"replay_device": "no accelerator", "loader_cold": "", "verification": ""}
    assert [run["name"] for run in found["isolation"]["runs"]] == ["replay_device", "replay_host", "loader_cold"]
    assert found["isolation"]["per"] == "batch"


def test_a_run_without_isolation_says_why() -> None:
    reasons = {"ladder": "interrupted", "verification": "no time"}
    found = upgraded_run(old(ladder=None, verification=None, not_measured=reasons))
    assert found["left_out"] == {"isolation": "interrupted", "verification": "no time"}
    assert found["not_measured"] == {"isolation": "interrupted", "verification": "no time"}
    unknown = upgraded_run(old(ladder=None))
    assert unknown["left_out"]["isolation"] == "the older version that made this run did not record it"
    assert unknown["not_measured"] == {"best": "why"}


@pytest.mark.parametrize(("given", "consumer"), [({}, "emulated"), ({"consumer": "model"}, "model")])
def test_a_run_that_names_no_consumer_had_an_emulated_one(given: dict[str, Any], consumer: str) -> None:
    assert upgraded_run(old(**given))["consumer"] == consumer


@pytest.mark.parametrize(
    ("given", "role", "isolation"),
    [
        ({"id": "r1-c00"}, "sweep", None),
        ({"id": "r1-aa"}, "twin", None),
        ({"id": "v01-present"}, "remedy", None),
        ({"id": "v01-aa"}, "remedy", None),
        ({"id": "r1-loader_warm", "rung": "loader_warm"}, "isolation", "loader_warm"),
        ({"id": "v01-x", "rung": "end_to_end"}, "remedy", None),
        ({}, "sweep", None),
    ],
)
def test_a_line_of_trials_has_its_role_by_its_id(given: dict[str, Any], role: str, isolation: str | None) -> None:
    found = upgraded_trial(given)
    assert (found["role"], found["isolation"]) == (role, isolation)


@pytest.mark.parametrize("given", [{"role": "probe", "turns": 1}, [1, 2], "text", None, 7])
def test_what_is_of_today_or_no_trial_is_left_as_it_is(given: Any) -> None:
    assert upgraded_trial(given) is given


def test_a_line_of_another_shape_costs_that_line() -> None:
    with pytest.raises(UpgradeError, match="not a valid schema 1 run"):
        upgraded_trial({"id": "r1-c00", "not_measured": None})


@pytest.mark.parametrize(
    ("stage", "now"), [("augment", "sample"), ("decode", "decode"), ("stragglers", "stragglers"), (None, None)]
)
def test_a_stage_that_a_user_had_named_is_part_of_a_sample(stage: str | None, now: str | None) -> None:
    verdict = {"bound": "input", "stage": stage}
    assert upgraded_run(old(verdict=verdict))["verdict"] == {"bound": "input", "stage": now}


@pytest.mark.parametrize("field", ["verdict", "noise", "trials", "plan", "configurations", "baseline"])
def test_a_field_that_is_missing_is_named(field: str) -> None:
    broken = old()
    del broken[field]
    with pytest.raises(UpgradeError, match=rf"^{field}: field required$"):
        upgraded_run(broken)


@pytest.mark.parametrize("changed", [{"noise": 7}, {"trials": [7]}, {"ladder": "x"}, {"plan": None}])
def test_what_has_another_shape_is_no_run_of_schema_1(changed: dict[str, Any]) -> None:
    with pytest.raises(UpgradeError, match="not a valid schema 1 run"):
        upgraded_run(old(**changed))
