"""One batch on its way through a loader: made by a worker, handed over, taken by the loop."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

MOMENTS = ("asked_s", "got_s", "ended_s", "began_s", "collate_began_s", "made_s")


@dataclass(frozen=True, kw_only=True)
class BatchTimes:
    """When one batch was made and taken. Moments are seconds of one clock, the same for all processes of a machine.

    `batch` is its number in its epoch, from 0. The loop called `next()` at `asked_s`, had the batch at `got_s` and was
    done with it at `ended_s`; `wait_s` of that is its data wait. All four are `None` for a batch that was never taken;
    `ended_s` alone where the loop was left with it.

    `worker` began it at `began_s`, started to collate at `collate_began_s` and was done at `made_s`: all `None` without
    tracing. `worker` alone is `None` for a batch that the main process made. `stages_s` are wall seconds of the timed
    samples by stage; not every sample is timed. `steady`: the batch belongs to the steady state.
    """

    epoch: int
    batch: int
    samples: int
    steady: bool = False
    asked_s: float | None = None
    got_s: float | None = None
    wait_s: float | None = None
    ended_s: float | None = None
    worker: int | None = None
    began_s: float | None = None
    collate_began_s: float | None = None
    made_s: float | None = None
    stages_s: dict[str, float] = field(default_factory=dict)

    def since(self, zero_s: float) -> BatchTimes:
        """The same batch with moments in seconds since `zero_s`, to the microsecond."""
        moments = {name: getattr(self, name) for name in MOMENTS}
        return replace(self, **{name: round(at - zero_s, 6) for name, at in moments.items() if at is not None})
