"""A fix that needs smaller copies of the images: the time it takes to write them, and when that ends early."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from fakes import Clock, FakeMeasuring, Notes, plan_of, session_of, suite
from test_measuring import measure

from loaderbench.datasets.presized import presized_copies
from loaderbench.errors import MissingError
from loaderbench.records import IDENTICAL, Candidate, Config, FormatCopy
from loaderbench.session.listener import InTime
from loaderbench.session.verifying import RemedyStep, Verifier

PRESENT: Config = {"num_workers": 2}
SMALLER, OTHER = (Candidate(f"c{n}", {f"axis{n}": 1}, 2.0) for n in range(2))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found)
    return found


class Full(FakeMeasuring):
    """On a full disk. Notes until when each of the copies might be written."""

    def write_copies(self, configs: Sequence[Config], until_s: float = math.inf) -> tuple[FormatCopy, ...]:
        self.takes_s = until_s
        if any(config.get("axis0") for config in configs):
            raise MissingError("presize=256: cannot write")
        return ()


@pytest.mark.parametrize("budget_s", [None, 60.0])
def test_a_fix_whose_files_cannot_be_written_is_left_out_with_a_note(clock: Clock, budget_s: float | None) -> None:
    measuring = Full(clock=clock)
    session = session_of(measuring, suite(measure={"budget": budget_s}))
    step = object.__new__(RemedyStep)
    step._session, step._found = session, session.found
    assert [step._is_prepared(one, PRESENT) for one in (SMALLER, OTHER)] == [False, True]
    assert session.found.remarks == {"c0": "not tried: c0: presize=256: cannot write"}
    assert measuring.takes_s == (math.inf if budget_s is None else clock.now_s + budget_s)


@pytest.mark.parametrize("strict", [False, True])
def test_the_time_that_writing_takes_is_not_taken_from_the_trials_unless_a_budget_ends_both(
    clock: Clock, strict: bool
) -> None:
    def propose(_: Config) -> Sequence[Candidate]:
        clock.now_s += 50.0
        return (SMALLER, OTHER)

    began_s = clock.now_s
    found = Verifier(
        plan_of(suite()),
        PRESENT,
        propose,
        lambda pairs: [IDENTICAL] * len(pairs),
        until_s=began_s + 100.0,
        strict=strict,
    )
    assert found.until_s == began_s + (100.0 if strict else 150.0)
    steps_s, combined_s = found._steps_until_s - began_s, found._combined_until_s - began_s
    assert (steps_s, combined_s) == ((80.0, 100.0) if strict else (130.0, 200.0))


def test_copies_that_a_budget_ends_are_kept_and_the_next_run_writes_the_rest(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADERBENCH_CACHE", str(tmp_path / "cache"))
    files = tuple((str(file), 0) for file in sorted(photos.rglob("*.jpg")))
    made, _ = measure(tmp_path, files=files)
    with pytest.raises(MissingError, match=r"the budget was enough to write 1 of 24 smaller JPEGs; the next run"):
        made.write_copies([{"presize": 32}], time.monotonic() - 1.0)
    written = set((tmp_path / "cache").rglob("*.jpg"))
    assert 0 < len(written) < len(files)
    before = {file: file.stat().st_mtime_ns for file in written}
    assert made.write_copies([{"presize": 32}]) == ()
    assert len(set((tmp_path / "cache").rglob("*.jpg"))) == len(files)
    assert {file: file.stat().st_mtime_ns for file in written} == before
    assert not list((tmp_path / "cache").rglob("*.jpg.*"))


def test_ctrl_c_does_not_wait_for_all_copies(photos: Path, tmp_path: Path) -> None:
    files = [(str(file), 0) for file in sorted(photos.rglob("*.jpg"))]

    def pressed(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        presized_copies(files, 32, cache_dir=tmp_path, on_progress=pressed)
    assert len(list(tmp_path.rglob("*.jpg"))) < len(files)


def test_what_is_prepared_in_time_is_passed_on() -> None:
    heard = list[object]()

    class Hears(Notes):
        def doing(self, what: str) -> None:
            heard.append(what)

        def generating(self, done: int, total: int) -> None:
            heard.append((done, total))

        def writing(self, name: str, done: int, total: int) -> None:
            heard.append((name, done, total))

    late = InTime(Hears(), -math.inf)
    late.doing("reading")
    late.generating(1, 2)
    late.writing("smaller JPEGs", 2, 2)  # the last one is written
    with pytest.raises(MissingError):
        late.writing("smaller JPEGs", 1, 2)
    assert heard == ["reading", (1, 2), ("smaller JPEGs", 2, 2), ("smaller JPEGs", 1, 2)]
    InTime(Hears(), math.inf).writing("smaller JPEGs", 1, 2)
