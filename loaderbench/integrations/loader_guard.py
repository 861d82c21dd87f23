"""A test of a loader's throughput: several processes, an interval, and three outcomes."""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, NoReturn

import pytest

from loaderbench.diagnosis.failures import STARTED_HINT, last_words
from loaderbench.errors import LoaderbenchError, MissingError, UsageError
from loaderbench.integrations.guarded import GuardOrder, measure_guarded
from loaderbench.records import Gate, GateResult, RunRecord
from loaderbench.result import Run, load_concluded
from loaderbench.statistics.comparison import compare_runs
from loaderbench.statistics.gates import judge_gate, parse_gate
from loaderbench.store import folder_of
from loaderbench.store.writing import PAGE_FILE, RUN_FILE

RATE_EXPECTED = "expected a number above 0, in samples/s"
SECONDS_EXPECTED = "expected a number above 0, in seconds"
ROUNDS_EXPECTED = "expected a whole number of at least 1"
INCONCLUSIVE_EXPECTED = 'expected "skip" or "fail"'
GATES_EXPECTED = 'expected a gate as text, or a list of them, such as "samples_per_s<800"'

ROUNDS, SECONDS = 5, 1.0
FALL = "samples_per_s:-5%"
"""The gate of a reference run where no other is given."""

_NO_DEMAND = "data wait needs a consumer; add demand=..., the samples/s of training, or use a gate on samples_per_s"

WhenUndecided = Literal["skip", "fail"]
Loader = Callable[[], Iterable[Any]] | Iterable[Any]


def check_arguments(
    *,
    samples_per_s: object,
    fail_if: object,
    demand: object,
    rounds: object,
    seconds: object,
    inconclusive: object,
) -> None:
    """Raise `UsageError` for the first argument that is not as documented, named as the call has it."""
    checks = (
        ("samples_per_s", samples_per_s, samples_per_s is None or _is_amount(samples_per_s), RATE_EXPECTED),
        ("fail_if", fail_if, _are_texts(fail_if), GATES_EXPECTED),
        ("demand", demand, demand is None or _is_amount(demand), RATE_EXPECTED),
        ("rounds", rounds, _is_whole(rounds) and _is_amount(rounds), ROUNDS_EXPECTED),
        ("seconds", seconds, _is_amount(seconds), SECONDS_EXPECTED),
        ("inconclusive", inconclusive, inconclusive in ("skip", "fail"), INCONCLUSIVE_EXPECTED),
    )
    for name, value, is_right, expected in checks:
        if not is_right:
            raise UsageError(f"loader_guard: {name}={_shown(value)}: {expected}")


def _is_amount(value: object) -> bool:
    """Whether it is a number above 0, and finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return 0 < float(value) < math.inf
    except OverflowError:  # a whole number of more digits than a float has
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral)


def _are_texts(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value))


def _shown(value: object) -> str:
    """The value as Python writes it, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


class LoaderGuard:
    """The value of the fixture `loader_guard`: call it to measure a loader and hold it to thresholds."""

    def __init__(self, request: pytest.FixtureRequest, *, update: bool) -> None:
        """`update`: reference runs are written, and nothing is compared with them."""
        self._request, self._update = request, update

    def __call__(
        self,
        loader: Loader,
        *,
        samples_per_s: float | None = None,
        fail_if: str | Sequence[str] = (),
        reference: str | os.PathLike[str] | None = None,
        demand: float | None = None,
        rounds: int = ROUNDS,
        seconds: float = SECONDS,
        inconclusive: WhenUndecided = "skip",
    ) -> Run:
        """Measure a loader in `rounds` forked processes, each for `seconds` s of steady state, and return the run.

        `loader` is a function that makes one, or a loader: any iterable of batches, which each process iterates over.
        `samples_per_s` is the rate that it must reach. `fail_if` takes gates as `loaderbench run --fail-if` does.
        `reference` is the run that they compare with, relative to the test's folder. `demand` is the samples/s that
        training would take if loading were free.

        The test fails if a whole 95% interval is beyond its threshold, or if the loader fails. If the interval
        includes the threshold, or the runs cannot be compared, the test is skipped with the reason.
        `inconclusive="fail"` fails it.
        """
        __tracebackhide__ = True
        place = None if reference is None else self._request.path.parent / reference
        try:
            check_arguments(
                samples_per_s=samples_per_s,
                fail_if=fail_if,
                demand=demand,
                rounds=rounds,
                seconds=seconds,
                inconclusive=inconclusive,
            )
            gates, before = _gates(samples_per_s, fail_if, place, demand), self._reference(place)
            if why := _why_not_here():
                _undecided(why, inconclusive)
            has_started = _has_started(loader)  # a copy that ends may end the workers too
            run = self._measured(loader, demand, rounds, seconds)
        except LoaderbenchError as error:
            said = str(error)
        else:
            _refuse_failed_trials(run, has_started=has_started)
            self._record(run)
            if place is not None and before is None:
                _keep(run, place)
                pytest.skip(f"reference run written to {place}")
            _judge(run, gates, before, inconclusive)
            return run
        pytest.fail(said)

    def _reference(self, place: Path | None) -> RunRecord | None:
        """The run to compare with; `None` where there is none, or where it is to be written."""
        if place is None or self._update:
            return None
        if not place.exists():
            raise MissingError(f"no reference run at {place}; write it with: pytest --loaderbench-update")
        return load_concluded(place).record

    def _measured(self, loader: Loader, demand: float | None, rounds: int, seconds: float) -> Run:
        folder = self._request.getfixturevalue("tmp_path_factory").mktemp("loaderbench") / "run"
        file = Path(os.path.relpath(self._request.path))  # as a reference run keeps it, which others have elsewhere
        rate = None if demand is None else float(demand)
        name = _name_of(self._request.path.name, self._request.node.nodeid)
        order = GuardOrder(name, file, int(rounds), float(seconds), rate)
        measure_guarded(loader, order, folder)
        return load_concluded(folder)

    def _record(self, run: Run) -> None:
        """Add the rate to the test's properties, which JUnit XML has."""
        rate = run.record.configurations[0].samples_per_s
        found = {} if rate is None else {"": rate.est, "_lo": rate.lo, "_hi": rate.hi}
        for end, value in found.items():
            if value is not None:
                self._request.node.user_properties.append((f"samples_per_s{end}", value))


