"""What several tests share: a folder of photos, and a real run made through the command; and which tests run when."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from command_line import SMALL_SUITE, Cli, in_process, loaderbench
from hypothesis import settings
from nvml_stub import StubNvml, build, compiler
from scheduling import OneFileOneWorker, Turn, held, kind_of, order
from xdist.remote import Producer

from loaderbench.datasets.photos import generate_photos

TURN = Turn()

settings.register_profile("any machine", deadline=None)  # no test asserts how fast a machine is
settings.load_profile("any machine")


def pytest_configure() -> None:
    """Start processes as a terminal does: they may keep compiled modules, and Ctrl-C ends them.

    Without the first, each of hundreds of processes would compile torch. A shell that starts pytest in the background
    makes it ignore SIGINT, and everything that it starts. Threads of OpenMP and OpenBLAS sleep where they wait: two
    tests at a time would spend more on spinning than on computing.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # spins for 2^4 cycles, not 2^26
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, and never among what was: that takes a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without slow tests out of `-m slow`: importing them takes a third of the time for collecting."""
    if config.getoption("markexpr") != "slow" or not collection_path.match("test_*.py"):
        return None
    return "mark.slow" not in collection_path.read_text(encoding="utf-8") or None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneFileOneWorker:
    return OneFileOneWorker(config, log)


@pytest.hookimpl(tryfirst=True)  # before a worker of xdist tells the groups of its tests
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order(items)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before a test's time limit begins
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Its fixtures are made and taken away in a test's turn, too."""
    TURN.move_to(folder_of_all_workers(item.config), kind_of(item))
    return (yield)


def pytest_sessionfinish() -> None:
    TURN.end()


def folder_of_all_workers(config: pytest.Config) -> Path:
    """A temporary folder of this run of pytest."""
    own: Path = config._tmp_path_factory.getbasetemp()
    return own.parent if hasattr(config, "workerinput") else own


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """24 photos in three classes: this worker's copy of those that one worker makes for all."""
    shared = folder_of_all_workers(pytestconfig) / "shared-photos"
    with held(shared.with_suffix(".lock"), alone=True):
        if not shared.exists():
            generate_photos(shared, images=24, classes=3)
    return Path(shutil.copytree(shared, tmp_path_factory.mktemp("data") / "photos"))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command, called in this process in a new folder."""

    def call(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return in_process(*arguments, cwd=tmp_path, **environment)

    return call


@pytest.fixture
def command(tmp_path: Path) -> Cli:
    """The command as a user runs it, in a new folder: for what an interpreter of its own changes."""

    def call(*arguments: str | Path, timeout_s: float = 300.0, **environment: str) -> subprocess.CompletedProcess[str]:
        return loaderbench(*arguments, cwd=tmp_path, timeout_s=timeout_s, **environment)

    return call


@pytest.fixture(scope="session")
def small_run(photos: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A real run: its folder, and what the command printed."""
    place = photos.parent
    (place / "small.yaml").write_text(SMALL_SUITE)
    result = loaderbench("run", "small.yaml", "--out", "run", "--json", "copy.json", cwd=place)
    return place / "run", result


@pytest.fixture
def torch_looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch looks ten times a second whether workers and what started them still live, and not every 5 s."""
    from torch.utils.data import _utils

    for module in (_utils, _utils.worker):
        monkeypatch.setattr(module, "MP_STATUS_CHECK_INTERVAL", 0.1)


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stub of NVML, built once."""
    if compiler() is None:
        pytest.skip("no C compiler for the stub of NVML")
    return build(tmp_path_factory.mktemp("nvml") / "lib")


@pytest.fixture
def stub_nvml(nvml_library: Path, tmp_path: Path) -> StubNvml:
    """One GPU that answers everything, until a test changes that."""
    return StubNvml(nvml_library, tmp_path / "nvml.txt")
