"""More workers than cores take turns on them, and each costs memory: fewer give as much or more.

As fast within the noise is enough, since fewer are cheaper.
"""

from loaderbench.remedies.workers import WorkerRemedy

REMEDY = WorkerRemedy(
    id="fewer_workers",
    title="Lower num_workers to {}",
    fits=lambda now, best: best < now,
    about=lambda now: now > 0,
    cheaper=True,
)