def _name_of(file: str, nodeid: str) -> str:
    """The test by its file, without the folder that pytest started in: a committed reference is compared by it."""
    return "::".join([file, *nodeid.split("::")[1:]])


def _gates(
    samples_per_s: float | None, fail_if: str | Sequence[str], reference: Path | None, demand: float | None = None
) -> list[Gate]:
    """The thresholds of a call. Raises `UsageError` for an invalid one, and where there is none."""
    texts = [fail_if] if isinstance(fail_if, str) else [*fail_if]
    if not texts and reference is not None:
        texts.append(FALL)
    if samples_per_s is not None:
        texts.append(f"samples_per_s<{float(samples_per_s):f}".rstrip("0").rstrip("."))
    if not texts:
        raise UsageError("loader_guard: no threshold; add samples_per_s=500, fail_if=... or reference=...")
    gates = [parse_gate(text, "fail_if") for text in texts]
    for gate in gates:
        if gate.kind == "change" and reference is None:
            raise UsageError(f"fail_if {gate.text}: a change needs a reference run; add reference=PATH")
        if gate.metric == "data_wait_share" and demand is None:
            raise UsageError(f"fail_if {gate.text}: {_NO_DEMAND}")
    return gates


def _why_not_here() -> str:
    """Why a rate would say nothing; empty where it can be measured."""
    others = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT") or 1) - 1
    if others > 0:
        return f"{others + 1} workers of pytest-xdist share the CPUs; run this test with -n 0"
    return ""


def _refuse_failed_trials(run: Run, *, has_started: bool) -> None:
    """Fail the test where the loader did: a rate of the other processes would hide it."""
    __tracebackhide__ = True
    failures = [trial.failure for trial in run.record.sweep if trial.failure is not None]
    if failures:
        said = f"the loader failed in {len(failures)} of {len(run.record.sweep)} processes: {failures[0].kind}"
        where = f"Log: {run.folder}/logs"
        hint = STARTED_HINT if has_started else failures[0].hint
        pytest.fail(f"{said}: {last_words(failures[0].message)}\n{hint}\n{where}")


def _has_started(loader: Loader) -> bool:
    """Whether it is an iterator, of a test that has workers: processes that share their queues disturb each other."""
    return isinstance(loader, Iterator) and bool(multiprocessing.active_children())


def _judge(run: Run, gates: Sequence[Gate], before: RunRecord | None, inconclusive: WhenUndecided) -> None:
    """Fail or skip the test as its gates ask; a failure counts before what is inconclusive."""
    __tracebackhide__ = True
    comparison = None if before is None else compare_runs(before, run.record)
    results = [judge_gate(gate, run.record, comparison) for gate in gates]
    if failed := [result for result in results if result.outcome == "failed"]:
        pytest.fail(f"{_said(failed)}\n{run.record.verdict}\nReport: {run.folder}/{PAGE_FILE}")
    if undecided := [result for result in results if result.outcome == "inconclusive"]:
        _undecided(_said(undecided), inconclusive)


def _said(results: Sequence[GateResult]) -> str:
    return "; ".join(f"{result.gate.text}: {result.said}" for result in results)


def _undecided(why: str, inconclusive: WhenUndecided) -> NoReturn:
    """End the test without an answer."""
    __tracebackhide__ = True
    if inconclusive == "fail":
        pytest.fail(f"inconclusive: {why}")
    pytest.skip(f"inconclusive: {why}")


def _keep(run: Run, place: Path) -> None:
    """Write `run.json` as the reference run: to the file, or into the folder; the test fails if it cannot be."""
    __tracebackhide__ = True
    file = place if place.suffix == ".json" or place.is_file() else place / RUN_FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder_of(run.folder or Path()) / RUN_FILE, file)
    except OSError as error:
        pytest.fail(f"reference run {file}: cannot write: {error.strerror or error}")
