"""Time slices of a round: their order, their number, and what happens to a trial that cannot take any.

Trials are processes that only write down when they ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from loaderbench.records import Failure, PlannedTrial, TimeSlices, Trial
from loaderbench.runner import ForkServerKilledError
from loaderbench.session import time_slicing
from loaderbench.session.time_slicing import SlicedRounds

GIB = 2**30
HANG, ERROR = Failure("hang", "", ""), Failure("error", "", "")


class FakeProcess:
    """A trial that was measured alone and waits for its slices; `facts` are its attributes, such as `slice_s`."""

    def __init__(self, planned: PlannedTrial, log: list[str], **facts: Any) -> None:
        self.order, self._log = SimpleNamespace(planned=planned), log
        self.session, self.sliced_s, self.count = 7, 0.0, 0
        self.slice_s: float | None = facts.get("slice_s", 0.05)
        self.per_slice: int = facts.get("per_slice", 100)
        self.found: Any = facts.get("found")
        self.is_stopped: bool = facts.get("is_stopped", not isinstance(self.found, Failure))
        self.followed = facts.get("followed", True)
        self.pids: tuple[int, ...] = facts.get("pids", ())
        self.lock_holders = frozenset(facts.get("lock_holders", ()))
        self.fails_in: int | None = facts.get("fails_in")
        self.sampling = SimpleNamespace(
            pss_bytes=facts.get("pss_bytes", 0),
            samples=[SimpleNamespace(shm_bytes=size) for size in facts.get("shm_bytes", ())],
        )

    def follow(self) -> None:
        self._log.append(f"follow {self.order.planned.id}")

    def run_slice(self, seconds: float) -> None:
        self._log.append(self.order.planned.id)
        self.count += 1
        self.sliced_s += seconds
        if self.count == self.fails_in:
            self.found, self.is_stopped = ERROR, False

    def slices(self) -> TimeSlices:
        return TimeSlices(self.count, self.per_slice * self.count, 4 * self.per_slice * self.count, self.sliced_s)

    def end(self, *, at_once: bool = False, at_a_time: int = 1) -> None:
        self._log.append(f"{'kill' if at_once else 'end'} {self.order.planned.id}")


class FakeMeasuring:
    """Begins fake trials, or measures one alone in no time; `facts` has the attributes of each trial by its id."""

    sliced_seconds = 0.2

    def __init__(self, **facts: dict[str, Any]) -> None:
        self.log: list[str] = []
        self.alone: list[str] = []
        self.watched: list[int] = []
        self.forgotten: list[int] = []
        self._facts = facts

    def __call__(self, planned: PlannedTrial) -> Any:
        self.alone.append(planned.id)
        status = self._facts.get(planned.id, {}).get("alone", "completed")
        return SimpleNamespace(trial=_trial(planned, status))

    def begin(self, planned: PlannedTrial) -> Any:
        if "not_begun" in self._facts.get(planned.id, {}):
            raise ForkServerKilledError
        return SimpleNamespace(process=FakeProcess(planned, self.log, **self._facts.get(planned.id, {})))

    @contextmanager
    def guard(self) -> Iterator[Any]:
        yield SimpleNamespace(watch=self.watched.append, forget=self.forgotten.append)

    def followed(self, begun: Any) -> None:
        assert self.log[-1] == f"follow {begun.process.order.planned.id}"

    def outcome(self, begun: Any, slices: TimeSlices | None) -> Any:
        failed = isinstance(begun.process.found, Failure)
        return SimpleNamespace(trial=_trial(begun.process.order.planned, "failed" if failed else "completed", slices))

    @property
    def slices(self) -> str:
        return "".join(entry for entry in self.log if " " not in entry)


def _trial(planned: PlannedTrial, status: str, slices: TimeSlices | None = None) -> Trial:
    known: Any = {"id": planned.id, "role": "remedy", "config": {}, "round": 1, "status": status}
    return Trial(**known, time_slices=slices)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Linux, with as much memory as a test wants."""
    found = SimpleNamespace(available=8 * GIB, limit=None, shared=4 * GIB)
    monkeypatch.setattr(time_slicing.sys, "platform", "linux")
    monkeypatch.setattr(time_slicing.host_memory, "available_bytes", lambda: found.available)
    monkeypatch.setattr(time_slicing, "read_limits", lambda: SimpleNamespace(memory_bytes=found.limit))
    monkeypatch.setattr(time_slicing.shutil, "disk_usage", lambda _: SimpleNamespace(free=found.shared))
    return found


