"""The whole of a run, step by step, with steps that only say that they were taken."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import Notes, planned, suite, trial_of

from loaderbench.ending_signals import put_off_signals, restored_signals
from loaderbench.errors import Terminated, UsageError
from loaderbench.records import Readings
from loaderbench.session import running
from loaderbench.session.listener import Listener
from loaderbench.session.running import NOT_ENDED, run_suite

STEPS = [
    "copies of all",
    "sweep",
    "final",
    "provisional after the sweep",
    "rank",
    "isolation best",
    "freed best",
    "remedies best",
    "put off signals",
]
WRITTEN = ["run.json", "timeline", "page", "index"]


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
        signal.signal(number, handler)


class FakeStore:
    """Notes what is written to it."""

    def __init__(self, folder: Path, *, again: bool = False, resumable: bool = True) -> None:
        self.folder, self.again = folder, again
        self.log = LOG
        self.log.append(f"store {folder.name}{' again' if again else ''}")

    def write_run(self, record: Any) -> Path:
        self.log.append("run.json" if record == "concluded" else f"run.json: {record}")
        return self.folder / "run.json"

    def write_timeline(self, _: object) -> None:
        self.log.append("timeline")

    def write_page(self, html: str) -> Path:
        self.log.append("page")
        return self.folder / "report.html"

    def keep_only(self, trials: Any) -> None:
        self.log.append(f"keep {[trial.id for trial in trials]}")

    def discard(self) -> None:
        self.log.append("discard")

    def close(self) -> None:
        self.log.append("close")


LOG: list[str] = []
LEFT = SimpleNamespace(started_at="2026-01-01T00:00:00+00:00")


def step(name: str, raises: BaseException | None = None) -> Any:
    def taken(*given: Any) -> Any:
        LOG.append(" ".join([name, *(one for one in given if isinstance(one, str))]))
        if raises is not None:
            raise raises
        return SimpleNamespace(subject=SimpleNamespace(config="best"))

    return taken


MEASURING = SimpleNamespace(write_copies=lambda configs: LOG.append(f"copies of {configs[0]}"))


class FakePlan(str):
    """Prints its name."""

    __slots__ = ()
    configurations, rounds, is_adaptive = ("all",), 1, False


class FakeRecord(str):
    """Prints its name."""

    __slots__ = ()
    complete = False


class FakeSession(SimpleNamespace):
    """What the steps of a run are given."""

    def __init__(self, made: Any, measuring: Any, *, store: Any, listener: Any, earlier: Any) -> None:
        found = SimpleNamespace(
            readings=None, stopped_by=None, late_signals=[], why_partial=None, trials=[], remarks={}
        )
        plan = SimpleNamespace(configurations=("all",), isolation_trials=1, verify_s=0.0)
        so_far = {"so_far": lambda: "so far", "provisional": lambda after: f"provisional after {after}"}
        so_far["take_over_earlier"] = lambda: None
        super().__init__(found=found, plan=plan, measuring=measuring, store=store, listener=listener, **so_far)

    def stopped(self, stop: BaseException) -> None:
        LOG.append(f"stopped by {type(stop).__name__}")
        self.found.stopped_by = 15


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that are taken, each by its name."""
    LOG.clear()
    server = SimpleNamespace(warm_up=lambda: LOG.append("warm up"))
    made = SimpleNamespace(
        environment="machine",
        inputs=SimpleNamespace(summary="data"),
        consumer="none",
        plan=FakePlan("plan"),
        measured=lambda *given: given[-1],
    )
    finished = SimpleNamespace(record=FakeRecord("concluded"), to_html=lambda: "<p>")
    for name, fake in {
        "Store": FakeStore,
        "TrialServer": lambda: server,
        "TrialRunner": lambda *_: None,
        "TrialMeasurer": lambda *_, **__: MEASURING,
        "Session": FakeSession,
        "find_conditions": lambda *_: made,
        "conclude": lambda measured: measured,
        "Run": lambda *_: finished,
        "compare_batches": lambda *_: (),
        "measure_sweep": lambda session, _: step("sweep")(session),
        "_show_so_far": lambda _, after: LOG.append(f"provisional after {after}"),
        "rank": lambda _: step("rank")(),
        "measure_final": lambda *_, **__: step("final")(),
        "measure_isolation": step("isolation"),
        "measure_bottlenecks": step("freed"),
        "try_remedies": step("remedies"),
        "put_off_signals": lambda _: LOG.append("put off signals"),
        "refuse_another_suite": lambda *_: LOG.append("refuse another suite"),
        "refuse_changes": lambda *_: LOG.append("refuse changes"),
        "update_index": lambda _: LOG.append("index"),
    }.items():
        monkeypatch.setattr(running, name, fake)
    return LOG


class Hears(Notes):
    """Notes also what is planned and what takes a while."""

    def doing(self, what: str) -> None:
        LOG.append(what)

    def planned(self, plan: Any) -> None:
        LOG.append(f"planned {plan}")


def loaded() -> Any:
    return SimpleNamespace(suite=suite(name="mine"), folder=Path())


def test_a_run_is_prepared_measured_concluded_and_written(taken: list[str]) -> None:
    hears: Any = Hears()
    found = run_suite(loaded(), Path("out"), hears)
    assert taken == [
        *("store out", "warm up", "planned plan", f"run.json: {NOT_ENDED}"),
        *STEPS,
        "writing the report",
        *WRITTEN,
        "close",
    ]
    assert (found.folder, found.page, found.stopped_by) == (Path("out"), Path("out/report.html"), None)


