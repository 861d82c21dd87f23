"""The record of the boundaries between epochs, for a trial and for a user's loop."""

from __future__ import annotations

from loaderbench.histogram import Histogram
from loaderbench.recorder.measure import Steps
from loaderbench.recorder.trials import spread_of
from loaderbench.recorder.windows import FindMade
from loaderbench.records import Epochs, LoopLine, Reasons
from loaderbench.tracing.made import Made

ONE_EPOCH = "one epoch has no boundary"
_UNKNOWN_MAKER = "no worker is known to have made the first batches"
_NO_SAMPLER = "no sampler was timed in a second epoch"
_AT_ONCE = "a trial begins the next epoch at once"
_NO_LOOP = "a trial runs no code of a training loop between epochs"


class Boundaries:
    """Adds up boundaries, and in `first_makings` those parts in which a worker was making the first batch."""

    def __init__(self) -> None:
        self.times, self.first_makings = Histogram(), Histogram()

    def add(self, took_s: float, asked_s: float, got_s: float, made: Made | None) -> None:
        """Add a boundary that took `took_s`. Its first batch was `made`, and awaited between the two moments."""
        self.times.add(took_s)
        if made is not None and made.worker is not None:
            self.first_makings.add(max(0.0, min(made.ended_s, got_s) - max(made.began_s, asked_s)))

    def record(
        self,
        begun: int,
        sampler_s: float | None,
        *,
        workers_persist: bool | None,
        between_s: float | None,
        between_line: LoopLine | None,
        not_measured: Reasons,
    ) -> Epochs:
        """The record of `begun` epochs; `not_measured` says why the values between epochs are missing."""
        found, making = spread_of(self.times), spread_of(self.first_makings)
        unknown = ONE_EPOCH if found is None else _UNKNOWN_MAKER
        return Epochs(
            begun=begun,
            boundary_s=found.mean_s if found else None,
            boundary_max_s=found.max_s if found else None,
            first_making_s=making.mean_s if making else None,
            sampler_s=sampler_s,
            between_s=between_s,
            between_line=between_line,
            workers_persist=workers_persist,
            not_measured={
                **({} if found else dict.fromkeys(("boundary_s", "boundary_max_s"), unknown)),
                **({} if making else {"first_making_s": unknown}),
                **({} if sampler_s is not None else {"sampler_s": _NO_SAMPLER}),
                **({} if workers_persist is not None else {"workers_persist": "no workers of a DataLoader are known"}),
                **not_measured,
            },
        )


def epochs_of(
    steps: Steps, find_made: FindMade, sampler_s: float | None, *, workers_persist: bool | None
) -> Epochs | None:
    """The epochs of a trial, from its first batch on; `None` if none has ended.

    A boundary is the consumer's wait for the first batch of an epoch. What a device computes in the meantime is no
    wait. The makers of batches are looked up once, at the end. A worker remembers only its last batches.
    """
    if not steps.epoch_ends:
        return None
    found, waits_s = Boundaries(), steps.waits_s()
    for epoch, place in enumerate(steps.begins[1:], 1):
        got_s, wait_s = steps.got_s[place], waits_s[place]
        found.add(wait_s, got_s - wait_s, got_s, find_made(epoch, 0))
    return found.record(
        steps.epoch_ends + 1,
        sampler_s,
        workers_persist=workers_persist,
        between_s=None,
        between_line=None,
        not_measured={"between_s": _AT_ONCE, "between_line": _NO_LOOP},
    )