def run(
    names: Sequence[str],
    measuring: FakeMeasuring,
    rounds: SlicedRounds | None = None,
    started: Callable[..., None] = print,
) -> dict[str, Trial]:
    """A round of trials of these names; what was kept of each."""
    fake: Any = measuring
    kept: dict[str, Trial] = {}
    planned = [PlannedTrial(id=name, role="remedy", config={}, round=1) for name in names]
    (rounds or SlicedRounds(fake)).run(planned, started, lambda outcome: kept.update({outcome.trial.id: outcome.trial}))
    return kept


def test_each_pass_goes_in_the_reverse_order_of_the_one_before_and_a_drift_cancels() -> None:
    measuring = FakeMeasuring()
    kept = run("abc", measuring)
    assert measuring.slices == "abccbaabccba"
    assert {trial.time_slices and trial.time_slices.count for trial in kept.values()} == {4}
    assert measuring.watched == measuring.forgotten == [7, 7, 7]
    assert sorted(measuring.log[-3:]) == ["end a", "end b", "end c"]


def test_the_slice_of_the_slowest_is_everybody_s() -> None:
    measuring = FakeMeasuring(a={"slice_s": 0.1}, b={"slice_s": 0.05})
    assert {trial.time_slices and trial.time_slices.seconds for trial in run("ab", measuring).values()} == {0.2}
    assert measuring.slices == "abba"


def test_slices_go_on_until_each_has_five_batches() -> None:
    measuring = FakeMeasuring(b={"per_slice": 1})
    kept = run("ab", measuring)
    assert kept["b"].time_slices is not None
    assert kept["b"].time_slices.batches == 5
    assert measuring.slices == "abbaabbaab"


def test_a_loader_too_slow_for_slices_gets_four_times_the_time_and_is_then_measured_alone() -> None:
    measuring = FakeMeasuring(b={"per_slice": 0})
    kept = run("ab", measuring)
    assert len(measuring.slices) == 2 * 16
    assert measuring.alone == ["a", "b"]
    assert {trial.time_slices for trial in kept.values()} == {None}
    assert sorted(measuring.log[-2:]) == ["kill a", "kill b"]


def test_what_cannot_be_stopped_has_the_round_measured_one_after_the_other_from_then_on() -> None:
    measuring = FakeMeasuring(a={"is_stopped": False})
    fake: Any = measuring
    rounds = SlicedRounds(fake)
    run("ab", measuring, rounds)
    assert (measuring.alone, measuring.slices) == (["a", "b"], "")
    assert measuring.log == ["follow a", "kill a"]
    run("cd", measuring, rounds)
    assert measuring.alone == ["a", "b", "c", "d"]


def test_where_no_fork_server_lives_next_to_other_trials_the_round_is_measured_one_after_the_other() -> None:
    measuring = FakeMeasuring(b={"not_begun": True})
    fake: Any = measuring
    rounds = SlicedRounds(fake)
    assert list(run("abc", measuring, rounds)) == ["a", "b", "c"]
    assert (measuring.alone, measuring.log) == (["a", "b", "c"], ["follow a", "kill a"])
    run("d", measuring, rounds)
    assert measuring.log == ["follow a", "kill a"], "none is begun again"


def test_the_last_that_begins_may_be_the_one_that_cannot_be_stopped() -> None:
    measuring = FakeMeasuring(b={"is_stopped": False})
    run("ab", measuring)
    assert measuring.alone == ["a", "b"]
    assert (measuring.log[:2], sorted(measuring.log[2:])) == (["follow a", "follow b"], ["kill a", "kill b"])


def test_slices_of_a_round_end_after_exactly_four_times_the_time() -> None:
    measuring = FakeMeasuring(a={"per_slice": 0, "slice_s": 0.2})
    run("a", measuring)
    assert measuring.slices == "aaaa"


