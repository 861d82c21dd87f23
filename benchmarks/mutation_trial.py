"""Run tests in forked processes, with or without a change to one module: for benchmarks/mutation.py.

One process collects the tests of a part once. For each change it forks, replaces the code of the changed functions in
place, and runs the tests that reach them. A change outside functions (a constant, a decorator, a default) needs a
process that imports the module again, which takes a second.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import coverage
import pytest
from hypothesis import HealthCheck, Phase, settings

Seconds = Mapping[str, float]
"""Seconds of each test."""

Reached = dict[str, dict[int, list[str]]]
"""Tests that run each line, by file; they include "" if the line runs during import."""

ANEW = "anew"
"""The answer for a change that needs a new import."""

_OPTIONS = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-o", "addopts="]


class Change(NamedTuple):
    """A module, its file and changed source, the tests to run, and their time limit."""

    module: str
    file: Path
    source: str
    tests: Sequence[str]
    limit_s: float


def survey(files: Sequence[Path], tests: Sequence[str]) -> tuple[Seconds, Reached]:
    """Return the seconds of each test, and what it reaches. Raises `RuntimeError` if one fails without a change."""

    def run() -> Any:
        watched = _Watched(files)
        status = _pytest(tests, watched)
        return status, watched.failed, watched.seconds, watched.reached()

    answer = next(_answers(lambda say: say(run()), 600.0), None)
    if answer is None or answer[0] != 0:
        raise RuntimeError(f"without any change to the code the tests fail: {answer and answer[1]}")
    _, _, seconds, reached = answer
    return seconds, {file: {int(line): names for line, names in lines.items()} for file, lines in reached.items()}


def killers_in_place(changes: Sequence[Change], tests: Sequence[str]) -> Iterator[str]:
    """Yield for each change the test that kills it, "" if none does, or `ANEW`."""

    def run(say: Callable[[str], None]) -> None:
        _pytest(tests, _Server(changes, say))

    yield from _answers(run, sum(change.limit_s for change in changes) + 600.0)


def killer_anew(change: Change) -> str:
    """Return the test that fails with the changed module, or another reason for failure; "" if all tests pass."""

    def run(say: Callable[[str], None]) -> None:
        sys.meta_path.insert(0, _Mutated(change))
        chosen = _Chosen(change.tests)
        status = _pytest(sorted({test.partition("::")[0] for test in change.tests}), chosen)
        say(chosen.failed or ("" if status == 0 else "import"))

    return str(next(_answers(run, change.limit_s), "time"))


def _pytest(tests: Iterable[str], plugin: object) -> int:
    return int(pytest.main([*_OPTIONS, *tests], plugins=[plugin]))


class _Plugin:
    """The base of all runs: the same examples each time, and no more of them than needed."""

    failed = ""

    def pytest_collection(self) -> None:
        phases, unhurried = (Phase.explicit, Phase.generate), (HealthCheck.too_slow,)
        settings.register_profile(
            "mutation", database=None, derandomize=True, phases=phases, deadline=None, suppress_health_check=unhurried
        )
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or (report.nodeid if report.failed else "")


class _Watched(_Plugin):
    """Record the seconds of each test, and the lines it reaches."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._coverage = coverage.Coverage(data_file=None, include=[str(file) for file in files])
        self.seconds: dict[str, float] = {}
        self._coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        began_s = time.perf_counter()
        yield
        self.seconds[item.nodeid] = time.perf_counter() - began_s
        self._coverage.switch_context("")

    def reached(self) -> Reached:
        self._coverage.stop()
        data = self._coverage.get_data()
        return {file: data.contexts_by_lineno(file) for file in data.measured_files()}


