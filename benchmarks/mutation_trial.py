"""One run of tests in a forked process, with or without a change to one module: for benchmarks/mutation.py."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

import coverage
import pytest
from hypothesis import Phase, settings

REACHED = dict[str, dict[int, list[str]]]
"""By file and line, the tests that run it; none where it runs as the module is imported."""

_OPTIONS = ["-x", "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider", "-o", "addopts="]


class Mutated(MetaPathFinder):
    """Gives one module another source."""

    def __init__(self, name: str, file: Path, source: str) -> None:
        self._name, self._file, self._source = name, file, source

    def find_spec(self, fullname: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return spec_from_file_location(fullname, self._file, loader=_Loader(fullname, self._file, self._source))


class _Loader(SourceFileLoader):
    def __init__(self, name: str, file: Path, source: str) -> None:
        super().__init__(name, str(file))
        self._source = source

    def get_code(self, _fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec")


class Chosen:
    """Runs some of the tests that are found, the fastest first, and keeps the first that fails."""

    def __init__(self, seconds: Mapping[str, float] | None) -> None:
        self._seconds, self.failed = seconds, ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._seconds is not None:
            seconds = self._seconds
            items[:] = sorted((one for one in items if one.nodeid in seconds), key=lambda one: seconds[one.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


class Watched:
    """Notes how long each test takes, and which lines it reaches."""

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

    def reached(self) -> REACHED:
        self._coverage.stop()
        data = self._coverage.get_data()
        return {file: data.contexts_by_lineno(file) for file in data.measured_files()}


def survey(files: Sequence[Path], tests: Sequence[str]) -> tuple[dict[str, float], REACHED]:
    """How long each test takes, and what it reaches. Raises `RuntimeError` where one fails without any change."""

    def run() -> Any:
        watched, chosen = Watched(files), Chosen(None)
        status = _pytest(tests, watched, chosen)
        return status, chosen.failed, watched.seconds, watched.reached()

    answer = _in_a_process(run, 600.0)
    if answer is None or answer[0] != 0:
        raise RuntimeError(f"without any change to the code the tests fail: {answer and answer[1]}")
    _, _, seconds, reached = answer
    return seconds, {file: {int(line): names for line, names in lines.items()} for file, lines in reached.items()}


def killer(name: str, file: Path, source: str, seconds: Mapping[str, float], limit_s: float) -> str:
    """The test that fails with this source of a module, or what else keeps it from passing; "" where all pass."""

    def run() -> Any:
        sys.meta_path.insert(0, Mutated(name, file, source))
        chosen = Chosen(seconds)
        status = _pytest(sorted({test.partition("::")[0] for test in seconds}), chosen)
        return chosen.failed or ("" if status == 0 else "import")

    answer = _in_a_process(run, limit_s)
    return "time" if answer is None else str(answer)


def _pytest(tests: Sequence[str], *plugins: object) -> int:
    settings.register_profile("mutation", database=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutation")
    return int(pytest.main([*_OPTIONS, *tests], plugins=plugins))


def _in_a_process(run: Any, limit_s: float) -> Any:
    """What a function returns in a fork of this process, by JSON; `None` where it dies or takes too long."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(read)
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silent, descriptor)
        with os.fdopen(write, "w") as answer:
            json.dump(run(), answer)
        os._exit(0)
    os.close(write)
    timer = _Killed(pid, limit_s)
    with os.fdopen(read) as answer, timer:
        text = answer.read()
    return json.loads(text) if text else None


class _Killed:
    """Kills a process and those it started when its time is over, and takes leave of it in any case."""

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