def test_what_cannot_be_stopped_is_not_begun_again_even_where_it_fails_alone() -> None:
    measuring = FakeMeasuring(a={"is_stopped": False, "alone": "failed"}, b={"alone": "failed"})
    fake: Any = measuring
    rounds = SlicedRounds(fake)
    run("ab", measuring, rounds)
    run("cd", measuring, rounds)
    assert (measuring.alone, measuring.slices) == (["a", "b", "c", "d"], "")


def test_what_fails_before_its_first_slice_is_measured_alone_and_the_others_take_theirs() -> None:
    measuring = FakeMeasuring(a={"found": ERROR, "alone": "failed"})
    kept = run("ab", measuring)
    assert (measuring.alone, measuring.slices) == (["a"], "bbbb")
    assert kept["b"].time_slices is not None
    assert "kill a" in measuring.log
    assert list(kept) == ["b", "a"]


def test_only_a_failure_next_to_other_trials_disables_later_time_slices() -> None:
    for alone, sliced in (("completed", ""), ("failed", "cccc")):
        measuring = FakeMeasuring(a={"found": ERROR, "alone": alone})
        fake: Any = measuring
        rounds = SlicedRounds(fake)
        run("ab", measuring, rounds)
        measuring.log.clear()
        run("c", measuring, rounds)
        assert measuring.slices == sliced


def test_what_hangs_is_not_waited_for_a_second_time() -> None:
    measuring = FakeMeasuring(a={"found": HANG})
    kept = run("ab", measuring)
    assert (measuring.alone, kept["a"].status) == ([], "failed")


@pytest.mark.parametrize(("alone", "sliced"), [("completed", ""), ("failed", "dddd")])
def test_what_hangs_next_to_others_is_measured_alone_first_and_so_is_its_round(alone: str, sliced: str) -> None:
    """It may wait for what one of them holds, which is stopped."""
    measuring = FakeMeasuring(b={"found": HANG, "alone": alone})
    fake: Any = measuring
    rounds = SlicedRounds(fake)
    kept = run("abc", measuring, rounds)
    assert (measuring.alone, measuring.slices) == (["b", "a", "c"], "")
    assert {name: trial.status for name, trial in kept.items()} == {"b": alone, "a": "completed", "c": "completed"}
    assert sorted(measuring.log[-2:]) == ["kill a", "kill b"]
    run("d", measuring, rounds)
    assert measuring.slices == sliced


@pytest.mark.parametrize(("holder", "in_slices"), [(12, False), (11, True), (99, True)])
def test_a_lock_that_a_stopped_trial_holds_ends_time_slices(holder: int, in_slices: bool) -> None:
    """Locks within a trial, and those of other programs, are part of what is measured."""
    measuring = FakeMeasuring(a={"pids": (1, 11), "lock_holders": {holder}}, b={"pids": (2, 12)})
    run("ab", measuring)
    assert (measuring.alone, measuring.slices) == (([], "abbaabba") if in_slices else (["a", "b"], "a"))