class _Chosen(_Plugin):
    """Run some of the collected tests, in a given order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._places = {name: place for place, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = self._places
        items[:] = sorted((one for one in items if one.nodeid in places), key=lambda one: places[one.nodeid])


class _Server(_Plugin):
    """Collect all tests, and run those of each change in a new fork."""

    def __init__(self, changes: Sequence[Change], say: Callable[[str], None]) -> None:
        self._changes, self._say = changes, say

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for change in self._changes:
            codes = _changed_functions(change)
            tests = [items[name] for name in change.tests]
            run = functools.partial(self._run, session, tests, codes)
            self._say(ANEW if codes is None else next(_answers(run, change.limit_s), "time"))
        return True

    def _run(
        self,
        session: pytest.Session,
        tests: Sequence[pytest.Item],
        codes: Sequence[tuple[FunctionType, CodeType]],
        say: Callable[[str], None],
    ) -> None:
        for function, code in codes:
            function.__code__ = code
        for item, following in zip(tests, [*tests[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                break
        say(self.failed)


class _Mutated(MetaPathFinder, SourceFileLoader):
    """Import one module with changed source."""

    def __init__(self, change: Change) -> None:
        SourceFileLoader.__init__(self, change.module, str(change.file))
        self._change = change

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        found = fullname == self._change.module
        return spec_from_file_location(fullname, self._change.file, loader=self) if found else None

    def get_code(self, _fullname: str) -> CodeType:
        return compile(self._change.source, self.path, "exec")


def _changed_functions(change: Change) -> list[tuple[FunctionType, CodeType]] | None:
    """The functions of the imported module whose code differs, with the new code; `None` if other code differs."""
    module = sys.modules.get(change.module)
    if module is None:
        return None
    before, after = (
        compile(source, str(change.file), "exec") for source in (change.file.read_text("utf-8"), change.source)
    )
    old, new = dict(_functions(before)), dict(_functions(after))
    if _skeleton(before) != _skeleton(after):
        return None
    found = [(_find(vars(module), path), code) for path, code in new.items() if code != old[path]]
    fitting = [(one, code) for one, code in found if one and one.__code__.co_freevars == code.co_freevars]
    return fitting if len(fitting) == len(found) else None


def _functions(code: CodeType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], CodeType]]:
    """Functions of a module and of its classes."""
    for inner in _inner(code):
        here = (*path, inner.co_name)
        if inner.co_flags & CO_OPTIMIZED:
            yield here, inner
        else:
            yield from _functions(inner, here)


def _skeleton(code: CodeType) -> object:
    """The code of a module or class outside its functions."""
    plain = [repr(value) for value in code.co_consts if not isinstance(value, CodeType)]
    inner = [one.co_name if one.co_flags & CO_OPTIMIZED else _skeleton(one) for one in _inner(code)]
    return code.co_code, code.co_names, plain, inner


def _inner(code: CodeType) -> list[CodeType]:
    return [value for value in code.co_consts if isinstance(value, CodeType)]


def _find(names: Mapping[str, Any], path: Sequence[str]) -> FunctionType | None:
    found = names.get(path[0])
    if len(path) > 1:
        return _find(vars(found), path[1:]) if isinstance(found, type) else None
    for holder in ("fget", "func", "__func__", "__wrapped__"):
        found = getattr(found, holder, found)
    return found if isinstance(found, FunctionType) else None


def _answers(run: Callable[[Callable[[Any], None]], None], limit_s: float) -> Iterator[Any]:
    """Yield the JSON answers of a function in a fork of this process, until it ends, dies or exceeds its time."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.close(read)
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silent, descriptor)
        with os.fdopen(write, "w") as answers:
            run(lambda found: print(json.dumps(found), file=answers, flush=True))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answers, _Killed(pid, limit_s):
        yield from map(json.loads, answers)


class _Killed:
    """Kill a process and its group when its time is up, and reap it in any case."""

    def __init__(self, pid: int, limit_s: float) -> None:
        self._pid, self._limit_s = pid, limit_s

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, lambda *_: self._kill())
        signal.setitimer(signal.ITIMER_REAL, self._limit_s)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._kill()
        os.waitpid(self._pid, 0)

    def _kill(self) -> None:
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            return
