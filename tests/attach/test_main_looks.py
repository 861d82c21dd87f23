"""The kernel's view of a main thread: never waiting is not the same as waits that the kernel hides."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from loaderbench.attach import watch
from loaderbench.attach.watch import MainLooks
from loaderbench.monitors.blocked import FEWEST_LOOKS, LOCK, RUNNING

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def process(request: pytest.FixtureRequest) -> Iterator[int]:
    """The PID of a process that runs the parameter, once it runs."""
    code = f"print(flush=True)\n{request.param}"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started.pid
        started.kill()


def looked_at(pid: int) -> MainLooks:
    looks = MainLooks()
    for _ in range(2 * FEWEST_LOOKS):
        time.sleep(0.01)
        looks.look(pid)
    return looks


@pytest.mark.parametrize("process", ["while True: pass"], indirect=True)
def test_a_main_thread_that_never_sleeps_waits_for_nothing(process: int) -> None:
    assert looked_at(process).wait_share == 0.0


@pytest.mark.parametrize("process", ["import time; time.sleep(600)"], indirect=True)
def test_where_the_kernel_hides_what_a_sleeping_thread_is_blocked_on_nothing_is_known(
    process: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "kind_at", lambda _: RUNNING)
    looks = looked_at(process)
    assert (looks.shares, looks.wait_share) == (None, None)


@pytest.mark.parametrize("process", ["import threading; threading.Event().wait()"], indirect=True)
def test_a_wait_for_another_thread_can_be_a_wait_for_a_batch(process: int) -> None:
    looks = looked_at(process)
    assert looks.kinds[LOCK] > FEWEST_LOOKS
    assert looks.wait_share is None