def test_what_fails_in_a_slice_is_kept_as_failed_and_gets_no_more() -> None:
    measuring = FakeMeasuring(a={"fails_in": 2})
    kept = run("ab", measuring)
    assert (kept["a"].status, kept["b"].status, measuring.alone) == ("failed", "completed", [])
    assert measuring.slices.count("a") == 2
    assert measuring.slices.count("b") == 4


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_than_on_linux_no_slices_are_taken(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    monkeypatch.setattr(time_slicing.sys, "platform", platform)
    measuring = FakeMeasuring()
    run("ab", measuring)
    assert (measuring.alone, measuring.log) == (["a", "b"], [])


def test_a_round_with_a_trial_that_uses_a_gpu_takes_no_slices_and_the_next_one_does() -> None:
    measuring = FakeMeasuring()
    fake: Any = measuring
    rounds = SlicedRounds(fake, lambda planned: planned.id == "b")
    run("ab", measuring, rounds)
    assert (measuring.alone, measuring.log) == (["a", "b"], [])
    run("ac", measuring, rounds)
    assert (measuring.alone, measuring.slices.count("c")) == (["a", "b"], 4)


@pytest.mark.parametrize(
    ("facts", "sliced"),
    [
        ({}, True),
        ({"available": 4 * GIB + 1}, True),
        ({"available": 4 * GIB}, False),
        ({"limit": 6 * GIB + 1}, True),
        ({"limit": 6 * GIB}, False),
        ({"shared": 2 * GIB + 1}, True),
        ({"shared": 2 * GIB}, False),
    ],
)
def test_another_is_begun_where_twice_the_largest_is_free(
    machine: SimpleNamespace, facts: dict[str, int], sliced: bool
) -> None:
    """The largest so far takes 2 GiB, and at most 1 GiB of it is shared."""
    vars(machine).update(facts)
    measuring = FakeMeasuring(a={"pss_bytes": 2 * GIB, "shm_bytes": (1, GIB, None)})
    run("ab", measuring)
    assert (measuring.alone == []) == sliced


def test_all_that_live_count_against_a_limit_and_what_failed_does_not(machine: SimpleNamespace) -> None:
    machine.limit = 9 * GIB
    two = {"pss_bytes": 2 * GIB}
    assert run("abc", measuring := FakeMeasuring(a=two, b=two))
    assert not measuring.alone
    machine.limit = 8 * GIB
    run("abc", measuring := FakeMeasuring(a=two, b=two))
    assert measuring.alone == ["a", "b", "c"]
    run("abc", measuring := FakeMeasuring(a=two, b={**two, "found": ERROR, "alone": "failed"}))
    assert measuring.alone == ["b"]


def test_the_largest_of_those_that_live_says_how_much_room_there_must_be(machine: SimpleNamespace) -> None:
    machine.available = 3 * GIB
    run("abc", measuring := FakeMeasuring(a={"pss_bytes": 2 * GIB}, b={"pss_bytes": 1}))
    assert measuring.alone == ["a", "b", "c"]
    machine.available = 5 * GIB
    run("abc", measuring := FakeMeasuring(a={"pss_bytes": 1}, b={"pss_bytes": 2 * GIB}))
    assert not measuring.alone


def test_the_first_trial_needs_no_room_and_an_unknown_size_is_none(machine: SimpleNamespace) -> None:
    machine.available, machine.shared = 1, 1
    run("a", measuring := FakeMeasuring(a={"pss_bytes": 2 * GIB}))
    assert not measuring.alone
    run("ab", measuring := FakeMeasuring(a={"pss_bytes": None}))
    assert not measuring.alone


def test_a_system_without_shared_memory_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(_: str) -> Any:
        raise FileNotFoundError("/dev/shm")

    monkeypatch.setattr(time_slicing.shutil, "disk_usage", gone)
    run("ab", measuring := FakeMeasuring(a={"shm_bytes": (GIB,)}))
    assert not measuring.alone


def test_a_signal_ends_all_at_once_and_keeps_what_was_followed() -> None:
    def interrupt(planned: PlannedTrial) -> None:
        if planned.id == "c":
            raise KeyboardInterrupt

    measuring = FakeMeasuring(b={"followed": False})
    fake: Any = measuring
    kept: list[Trial] = []
    planned = [PlannedTrial(id=name, role="remedy", config={}, round=1) for name in "abc"]
    with pytest.raises(KeyboardInterrupt):
        SlicedRounds(fake).run(planned, interrupt, lambda outcome: kept.append(outcome.trial))
    assert sorted(measuring.log[-2:]) == ["kill a", "kill b"]
    assert [(trial.id, trial.time_slices) for trial in kept] == [("a", None)]


def test_a_second_signal_leaves_the_trials_that_were_not_ended_to_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(process: FakeProcess, **_: Any) -> None:
        if process.order.planned.id == "b":
            raise KeyboardInterrupt

    monkeypatch.setattr(FakeProcess, "end", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("abc", measuring := FakeMeasuring())
    assert (measuring.watched, measuring.forgotten) == ([7, 7, 7], [7])


def test_every_trial_that_begins_is_reported() -> None:
    begun: list[str] = []
    run("ab", FakeMeasuring(), started=lambda planned: begun.append(planned.id))
    assert begun == ["a", "b"]
    begun.clear()
    run("ab", FakeMeasuring(a={"is_stopped": False}), started=lambda planned: begun.append(planned.id))
    assert begun == ["a", "a", "b"]
