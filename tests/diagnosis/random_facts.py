"""Random facts, as one machine could have them: figures that rules look at are often large, or none.

Hypothesis draws a seed and this file the figures, in a tenth of the time that it takes to draw each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from hypothesis import strategies as some

from loaderbench.diagnosis.facts import Facts
from loaderbench.records import Bottleneck, Interval, Stage, WaitParts, WorkerStates

STAGES: tuple[Stage, ...] = ("read", "decode", "transform", "collate", "sample")
PARTS = ("not_begun_s", "making_s", "order_s", "transport_s", "main_process_s")
KINDS = ("lock", "own_threads", "device", "storage", "page_fault", "queue", "running")

Value = TypeVar("Value")


class Draws:
    """Figures of one machine; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def one(self, *values: Value) -> Value:
        return self._random.choice(values)

    def yes(self, share: float = 0.5) -> bool:
        return self._random.random() < share

    def known(self, value: Value, share: float = 0.7) -> Value | None:
        return value if self.yes(share) else None

    def share(self) -> float:
        return self.one(0.0, 0.03, 0.12, 0.35, 0.45, 0.6, 0.98, 1.0) if self.yes() else self._random.random()

    def amount(self, largest: float) -> float:
        """As often small as large."""
        return largest * 10 ** self._random.uniform(-5, 0)

    def some_of(self, values: Sequence[Value]) -> list[Value]:
        return self._random.sample(values, self._random.randint(0, len(values)))

    def states(self) -> WorkerStates:
        on_cpu = self.share()
        queued = self.share() * (1.0 - on_cpu)
        others, sending = self.one(self.share(), 4 * self.share()), self.known(self.one(0.0, self.share()))
        return WorkerStates(
            on_cpu_share=on_cpu,
            run_queue_share=queued,
            blocked_share=1.0 - on_cpu - queued,
            other_threads_cpu_share=self.known(others + (sending or 0.0)),
            sending_cpu_share=sending,
            children_cpu_share=self.known(self.one(0.0, 0.0, self.share())),
            runnable_threads=self.known((sending or 0.0) + self.one(1.0, 16 * self.share())),
            sending_threads=sending,
            system_share=self.known(self.share()),
            minor_faults_per_s=self.known(self.one(0.0, 1.0, self.amount(1e6), 1e6)),
            major_faults_per_s=self.known(self.one(0.0, self.amount(1e4))),
            read_bytes_per_s=self.known(self.amount(1e9)),
            swapped_bytes=self.known(self.one(0, int(self.amount(1e10)))),
            are_threads=self.yes(0.3),
            allowed_cpus=self.known(self.one(1, 2, 8, 8, 8, 8)),
            blocked_on=self.known({kind: self.share() for kind in KINDS if self.yes()}),
            pinning_share=self.known(self.share()),
        )

    def parts(self) -> WaitParts:
        """Often one part is most of it."""
        largest = self.known(self.one(*PARTS))
        parts = {name: 1.0 if name == largest else self.amount(0.1) for name in PARTS}
        return WaitParts(batches=100, **parts, ended_s=self.one(0.0, 0.0, 0.9) * sum(parts.values()))

    def facts(self) -> Facts:
        """What is used, by whomever, and what is idle add up to the machine's CPUs."""
        cpus = self.one(0.3, 0.5, 1.0, 2.0, 8.0)
        own = self.share() * cpus
        others = self.share() * (cpus - own)
        wall_s = {stage: self.amount(0.1) for stage in self.some_of(STAGES)}
        workers = self.one(0, 1, 2, 4, 8, 40)
        return Facts(
            workers=workers,
            cpus=cpus,
            cpus_online=8,
            is_loader=workers > 0 or self.yes(),
            processes=self.one(0, 2),
            ranks=self.one(1, 1, 2),
            wait_share=self.share(),
            samples_per_s=self.amount(1e5),
            batch_samples=self.known(self.one(1.0, 32.0, 512.0)),
            wall_s=wall_s,
            cpu_s={stage: whole_s * self.share() for stage, whole_s in wall_s.items()},
            loads=self.known(self.states()),
            main=self.known(self.states()),
            idle_share=self.known(self.share(), 0.9) if workers else None,
            ended_share=self.one(0.0, 0.0, 0.0, 0.25, 0.5, 0.75) if workers > 1 else 0.0,
            own_cpus=self.known(own, 0.9),
            idle_cpus=cpus - own - others,
            others_cpus=others,
            throttled_share=self.one(None, 0.0, 0.05, 0.5),
            huge_faults_per_s=self.one(0.0, 0.0, self.amount(1e4)),
            swap_faults_per_s=self.known(self.one(0.0, self.amount(1e4), 1e4)),
            swapped_in_bytes_per_s=self.known(self.amount(1e9)),
            parts=self.known(self.parts()),
            next_s=self.known(self.amount(0.1)),
            next_cpu_s=self.known(self.amount(0.1)),
            sampler_s=self.one(0.0, self.amount(0.1)),
            busy_thread=self.one("", "log (train.py:8)"),
            fed_by=self.one("", "", "", "Queue.get"),
            bytes_per_sample=self.known(self.amount(1e8)),
            bytes_share=self.known(self.share()),
            tail_share=self.share(),
            startup_share=self.one(0.0, 0.0, 0.0, 0.04, self.share()),
            startup_s=self.known(self.amount(0.1)),
            sampler_start_s=self.one(0.0, self.amount(0.1)),
            transfer_share=self.share(),
            fewer_are_no_faster=self.yes(),
            fewer_are_faster=self.yes(0.2),
            one_thread_is_no_faster=self.yes(0.2),
            one_thread_is_faster=self.yes(0.2),
            workers_are_slower=self.yes(),
            more_are_no_faster=self.yes(),
            more_are_faster=self.yes(0.2),
            workers_persist=self.yes(),
        )

    def freed(self) -> tuple[Bottleneck, ...]:
        """What stages gain if free, the largest first."""
        stages: tuple[Stage, ...] = ("read", "decode", "transform", "collate", "transport")
        found = [self._gain(stage) for stage in self.some_of(stages)]
        return tuple(sorted(found, key=lambda one: -one.gain_if_free.est))

    def _gain(self, stage: Stage) -> Bottleneck:
        est, width = self._random.uniform(0.9, 2.5), self.one(0.01, 0.1, 0.9)
        gain = Interval(est, est * (1 - width), est * (1 + width))
        return Bottleneck(stage=stage, samples_per_s_if_free=gain, gain_if_free=gain)


draws = some.integers(0, 2**32).map(Draws)
all_facts = draws.map(Draws.facts)
