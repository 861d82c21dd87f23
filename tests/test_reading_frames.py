"""Garbage collection while frames of other threads are read."""

import gc
import os
import sys

import pytest

from loaderbench.code_places import without_collection


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collection stays on")
def test_collection_stays_off_until_the_last_reader_of_frames_is_done() -> None:
    first, second = without_collection(), without_collection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collection stays on")
def test_a_process_forked_while_frames_are_read_collects() -> None:
    with without_collection():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
