"""Adjusts fixes that would not fit this machine, with fewer bytes in flight or another sharing strategy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from loaderbench.diagnosis.failures import TOO_MANY_FILES
from loaderbench.loaders import backend_of, prefetch_of
from loaderbench.loaders.worker_options import SHARING
from loaderbench.records import Candidate, Config, Trial
from loaderbench.search import why_pruned
from loaderbench.suite import Suite
from loaderbench.suite.batch_bytes import batch_bytes, prefetched_bytes

HALVINGS = 2
"""Maximum halvings of the batch size: a much smaller batch changes the training."""


@dataclass(frozen=True)
class Fitting:
    """What fits on this machine, judged by the trials so far. `shm_total_bytes` is the size of /dev/shm, or `None`."""

    suite: Suite
    done: Sequence[Trial]
    shm_total_bytes: int | None

    def fitted(self, candidate: Candidate, config: Config) -> Candidate | None:
        """The candidate with the fewest further changes that make it fit; `None` if no change does."""
        changed = {**config, **candidate.change}
        if self._is_possible(changed):
            return candidate
        for further in self._with_less(changed):
            smaller = {**changed, **further}
            if self._is_possible(smaller) and self._leaves_room(smaller):
                return replace(candidate, change={**candidate.change, **further})
        return None

    def _is_possible(self, config: Config) -> bool:
        return why_pruned(config, self.done, lambda found: prefetched_bytes(self.suite, found)) is None

    def _ran_out_of_files(self) -> bool:
        return any(trial.failure is not None and trial.failure.kind == TOO_MANY_FILES for trial in self.done)

    def _leaves_room(self, config: Config) -> bool:
        """Whether /dev/shm holds all batches in flight plus the batch being consumed."""
        ahead, one = prefetched_bytes(self.suite, config), batch_bytes(self.suite, config)
        return ahead is None or one is None or self.shm_total_bytes is None or ahead + one <= self.shm_total_bytes

    def _with_less(self, config: Config) -> Iterator[Config]:
        """Changes that reduce the bytes in flight, starting with the one that costs the user least."""
        if SHARING in backend_of({**self.suite.loader, **config}).worker_options and self._ran_out_of_files():
            yield {SHARING: "file_system"}
        found, dataset = prefetch_of(self.suite.loader, config), self.suite.dataset.with_axes(config)
        smaller = dataset.with_axes(dataset.smaller_samples).sample_bytes()
        shrinks = smaller is not None and smaller < (dataset.sample_bytes() or 0)
        samples: Config = dict(dataset.smaller_samples) if shrinks else {}
        shallow: Config = {"prefetch_factor": 1} if found.workers and (found.batches_per_worker or 0) > 1 else {}
        yield from filter(None, (samples, shallow, {**samples, **shallow} if samples and shallow else {}))
        for power in range(1, HALVINGS + 1):
            if found.batch_size and found.batch_size >= 2**power:
                yield {**samples, **shallow, "batch_size": found.batch_size // 2**power}
