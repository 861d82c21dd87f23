"""Threads compete only if they want a CPU for work of their own, and none is idle."""

from __future__ import annotations

from dataclasses import replace

from test_cause import BLOCKED, CASES, DECODING, cause_of, states


def test_threads_that_send_batches_do_not_compete_with_their_workers() -> None:
    sending = states(
        0.6, 0.35, runnable_threads=3.4, other_threads_cpu_share=0.3, sending_cpu_share=0.3, sending_threads=1.2
    )
    facts = replace(DECODING, workers=2, loads=sending, main=states(0.2), own_cpus=1.9, idle_cpus=0.1)
    assert cause_of(facts) == ("decode", "cpu")
    of_libraries = replace(sending, sending_cpu_share=None, sending_threads=None)
    assert cause_of(replace(facts, loads=of_libraries)) == ("decode", "oversubscription")


def test_a_worker_that_waits_for_storage_does_not_share_the_gil_with_its_sender() -> None:
    loads = states(0.6, runnable_threads=0.9, other_threads_cpu_share=0.3, sending_cpu_share=0.3, sending_threads=0.3)
    facts = replace(BLOCKED, workers=1, loads=loads)
    assert cause_of(facts)[1] != "lock"
    of_python = replace(loads, sending_cpu_share=None, sending_threads=None)
    assert cause_of(replace(facts, loads=of_python))[1] == "lock"


def test_threads_that_queue_next_to_an_idle_cpu_do_not_compete_unless_fewer_are_faster() -> None:
    many = CASES["more workers than CPUs"][0]
    with_room = replace(many, own_cpus=1.2, idle_cpus=0.8)
    assert cause_of(with_room)[1] != "oversubscription"
    assert cause_of(replace(with_room, fewer_are_faster=True)) == ("decode", "oversubscription")
    assert cause_of(replace(many, own_cpus=1.7, idle_cpus=0.3)) == ("decode", "oversubscription")