@pytest.mark.parametrize(("why_partial", "isolation_trials"), [("the budget of 5 s was used up", 3), (None, 0)])
def test_a_sweep_that_was_cut_off_or_that_nothing_follows_has_no_provisional_report(
    taken: list[str], why_partial: str | None, isolation_trials: int
) -> None:
    session: Any = FakeSession(None, MEASURING, store=None, listener=None, earlier=None)
    session.found.why_partial, session.plan.isolation_trials = why_partial, isolation_trials
    running._measure(session)
    assert taken == [step for step in STEPS if "provisional" not in step]


def test_a_provisional_report_that_cannot_be_written_is_not_announced_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full_disk(_: str) -> Path:
        raise UsageError("No space left on device")

    store = SimpleNamespace(folder=Path("out"), write_page=full_disk)
    session: Any = FakeSession(None, MEASURING, store=store, listener=Listener(), earlier=None)
    session.found.trials = [trial_of(planned("r1-c00"))]
    drawn: list[Any] = []
    monkeypatch.setattr(running, "conclude", drawn.append)
    monkeypatch.setattr(running, "Run", lambda *_: SimpleNamespace(to_html=lambda: "<p>", verdict="a verdict"))
    monkeypatch.setattr(session.listener, "verdict_so_far", lambda *_: drawn.append("announced"), raising=False)
    running._show_so_far(session, "round 1 of 3")
    assert drawn == ["provisional after round 1 of 3"]
    store.write_page = lambda _: Path("out/report.html")
    running._show_so_far(session, "round 2 of 3")
    assert drawn[-1] == "announced"


def test_without_a_listener_nobody_hears_it_and_without_a_folder_it_has_the_suite_s_name(taken: list[str]) -> None:
    found = run_suite(loaded())
    assert found.folder.parent == Path("reports")
    assert found.folder.name.startswith("mine-")
    assert taken[-1] == "close"


def test_a_run_that_goes_on_keeps_its_trials_where_nothing_has_changed(
    taken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = trial_of(planned("r1-c00"))
    earlier = SimpleNamespace(
        folder=Path("left"), record=LEFT, trials={kept.id: kept}, readings=Readings(), unreadable=()
    )
    monkeypatch.setattr(running, "read_earlier", lambda _: earlier)
    monkeypatch.setattr(running, "changed_code", lambda *_: "mine.py changed")
    warned: list[str] = []
    listener = Listener()
    listener.warned = warned.append  # type: ignore[method-assign]
    run_suite(loaded(), None, listener, Path("left"))
    assert taken[:4] == ["refuse another suite", "store left again", "warm up", "refuse changes"]
    assert taken[4:6] == ["copies of all", "keep ['r1-c00']"]
    assert warned == ["mine.py changed"]


def test_what_speaks_against_a_planned_run_is_told_before_its_first_trial(taken: list[str]) -> None:
    listener = Listener()
    listener.warned = taken.append  # type: ignore[method-assign]
    run_suite(loaded(), Path("out"), listener, doubt=lambda _: "of another machine")
    assert "of another machine" in taken
    assert taken.index("of another machine") < next(n for n, one in enumerate(taken) if one.startswith("copies"))


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), Terminated()])
def test_a_signal_ends_the_measuring_and_what_there_is_is_written(
    taken: list[str], monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    monkeypatch.setattr(running, "measure_isolation", step("isolation", stop))
    found = run_suite(loaded(), Path("out"))
    assert taken[-8:] == [
        *("isolation best", f"stopped by {type(stop).__name__}", "put off signals"),
        *WRITTEN,
        "close",
    ]
    assert found.stopped_by == 15


def test_a_signal_that_came_too_late_to_end_anything_is_told(taken: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "put_off_signals", lambda late: late.append(2))
    assert run_suite(loaded(), Path("out")).stopped_by == 2


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_run_that_cannot_begin_leaves_no_folder_unless_it_was_there(
    taken: list[str], monkeypatch: pytest.MonkeyPatch, goes_on: bool
) -> None:
    earlier = SimpleNamespace(folder=Path("left"), record=LEFT, trials={}, readings=Readings())
    monkeypatch.setattr(running, "read_earlier", lambda _: earlier)
    monkeypatch.setattr(running, "find_conditions", step("look", UsageError("no")))
    with pytest.raises(UsageError):
        run_suite(loaded(), Path("out"), None, Path("left") if goes_on else None)
    assert taken[-2:] == ([f"look {LEFT.started_at}", "close"] if goes_on else ["discard", "close"])


def test_handlers_of_signals_are_as_they_were(taken: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(running, "put_off_signals", put_off_signals)
    run_suite(loaded(), Path("out"))
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize(("sent", "noted"), [(signal.SIGINT, signal.SIGINT), (signal.SIGHUP, signal.SIGTERM)])
def test_a_terminal_that_closes_while_results_are_written_ends_it_as_sigterm(sent: int, noted: int) -> None:
    came = list[int]()
    with restored_signals():
        put_off_signals(came)
        signal.raise_signal(sent)
    assert came == [noted]


def test_in_another_thread_signals_are_nobody_s_business() -> None:
    before, came = signal.getsignal(signal.SIGTERM), list[int]()

    def work() -> None:
        with restored_signals():
            put_off_signals(came)
        came.append(0)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert (came, signal.getsignal(signal.SIGTERM)) == ([0], before)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with restored_signals():
            put_off_signals([])
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
