"""Tests a loader's throughput: several processes, a confidence interval, and three outcomes."""

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
"""The default gate for a comparison with a reference run."""

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
    """Raise `UsageError` for the first invalid argument, with the name it has in the call."""
    checks = (
        ("samples_per_s", samples_per_s, samples_per_s is None or _is_amount(samples_per_s), RATE_EXPECTED),
        ("fail_if", fail_if, _are_strings(fail_if), GATES_EXPECTED),
        ("demand", demand, demand is None or _is_amount(demand), RATE_EXPECTED),
        ("rounds", rounds, _is_whole(rounds) and _is_amount(rounds), ROUNDS_EXPECTED),
        ("seconds", seconds, _is_amount(seconds), SECONDS_EXPECTED),
        ("inconclusive", inconclusive, inconclusive in ("skip", "fail"), INCONCLUSIVE_EXPECTED),
    )
    for name, value, is_right, expected in checks:
        if not is_right:
            raise UsageError(f"loader_guard: {name}={_short_repr(value)}: {expected}")


def _is_amount(value: object) -> bool:
    """Whether the value is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return 0 < float(value) < math.inf
    except OverflowError:  # an integer too large for a float
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral)


def _are_strings(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value))


def _short_repr(value: object) -> str:
    """The `repr` of the value on one line, shortened if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


class LoaderGuard:
    """The value of the fixture `loader_guard`: call it to measure a loader and check its throughput."""

    def __init__(self, request: pytest.FixtureRequest, *, update: bool) -> None:
        """`update`: write reference runs instead of comparing with them."""
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

        `loader` is a loader (any iterable of batches, which each process iterates over) or a function that creates one.
        `samples_per_s` is the minimum rate. `fail_if` takes gates like `loaderbench run --fail-if`. `reference` is the
        path of the run to compare with, relative to the test's folder. `demand` is the number of samples/s that
        training would take if loading were free.

        The test fails if an entire 95% interval is beyond its threshold, or if the loader fails. If the interval
        includes the threshold, or the runs cannot be compared, the test is skipped with the reason;
        `inconclusive="fail"` fails it instead.
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
            if why := _why_unreliable_here():
                _end_inconclusive(why, inconclusive)
            has_started = _has_started(loader)  # a copy may end the workers when it ends
            run = self._measured(loader, demand, rounds, seconds)
        except LoaderbenchError as error:
            message = str(error)
        else:
            _fail_on_failed_trials(run, has_started=has_started)
            self._record(run)
            if place is not None and before is None:
                _keep(run, place)
                pytest.skip(f"reference run written to {place}")
            _judge(run, gates, before, inconclusive)
            return run
        pytest.fail(message)

    def _reference(self, place: Path | None) -> RunRecord | None:
        """The run to compare with; `None` if there is none, or if it is being written."""
        if place is None or self._update:
            return None
        if not place.exists():
            raise MissingError(f"no reference run at {place}; write it with: pytest --loaderbench-update")
        return load_concluded(place).record

    def _measured(self, loader: Loader, demand: float | None, rounds: int, seconds: float) -> Run:
        folder = self._request.getfixturevalue("tmp_path_factory").mktemp("loaderbench") / "run"
        file = Path(os.path.relpath(self._request.path))  # relative, because a reference run is shared between machines
        rate = None if demand is None else float(demand)
        name = _name_of(self._request.path.name, self._request.node.nodeid)
        order = GuardOrder(name, file, int(rounds), float(seconds), rate)
        measure_guarded(loader, order, folder)
        return load_concluded(folder)

    def _record(self, run: Run) -> None:
        """Add the rate to the test's properties, which appear in JUnit XML."""
        rate = run.record.configurations[0].samples_per_s
        found = {} if rate is None else {"": rate.est, "_lo": rate.lo, "_hi": rate.hi}
        for end, value in found.items():
            if value is not None:
                self._request.node.user_properties.append((f"samples_per_s{end}", value))


def _name_of(file: str, nodeid: str) -> str:
    """The test's name without the folder where pytest was started: committed references are compared by it."""
    return "::".join([file, *nodeid.split("::")[1:]])


def _gates(
    samples_per_s: float | None, fail_if: str | Sequence[str], reference: Path | None, demand: float | None = None
) -> list[Gate]:
    """The thresholds of a call. Raises `UsageError` for an invalid threshold, and if there is none."""
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


def _why_unreliable_here() -> str:
    """Why a measured rate would be meaningless here; empty if it would not be."""
    others = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT") or 1) - 1
    if others > 0:
        return f"{others + 1} workers of pytest-xdist share the CPUs; run this test with -n 0"
    return ""


def _fail_on_failed_trials(run: Run, *, has_started: bool) -> None:
    """Fail the test if the loader failed in any process: the rate of the other processes would hide it."""
    __tracebackhide__ = True
    failures = [trial.failure for trial in run.record.sweep if trial.failure is not None]
    if failures:
        message = f"the loader failed in {len(failures)} of {len(run.record.sweep)} processes: {failures[0].kind}"
        where = f"Log: {run.folder}/logs"
        hint = STARTED_HINT if has_started else failures[0].hint
        pytest.fail(f"{message}: {last_words(failures[0].message)}\n{hint}\n{where}")


def _has_started(loader: Loader) -> bool:
    """Whether the loader is an iterator with running workers: forked processes would interfere in its queues."""
    return isinstance(loader, Iterator) and bool(multiprocessing.active_children())


def _judge(run: Run, gates: Sequence[Gate], before: RunRecord | None, inconclusive: WhenUndecided) -> None:
    """Fail or skip the test according to its gates. A failed gate takes precedence over an inconclusive one."""
    __tracebackhide__ = True
    comparison = None if before is None else compare_runs(before, run.record)
    results = [judge_gate(gate, run.record, comparison) for gate in gates]
    if failed := [result for result in results if result.outcome == "failed"]:
        pytest.fail(f"{_text_of(failed)}\n{run.record.verdict}\nReport: {run.folder}/{PAGE_FILE}")
    if undecided := [result for result in results if result.outcome == "inconclusive"]:
        _end_inconclusive(_text_of(undecided), inconclusive)


def _text_of(results: Sequence[GateResult]) -> str:
    return "; ".join(f"{result.gate.text}: {result.said}" for result in results)


def _end_inconclusive(why: str, inconclusive: WhenUndecided) -> NoReturn:
    """End the test without a result."""
    __tracebackhide__ = True
    if inconclusive == "fail":
        pytest.fail(f"inconclusive: {why}")
    pytest.skip(f"inconclusive: {why}")


def _keep(run: Run, place: Path) -> None:
    """Write `run.json` as the reference run, to a file or into a folder. The test fails if that is impossible."""
    __tracebackhide__ = True
    file = place if place.suffix == ".json" or place.is_file() else place / RUN_FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(folder_of(run.folder or Path()) / RUN_FILE, file)
    except OSError as error:
        pytest.fail(f"reference run {file}: cannot write: {error.strerror or error}")
