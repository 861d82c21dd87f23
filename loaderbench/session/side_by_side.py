"""Compares two versions in interleaved pairs of trials, until the question is decided or the budget is used up."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from loaderbench.conclusion import conclude
from loaderbench.consumers import NOTHING, consumer_kind
from loaderbench.ending_signals import put_off_signals, restored_signals
from loaderbench.errors import LoaderbenchError, MissingError, Terminated, UsageError
from loaderbench.records import Config, Gate, PlannedTrial, Side, SideBySide, TimeSlices, config_label, config_name
from loaderbench.records.words import utc_now
from loaderbench.runner import Begun, TrialOutcome, TrialRunner
from loaderbench.runner.guard import SessionGuard
from loaderbench.runner.placed import PlacedServer
from loaderbench.session.conditions import Conditions, find_conditions
from loaderbench.session.listener import Listener, Progress
from loaderbench.session.measuring import TrialMeasurer, is_alone
from loaderbench.session.running import SessionResult, write_results
from loaderbench.session.session import Session
from loaderbench.session.time_slicing import SlicedRounds
from loaderbench.session.versions import Found
from loaderbench.statistics.comparison import DATA_WAIT, RATE
from loaderbench.statistics.gates import check_waits, fails
from loaderbench.statistics.sequential import FIRST_LOOK, planned_looks
from loaderbench.statistics.sides import (
    DECIDED,
    budget_used_up,
    comparison_of,
    is_decided,
    pairs_of,
    pairs_used_up,
)
from loaderbench.store import Store, new_run_folder
from loaderbench.suite import LoadedSuite

MOST_CONFIGS = 4
"""Each additional configuration takes a share of the budget and widens all intervals."""

CAPPED = "the gate on data_wait_share caps samples/s at the target; use another call for the gate on samples_per_s"

FAILED_ROUNDS = 2
"""A version is given up after this many rounds in which all of its trials failed."""

UNDER_WAY = "the comparison is in progress or was killed; results so far are in trials.jsonl"
NO_FILE = os.strerror(errno.ENOENT)
NOT_TRACKED = "git revisions do not include untracked files; pass data with --data or an absolute path"
_LEFT_OUT = "two versions were compared"

Made = TypeVar("Made")
Load = Callable[[Path], LoadedSuite]
"""Reads a suite file and applies the overrides from the command line."""


def run_side_by_side(
    versions: tuple[Found, Found],
    load: Load,
    listener: Listener,
    *,
    gates: Sequence[Gate],
    budget_s: float,
    out: Path | None = None,
) -> SessionResult:
    """Measure both versions in interleaved pairs and write a run folder that describes the later one and what changed.

    Raises `UsageError` and `MissingError`, naming the version, before anything is measured.
    """
    loaded = _for_each_version(versions, lambda version: _with_checked_gates(load(version.suite), gates))
    store = Store(out or new_run_folder(f"ab-{loaded['after'].suite.name}"), resumable=False)
    try:
        with restored_signals():
            return _run_into(store, versions, loaded, listener, gates, budget_s)
    except BaseException:
        store.discard()
        raise
    finally:
        store.close()


def _run_into(  # noqa: PLR0917
    store: Store,
    versions: tuple[Found, Found],
    loaded: Mapping[Side, LoadedSuite],
    listener: Listener,
    gates: Sequence[Gate],
    budget_s: float,
) -> SessionResult:
    """Prepare, measure, conclude and write."""
    servers = {version.version.side: PlacedServer(version.place) for version in versions}
    servers["before"].warm_up()
    started = utc_now()
    found = _for_each_version(
        versions, lambda v: find_conditions(loaded[v.version.side], servers[v.version.side], listener, started)
    )
    with_consumer = any(gate.metric == DATA_WAIT.name for gate in gates)
    is_capped = with_consumer and consumer_kind(found["after"].consumer).capped
    if is_capped and any(gate.metric == RATE.name for gate in gates):
        listener.warned(CAPPED)
    conditions = {side: _uncapped(one, with_consumer=with_consumer) for side, one in found.items()}
    revisions = [version.version.side for version in versions if _is_revision(version)]
    measuring = TwoVersions(conditions, servers, store, listener, revisions, compares_rates=not with_consumer)
    session = Session(conditions["after"], measuring.of["after"], store=store, listener=listener)
    configs = _configs(conditions, listener)
    session.step = "pairs"
    session.found.left_out = dict.fromkeys(("isolation", "verification"), _LEFT_OUT)
    session.found.side_by_side = SideBySide(
        versions=(versions[0].version, versions[1].version),
        configs=configs,
        gates=tuple(gates),
        looks=(),
        budget_s=budget_s,
        ended=UNDER_WAY,
    )
    _for_each_version(versions, lambda version: measuring.of[version.version.side].write_copies(configs))
    store.write_run(conclude(replace(session.so_far(), complete=False)))
    listener.doing(f"measuring {versions[0]} and {versions[1]} in interleaved pairs")
    pairs = Pairs(session, measuring, budget_s, alone=with_consumer)
    try:
        pairs.run()
    except (KeyboardInterrupt, Terminated) as stop:
        session.stopped(stop)
    put_off_signals(session.found.late_signals)
    pairs.end()
    return write_results(session)


def _for_each_version(versions: tuple[Found, Found], make: Callable[[Found], Made]) -> dict[Side, Made]:
    """Call `make` for each version; an error names the version."""
    results: dict[Side, Made] = {}
    for version in versions:
        try:
            results[version.version.side] = make(version)
        except LoaderbenchError as error:
            message = str(error).replace(f"{version.place.root}{os.sep}", "")
            raise type(error)(f"{version}: {message}{_untracked_hint(version, error)}") from None
    return results


def _with_checked_gates(loaded: LoadedSuite, gates: Sequence[Gate]) -> LoadedSuite:
    check_waits(gates, loaded.suite.consumer.kind)
    return loaded


def _untracked_hint(version: Found, error: LoaderbenchError) -> str:
    """A hint that a file missing in a revision may be untracked by git."""
    return f"; {NOT_TRACKED}" if _is_revision(version) and isinstance(error, MissingError) else ""


def _is_revision(version: Found) -> bool:
    """Whether the version is a git revision, which has only the files that git tracks."""
    return version.version.commit is not None and version.place.root != version.place.home


def _uncapped(conditions: Conditions, *, with_consumer: bool) -> Conditions:
    """The conditions without a consumer whose demand would cap both versions alike; data wait needs the consumer."""
    capped = consumer_kind(conditions.consumer).capped and not with_consumer
    return replace(conditions, consumer=NOTHING) if capped else conditions


def _configs(conditions: Mapping[Side, Conditions], listener: Listener) -> tuple[Config, ...]:
    """The configurations in both suites if they are few, else the baseline. Raises `UsageError` if none are shared."""
    before, after = conditions["before"].plan, conditions["after"].plan
    shared = tuple(config for config in after.configurations if config in before.configurations)
    if not shared:
        first, second = (config_label(plan.baseline) or "none" for plan in (before, after))
        raise UsageError(
            f"no config is in both suites (before: {first}; after: {second}); set one with -P, e.g. -P num_workers=2"
        )
    if len(shared) <= MOST_CONFIGS:
        return shared
    chosen = after.baseline if after.baseline in shared else shared[0]
    listener.warned(
        f"comparing only the baseline ({config_label(chosen)}), 1 of {len(shared)} configs; choose others with -P"
    )
    return (chosen,)


class TwoVersions:
    """Measures trials of two versions, each in its own place. `of` maps each side to its measurer.

    `revisions` are the sides that have only the files that git tracks. `compares_rates`: no demand caps samples/s.
    """

    def __init__(
        self,
        conditions: Mapping[Side, Conditions],
        servers: Mapping[Side, PlacedServer],
        store: Store,
        listener: Listener,
        revisions: Collection[Side] = (),
        *,
        compares_rates: bool = True,
    ) -> None:
        self._revisions = revisions
        self.of = {
            side: TrialMeasurer(
                servers[side],
                TrialRunner(servers[side], one.environment),
                one.loaded,
                one.inputs,
                consumer=one.consumer,
                store=store,
                listener=listener,
                compares_rates=compares_rates,
            )
            for side, one in conditions.items()
        }
        self._conditions = conditions

    def is_alone(self, planned: PlannedTrial) -> bool:
        """Whether the trial cannot run in time slices."""
        return is_alone(planned, self._conditions[_side(planned)])

    @property
    def sliced_seconds(self) -> float:
        """Total seconds in time slices for each trial, the same for both versions.

        Longer than a trial of a fix: on a busy machine, one pair of twice the length is worth more than two pairs.
        """
        return max(one.loaded.suite.measure.seconds for one in self._conditions.values())

    def __call__(self, planned: PlannedTrial) -> TrialOutcome:
        """Measure a trial alone."""
        return self._with_hint(self.of[_side(planned)](planned))

    def begin(self, planned: PlannedTrial) -> Begun:
        """Start a trial that runs in time slices."""
        return self.of[_side(planned)].begin(planned)

    def followed(self, begun: Begun) -> None:
        """Record that a started trial has its result."""
        self.of[_side(begun.process.order.planned)].followed(begun)

    def outcome(self, begun: Begun, slices: TimeSlices | None) -> TrialOutcome:
        """The outcome of a trial that has ended."""
        return self._with_hint(self.of[_side(begun.process.order.planned)].outcome(begun, slices))

    def _with_hint(self, outcome: TrialOutcome) -> TrialOutcome:
        """Add a hint if a file that a revision lacks may be untracked by git."""
        trial, failure = outcome.trial, outcome.trial.failure
        if failure is None or trial.side not in self._revisions or NO_FILE not in failure.message:
            return outcome
        return replace(outcome, trial=replace(trial, failure=replace(failure, hint=f"{failure.hint}; {NOT_TRACKED}")))

    def guard(self) -> AbstractContextManager[SessionGuard]:
        """A guard that ends stopped trials if the run is killed."""
        return self.of["after"].guard()


def _side(planned: PlannedTrial) -> Side:
    assert planned.side is not None
    return planned.side


class Pairs:
    """Rounds of pairs of trials, one trial of each version; the order is reversed in every other round."""

    def __init__(self, session: Session, measuring: TwoVersions, budget_s: float, *, alone: bool) -> None:
        self._session, self._found = session, session.found
        self._rounds = SlicedRounds(measuring, lambda planned: alone or measuring.is_alone(planned))
        self._began_s = time.monotonic()
        self._until_s = self._began_s + budget_s
        self._round = 0
        self._ended = self._undecided_at_last_look = ""
        self._pairs_s: list[float] = []

    def run(self) -> None:
        """Measure rounds of the undecided configurations as long as there is time."""
        left = list(self._asked.configs)
        while left and not self._ended:
            self._round += 1
            for config in left:
                if self._is_late():
                    self._ended = budget_used_up(self._asked.budget_s)
                    return
                self._measure(config)
            left = self._undecided(left)

    def end(self) -> None:
        """Record why the comparison ended. Pairs cut short by a signal are compared too."""
        if not self._asked.looks:
            pairs = [pairs_of(config, self._found.of("ab")) for config in self._asked.configs]
            self._note(looks=planned_looks(max(pairs)))
        self._note(ended=self._ended or self._found.why_partial or self._undecided_at_last_look or DECIDED)

    @property
    def _asked(self) -> SideBySide:
        assert self._found.side_by_side is not None
        return self._found.side_by_side

    def _note(self, **changes: object) -> None:
        self._found.side_by_side = replace(self._asked, **changes)  # type: ignore[arg-type]

    def _measure(self, config: Config) -> None:
        began_s = time.monotonic()
        self._session.measure_round(self._rounds, self._pair(config), self._progress)
        self._pairs_s.append(time.monotonic() - began_s)

    def _pair(self, config: Config) -> Sequence[PlannedTrial]:
        sides: tuple[Side, Side] = ("before", "after") if self._round % 2 else ("after", "before")
        number = self._asked.configs.index(config)
        return [
            PlannedTrial(id=f"p{self._round}-c{number}-{side}", role="ab", config=config, round=self._round, side=side)
            for side in sides
        ]

    def _is_late(self) -> bool:
        """Whether another pair would end after the budget, judged by the pairs so far."""
        expected_s = sum(self._pairs_s) / len(self._pairs_s) if self._pairs_s else 0.0
        return time.monotonic() + expected_s > self._until_s

    def _undecided(self, left: list[Config]) -> list[Config]:
        """The configurations that need more pairs; none once a gate has failed, because it can no longer pass."""
        trials = self._found.of("ab")
        failed = [config for config in left if self._has_failed(config)]
        left = [config for config in left if config not in failed]
        if failed and not left:
            self._ended = f"every trial of a version failed, with {config_name(failed[0])}"
            return []
        if not self._asked.looks and self._round == FIRST_LOOK - 1:
            self._note(looks=planned_looks(self._most_pairs(len(left))))
        looks = self._asked.looks
        looked_at = [config for config in left if pairs_of(config, trials) in looks]
        if not looked_at:
            return left
        found = comparison_of(self._asked, trials)
        found = replace(found, metrics=tuple(change for change in found.metrics if change.config in looked_at))
        if any(fails(gate, found) for gate in self._asked.gates):
            self._ended = DECIDED
            return []
        undecided = [config for config in looked_at if not is_decided(config, self._asked, found)]
        at_last_look = [config for config in undecided if pairs_of(config, trials) == looks[-1]]
        if at_last_look:
            used_up = budget_used_up(self._asked.budget_s) if self._is_late() else pairs_used_up(looks)
            self._undecided_at_last_look = used_up
        return [c for c in left if c not in looked_at or (c in undecided and c not in at_last_look)]

    def _most_pairs(self, configs: int) -> int:
        """The most pairs that the budget allows for one of the `configs`, if the next round decides all others.

        Judged by the shortest pair, because no configuration gets more pairs than were planned.
        """
        later = self._pairs_s[len(self._asked.configs) :]  # the first round is excluded because it imports everything
        pair_s = min(later)
        left_s = self._until_s - time.monotonic() - (configs - 1) * pair_s
        return self._round + max(0, int(left_s / pair_s))

    def _has_failed(self, config: Config) -> bool:
        """Whether all trials of a version failed with this configuration, in at least `FAILED_ROUNDS` rounds."""
        trials = [trial for trial in self._found.of("ab") if trial.config == config]
        by_side = ([t.status == "completed" for t in trials if t.side == side] for side in ("before", "after"))
        return any(len(done) >= FAILED_ROUNDS and not any(done) for done in by_side)

    def _progress(self) -> Progress:
        of_after = [trial for trial in self._found.of("ab") if trial.side == "after"]
        return self._session.time_left.until_decided("Pairs", self._round, self._until_s, of_after)
