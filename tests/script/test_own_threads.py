"""A script does not wait for threads of loaderbench."""

from __future__ import annotations

import threading
from pathlib import Path

from scripts import PLAIN, profile, write

from loaderbench.own_threads import OwnThread

JOINS = """
    import threading
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()
    print("joined")


if __name__ == "__main__":
"""


def test_a_script_that_joins_every_thread_ends(tmp_path: Path) -> None:
    write(tmp_path, PLAIN.replace('\n\nif __name__ == "__main__":\n', JOINS))
    done = profile(tmp_path, "--out", "run", "train.py")
    assert done.stdout.splitlines()[-1] == "joined", done.stderr
    assert (tmp_path / "run" / "report.html").exists()


def test_only_we_wait_for_a_thread_of_ours() -> None:
    go_on, ended = threading.Event(), []
    own = OwnThread("test", lambda: ended.append(go_on.wait(10)))
    own.wait(10)  # not begun
    own.start()
    own.join()
    assert not ended
    go_on.set()
    own.wait(10)
    assert ended == [True]
