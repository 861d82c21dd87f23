"""Workers are busy and cores are idle: the smallest count within the noise of the best."""

from loaderbench.remedies.workers import WorkerRemedy

REMEDY = WorkerRemedy(
    id="more_workers",
    title="Raise num_workers to {}",
    fits=lambda now, best: best > now,
    about=lambda now: now > 0,
)
