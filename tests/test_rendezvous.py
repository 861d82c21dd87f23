"""Errors of torch's own stores and launcher become one line that says what to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import pytest
from torch import distributed
from torch.distributed.elastic.rendezvous.api import RendezvousClosedError, RendezvousTimeoutError

from loaderbench.rendezvous import why_no_ranks

SOON = timedelta(seconds=1)


def store(host: str, port: int, *, first: bool) -> Any:
    return vars(distributed)["TCPStore"](host, port, 2, is_master=first, timeout=SOON)


@contextmanager
def used_port() -> Iterator[int]:
    with closing(socket.socket()) as other:
        other.bind(("", 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_port_in_use_is_named() -> None:
    with used_port() as port, pytest.raises(distributed.DistNetworkError) as found:
        store("127.0.0.1", port, first=True)
    said = f"port {port} is in use on this machine; choose another one on all machines"
    assert why_no_ranks(found.value) == said


def test_machines_that_did_not_join_are_counted() -> None:
    with pytest.raises(distributed.DistStoreError) as found:
        store("127.0.0.1", 0, first=True)
    said = why_no_ranks(found.value)
    assert said == "1 of 2 machines joined in time; start the same command on every machine, or correct --nnodes"


def test_a_first_machine_that_does_not_answer_is_named_through_the_error_around_it() -> None:
    with used_port() as port:
        pass
    try:
        store("127.0.0.1", port, first=False)
    except distributed.DistNetworkError as error:
        around = RuntimeError("see the inner exception")
        around.__cause__ = error
    assert why_no_ranks(around).startswith(f"no answer from 127.0.0.1:{port}; start the training on that machine too")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            RendezvousTimeoutError(),
            "the other machines did not join in time; start the same command on every machine, ",
        ),
        (RendezvousClosedError(), "the machines could not meet: RendezvousClosedError"),
        (RendezvousClosedError("closed\nby lb-a"), "the machines could not meet: RendezvousClosedError: closed"),
    ],
)
def test_errors_of_the_launcher_are_one_line(error: Exception, said: str) -> None:
    found = why_no_ranks(error)
    assert found.startswith(said)
    assert "\n" not in found


def test_other_errors_are_not_explained() -> None:
    assert why_no_ranks(ValueError("EADDRINUSE")) == ""
    assert why_no_ranks(None) == ""
