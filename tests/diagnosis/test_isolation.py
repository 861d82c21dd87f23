"""What is said of a configuration with parts of it taken away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loaderbench.diagnosis.facts import Facts
from loaderbench.diagnosis.isolation import MOST_ROUNDS, describe_isolation, find_ceiling, why_not, with_exposed_copy
from loaderbench.diagnosis.ranking import Subject
from loaderbench.diagnosis.verdict import decide
from loaderbench.records import Config, Failure, Interval, Isolation, IsolationRun, Trial

CONFIG: Config = {"batch_size": 10, "num_workers": 2}
WOBBLE = (0.99, 1.0, 1.01)


def trial(rung: str, round_: int, batch_s: float, samples: int = 400, **fields: Any) -> Trial:
    batches = fields.pop("batches", 40)
    return Trial(
        id=f"r{round_}-{rung}",
        role="sweep" if rung == "end_to_end" else "isolation",
        config=CONFIG,
        round=round_,
        status="completed",
        isolation=None if rung == "end_to_end" else rung,  # type: ignore[arg-type]
        samples_per_s=samples / batches / batch_s,
        batches=batches,
        samples=samples,
        steady_s=batches * batch_s,
        **fields,
    )


def trials(rung: str, batch_s: float, **fields: Any) -> list[Trial]:
    return [trial(rung, n, batch_s * wobble, **fields) for n, wobble in enumerate(WOBBLE, 1)]


def ladder(
    *rungs: list[Trial], whole_s: float = 0.05, consumer: str = "target", cache: str = "warm", **left_out: str
) -> Isolation:
    found, why = describe_isolation(
        trials("end_to_end", whole_s),
        [trial for own in rungs for trial in own],
        left_out=left_out,
        consumer=consumer,
        demand=1000.0 if consumer == "emulated" else None,
        cache=cache,
    )
    assert found, why
    return found


def rung(found: Isolation, name: str) -> IsolationRun:
    return next(rung for rung in found.runs if rung.name == name)


def test_differences_are_what_each_part_costs() -> None:
    found = ladder(
        trials("replay_device", 0.01),
        trials("replay_host", 0.02),
        trials("loader_warm", 0.03),
        trials("loader_cold", 0.08),
        whole_s=0.05,
    )
    assert (found.per, found.rounds) == ("batch", 3)
    assert found.transfer_s.est == pytest.approx(0.01)
    assert found.fetch_s.est == pytest.approx(0.05)
    assert found.interference_s.est == pytest.approx(0.02)
    assert found.interference_s.lo > 0
    assert not found.not_measured
    assert [rung.name for rung in found.runs][-1] == "end_to_end"


FACTS = Facts(workers=2, cpus=4, cpus_online=4, wait_share=0.01)


def test_a_copy_that_the_replay_exposes_enters_the_facts_and_the_verdict() -> None:
    """Copy of 7.5 ms in a step of 50 ms, which no loop has marked: 15% of it."""
    found = ladder(trials("replay_device", 0.04), trials("replay_host", 0.0475), whole_s=0.05)
    facts = with_exposed_copy(FACTS, found)
    assert facts is not None
    assert facts.transfer_share == pytest.approx(0.15, rel=1e-3)
    subject = Subject(CONFIG, Interval(200.0, 198.0, 202.0), Interval(0.01, 0.005, 0.015), True, facts)
    verdict = decide(subject, "model", None, 0)
    assert verdict.bound == "transfer"
    assert verdict.headline.startswith("host-to-device copy takes 15% of time")
    assert "replayed" in verdict.evidence[0]


def test_a_copy_within_the_noise_or_not_measured_leaves_the_facts_as_they_are() -> None:
    noisy = [trial("replay_host", n, took_s) for n, took_s in enumerate((0.03, 0.06, 0.05), 1)]
    for found in (ladder(trials("replay_device", 0.04), noisy), ladder(trials("replay_host", 0.0475)), None):
        assert with_exposed_copy(FACTS, found) is FACTS


def test_a_loader_and_a_consumer_that_overlap_well_show_no_interference() -> None:
    warm = [trial("loader_warm", n, s) for n, s in enumerate((0.052, 0.049, 0.050), 1)]
    found = ladder(trials("replay_host", 0.02), warm)
    assert found.interference_s.lo < 0 < found.interference_s.hi


def test_what_a_round_lacks_is_not_compared_and_one_round_has_no_interval() -> None:
    found = ladder(trials("replay_host", 0.02)[:1], trials("loader_warm", 0.03))
    assert found.interference_s == Interval(pytest.approx(0.0198, abs=2e-4), None, None)


def test_the_demand_stands_for_the_replay_of_an_emulated_accelerator() -> None:
    found = ladder(trials("loader_warm", 0.005), whole_s=0.0101, consumer="emulated", replay_host="by definition")
    assert found.interference_s.est == pytest.approx(0.0001, abs=1e-5)  # 10 samples at 1,000 a second
    assert rung(found, "replay_host").time_s is None
    assert rung(found, "replay_host").not_measured["time_s"] == "by definition"


def test_batches_of_different_sizes_are_compared_by_the_sample() -> None:
    found = ladder(trials("replay_host", 0.02), trials("loader_warm", 0.03, samples=800))
    assert found.per == "sample"
    assert rung(found, "loader_warm").time_s.est == pytest.approx(0.0015, rel=1e-3)


def test_every_part_that_is_not_known_has_its_reason() -> None:
    failure = Failure("bad_image", "Traceback\nOSError: broken", "mend it")
    broken = [replace(trial("replay_host", 1, 1.0), status="failed", failure=failure)]
    short = trials("loader_cold", 0.03, ended_early=True, batches=3, samples=30)
    found = ladder(broken, trials("loader_warm", 0.03), short, replay_device="there is no accelerator")
    assert found.not_measured["transfer_s"] == "trial failed: bad image: OSError: broken"
    assert "stopped after 3 batches" in found.not_measured["fetch_s"]
    assert found.not_measured["interference_s"] == found.not_measured["transfer_s"]
    assert rung(found, "replay_device").not_measured["time_s"] == "there is no accelerator"


@pytest.mark.parametrize(
    ("consumer", "cache", "why"), [("none", "warm", "nothing consumes"), ("target", "cold", "cold")]
)
def test_no_interference_is_told_where_it_would_be_something_else(consumer: str, cache: str, why: str) -> None:
    found = ladder(trials("replay_host", 0.02), trials("loader_warm", 0.03), consumer=consumer, cache=cache)
    assert found.interference_s is None
    assert why in found.not_measured["interference_s"]


def test_a_short_pass_and_a_machine_that_changed_are_told() -> None:
    warm = trials("loader_warm", 0.03, reference_decode_before_s=0.003)
    cold = trials("loader_cold", 0.04, ended_early=True, batches=12, samples=120)
    whole = trials("end_to_end", 0.05, reference_decode_before_s=0.002)
    found, _ = describe_isolation(whole, [*warm, *cold], left_out={}, consumer="none", demand=None, cache="warm")
    assert found is not None
    assert "12 batches per round" in found.notes[0]
    assert "changed by 1.50\u00d7" in found.notes[1]


def test_no_ladder_says_why() -> None:
    gone = {"replay_host": "no consumer", "loader_warm": "no consumer", "loader_cold": "no files"}
    for left_out, why in ((gone, "no consumer; no files"), ({"isolation": "interrupted"}, "interrupted")):
        found = describe_isolation([], [], left_out=left_out, consumer="none", demand=None, cache="warm")
        assert found == (None, why)


def test_the_ceiling_is_the_replay_of_cached_batches() -> None:
    subject = Subject(CONFIG, Interval(200.0, 190.0, 210.0), Interval(0.6, 0.5, 0.7), is_best=True)
    found, _ = find_ceiling(ladder(trials("replay_host", 0.02)), "", subject, "target", None)
    assert found is not None
    assert found.samples_per_s == pytest.approx(500, rel=1e-3)
    assert found.headspace == pytest.approx(0.6, rel=1e-2)
    assert found.basis == "cached batches replayed, 3 rounds"
    assert found.samples_per_s_interval.lo < 500 < found.samples_per_s_interval.hi


def test_without_a_replay_there_is_no_ceiling_but_that_of_a_known_demand() -> None:
    subject = Subject(CONFIG, Interval(200.0, None, None), Interval(0.6, None, None), is_best=False)
    assert find_ceiling(None, "interrupted", subject, "model", None) == (
        None, "cached batches were not replayed: interrupted",
    )  # fmt: skip
    assert find_ceiling(None, "interrupted", subject, "emulated", None) == (
        None, "the run did not record the target of the emulated GPU",
    )  # fmt: skip
    emulated, _ = find_ceiling(None, "interrupted", subject, "emulated", 400.0)
    assert emulated is not None
    assert (emulated.headspace, emulated.samples_per_s_interval) == (0.5, None)
    assert emulated.basis == "target of the emulated GPU"


def test_samples_are_compared_with_the_time_that_the_demand_leaves_for_one() -> None:
    mixed = [*trials("loader_warm", 0.005, samples=800)]
    found = ladder(mixed, whole_s=0.0101, consumer="emulated")
    assert found.per == "sample"
    assert found.interference_s.est == pytest.approx(0.0101 / 10 - 0.001, abs=1e-6)


@pytest.mark.parametrize(("samples", "per"), [(404, "batch"), (405, "sample")])
def test_batches_within_a_hundredth_of_each_other_are_of_one_size(samples: int, per: str) -> None:
    assert ladder(trials("replay_host", 0.02), trials("loader_warm", 0.03, samples=samples)).per == per


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({}, True),
        ({"ended_early": True, "batches": 5, "samples": 50}, True),
        ({"ended_early": True, "batches": 4, "samples": 40}, False),
        ({"batches": 4, "samples": 40}, True),
        ({"samples": 0}, False),
    ],
)
def test_a_pass_that_ended_early_needs_five_batches(fields: dict[str, Any], seen: bool) -> None:
    found = ladder(trials("replay_host", 0.02, **fields), trials("loader_warm", 0.03))
    assert (rung(found, "replay_host").time_s is not None) == seen
    assert (rung(found, "replay_host").samples_per_s is not None) == seen


@pytest.mark.parametrize("field", ["samples", "batches", "steady_s"])
def test_a_trial_that_lacks_a_count_saw_no_steady_state(field: str) -> None:
    broken = [replace(trial, **{field: None}) for trial in trials("replay_host", 0.02)]
    assert rung(ladder(broken, trials("loader_warm", 0.03)), "replay_host").time_s is None


def test_the_last_round_tells_after_how_many_batches_it_ended() -> None:
    early = [
        trial("loader_cold", number, 0.03, ended_early=True, batches=batches, samples=10)
        for number, batches in ((1, 4), (2, 3), (3, 2))
    ]
    assert "after 2 batches" in ladder(early, trials("loader_warm", 0.03)).not_measured["fetch_s"]


def test_a_cold_pass_that_was_faster_says_nothing_of_the_storage() -> None:
    found = ladder(trials("loader_warm", 0.03), trials("loader_cold", 0.02))
    assert found.fetch_s is None
    assert "faster than the one with a warm one" in found.not_measured["fetch_s"]


def test_the_fewest_batches_of_a_short_pass_are_told() -> None:
    cold = [
        trial("loader_cold", number, 0.03, ended_early=True, batches=batches, samples=10 * batches)
        for number, batches in ((1, 9), (2, 6), (3, 12), (4, 3))
    ]
    (note,) = ladder(cold, trials("loader_warm", 0.03)).notes
    assert "6 batches per round" in note


def test_what_was_thinned_out_for_a_replay_is_told_once_and_of_a_replay_alone() -> None:
    def thinned(name: str, *said: str | None) -> list[Trial]:
        return [replace(one, sampled=words) for one, words in zip(trials(name, 0.02), said, strict=True)]

    assert ladder(thinned("replay_host", None, "half", "a third")).notes == ("half",)
    both = ladder(thinned("replay_device", "device", None, None), thinned("replay_host", "host", None, None))
    assert both.notes == ("device",)
    assert ladder(thinned("loader_warm", "half", "half", "half")).notes == ()
    unusable = [replace(one, samples=0) for one in thinned("replay_host", "half", "half", "half")]
    assert ladder(unusable, trials("loader_warm", 0.03)).notes == ()


@pytest.mark.parametrize(
    ("after_s", "said"),
    [(0.00222, "changed by 1.11\u00d7"), (0.00219, ""), (0.00183, ""), (0.0018, "changed by 0.90\u00d7"), (None, "")],
)
def test_a_tenth_is_no_change_of_the_machine(after_s: float | None, said: str) -> None:
    whole = trials("end_to_end", 0.05, reference_decode_before_s=0.002)
    runs = trials("loader_cold", 0.03, reference_decode_before_s=after_s)
    found, _ = describe_isolation(whole, runs, left_out={}, consumer="none", demand=None, cache="warm")
    assert found is not None
    assert [said in note for note in found.notes] == [True] * bool(said)


def test_a_machine_that_nobody_timed_before_has_not_changed() -> None:
    found = ladder(trials("loader_warm", 0.03, reference_decode_before_s=0.003))
    assert found.notes == ()


def test_a_configuration_is_compared_with_itself_alone() -> None:
    other = [replace(one, config={"batch_size": 99}) for one in trials("end_to_end", 9.0)]
    found, _ = describe_isolation(
        [*trials("end_to_end", 0.05), *other],
        [*trials("replay_host", 0.02), *trials("loader_warm", 0.03)],
        left_out={},
        consumer="target",
        demand=None,
        cache="warm",
    )
    assert found is not None
    assert found.config == CONFIG
    assert found.interference_s is not None
    assert found.interference_s.est == pytest.approx(0.02)


NEEDLESS = {"consumer": "model", "cache": "warm", "no_files": "", "accelerator": True}


@pytest.mark.parametrize(
    ("changed", "measured"),
    [
        ({}, {"replay_device", "replay_host", "loader_warm", "loader_cold"}),
        ({"accelerator": False}, {"replay_host", "loader_warm", "loader_cold"}),
        ({"consumer": "target", "no_files": "a target reads them"}, {"replay_device", "replay_host", "loader_warm"}),
        ({"consumer": "emulated"}, {"loader_warm", "loader_cold"}),
        ({"consumer": "none"}, {"loader_warm", "loader_cold"}),
        ({"consumer": "none", "no_files": "a target reads them"}, set()),
        ({"consumer": "none", "cache": "cold"}, {"loader_warm"}),
        ({"cache": "cold"}, {"replay_device", "replay_host", "loader_warm"}),
        ({"no_files": "a target reads them"}, {"replay_device", "replay_host", "loader_warm"}),
    ],
)
def test_what_would_say_nothing_is_not_measured(changed: dict[str, Any], measured: set[str]) -> None:
    reasons = why_not(**{**NEEDLESS, **changed})
    assert {name for name, why in reasons.items() if not why} == measured


def test_a_system_that_cannot_evict_files_measures_none_from_a_cold_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.posix_fadvise", raising=False)
    assert "posix_fadvise" in why_not(**NEEDLESS)["loader_cold"]


def test_isolation_takes_three_rounds_at_most() -> None:
    assert MOST_ROUNDS == 3
